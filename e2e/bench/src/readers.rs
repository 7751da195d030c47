//! Owns: ten operators who ask the hub, each over a connection of its own, on a thread that gives way to the members:
//! what a reader does with an answer is no delay of the hub's.
//! Never: looks at what members receive.

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::Context;
use hdrhistogram::Histogram;
use proto::v1::{self, membership_client::MembershipClient, state_client::StateClient};
use shared::tls::{HubAddress, HubConnector, LiveCredentials, TcpDial, TlsMetrics, explain};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, transport::Channel};

use super::{
    hub::Setup,
    report::{Section, latencies},
};

/// Number of concurrent readers.
pub(super) const READERS: u32 = 10;
/// Between what a reader asks and what it asks next.
const ROUND: Duration = Duration::from_secs(1);
/// The least share of the processor that there is, as `nice` says it.
const NICE: i32 = 19;

/// A reader's calls in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    /// One call: in turn a page of the state, a page of the members, an explanation.
    ACallEach,
    /// The whole state and all members, page after page, and an explanation.
    EverythingEach,
}

impl Asking {
    /// For people.
    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::ACallEach => "a call",
            Self::EverythingEach => "everything",
        }
    }

    const fn pages(self) -> &'static str {
        match self {
            Self::ACallEach => "a page",
            Self::EverythingEach => "all pages",
        }
    }
}

/// The answers to readers.
pub(super) struct Answers {
    explained: Histogram<u64>,
    listed: Histogram<u64>,
    got: Histogram<u64>,
    calls: u64,
    begun_again: u64,
    asking: Asking,
}

impl Answers {
    fn new(asking: Asking) -> anyhow::Result<Self> {
        Ok(Self {
            explained: latencies()?,
            listed: latencies()?,
            got: latencies()?,
            calls: 0,
            begun_again: 0,
            asking,
        })
    }

    fn take(&mut self, other: &Self) -> anyhow::Result<()> {
        self.explained.add(&other.explained)?;
        self.listed.add(&other.listed)?;
        self.got.add(&other.got)?;
        self.calls += other.calls;
        self.begun_again += other.begun_again;
        Ok(())
    }

    pub(super) fn add_to(&self, section: &mut Section) {
        let pages = self.asking.pages();
        let methods = [
            ("State/Explain".to_owned(), &self.explained),
            (format!("Membership/List, {pages}"), &self.listed),
            (format!("State/Get, {pages}"), &self.got),
        ];
        for (method, latency) in methods {
            let millis = |quantile| latency.value_at_quantile(quantile) as f64 / 1e3;
            section.figure(format!("{method}, answered"), latency.len() as f64, "");
            section.figure(format!("{method}, p50"), millis(0.5), "ms");
            section.figure(format!("{method}, p99"), millis(0.99), "ms");
        }
        section.figure("calls in all", self.calls as f64, "");
        section.figure(
            "told that their revision is not kept",
            self.begun_again as f64,
            "",
        );
    }
}

/// Those who ask.
pub(super) struct Readers {
    thread: JoinHandle<anyhow::Result<Answers>>,
    enough: CancellationToken,
}

impl Readers {
    /// All connect, and ask from then on.
    pub(super) fn begin(setup: &Setup, hub: &HubAddress, asking: Asking) -> anyhow::Result<Self> {
        let (operator, hub) = (setup.operator("alice")?, hub.clone());
        let enough = CancellationToken::new();
        let ended = enough.clone();
        let thread = thread::Builder::new().name("readers".into()).spawn(move || {
            // On Linux this is about the thread that calls, and nobody else.
            rustix::process::setpriority_process(None, NICE).context("readers cannot give way")?;
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build()?;
            runtime.block_on(all(&operator, &hub, asking, &ended))
        })?;
        Ok(Self { thread, enough })
    }

    /// All answers; an error if one call was not answered.
    pub(super) async fn end(self) -> anyhow::Result<Answers> {
        self.enough.cancel();
        let joined = tokio::task::spawn_blocking(|| self.thread.join());
        joined
            .await?
            .map_err(|_| anyhow::anyhow!("the readers panicked"))?
    }
}

async fn all(
    operator: &Arc<LiveCredentials>,
    hub: &HubAddress,
    asking: Asking,
    enough: &CancellationToken,
) -> anyhow::Result<Answers> {
    let mut readers = JoinSet::new();
    let now = Instant::now();
    for number in 0..READERS {
        let (hub, operator, enough) = (hub.clone(), operator.clone(), enough.clone());
        // They do not all ask at the same moment, nor the same.
        let begin = now + ROUND * number / READERS;
        readers.spawn(async move {
            let reader = Reader::connect(hub, operator, asking, number).await?;
            reader.ask(begin, enough).await
        });
    }
    let mut answers = Answers::new(asking)?;
    while let Some(ended) = readers.join_next().await {
        answers.take(&ended.context("a reader panicked")??)?;
    }
    Ok(answers)
}

/// One who asks, over one connection.
struct Reader {
    state: StateClient<Channel>,
    membership: MembershipClient<Channel>,
    answers: Answers,
    /// Next call, of a reader with a call a second.
    turn: u32,
    /// Its position in the state and among the members; empty: at the beginning.
    state_page: String,
    members_page: String,
    /// Service to explain: an import that it read.
    service: Option<v1::ServiceKey>,
}

impl Reader {
    async fn connect(
        hub: HubAddress,
        operator: Arc<LiveCredentials>,
        asking: Asking,
        turn: u32,
    ) -> anyhow::Result<Self> {
        let connector = HubConnector::new(vec![hub], operator, Arc::new(TcpDial), TlsMetrics::default());
        let channel = connector.connect().await.map_err(|error| {
            let why = explain(&error).unwrap_or_else(|| error.to_string());
            anyhow::anyhow!(why)
        })?;
        let mut reader = Self {
            state: StateClient::new(channel.clone()),
            membership: MembershipClient::new(channel),
            answers: Answers::new(asking)?,
            turn,
            state_page: String::new(),
            members_page: String::new(),
            service: None,
        };
        while reader.service.is_none() {
            reader.get().await?;
            anyhow::ensure!(
                !reader.state_page.is_empty() || reader.service.is_some(),
                "nothing is imported"
            );
        }
        reader.answers = Answers::new(asking)?;
        Ok(reader)
    }

    async fn ask(mut self, begin: Instant, enough: CancellationToken) -> anyhow::Result<Answers> {
        tokio::time::sleep_until(begin).await;
        let mut rounds = interval(ROUND);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !enough.is_cancelled() {
            rounds.tick().await;
            match self.answers.asking {
                Asking::ACallEach => self.one().await?,
                Asking::EverythingEach => self.everything().await?,
            }
        }
        Ok(self.answers)
    }

    async fn one(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        self.turn += 1;
        match self.turn % 3 {
            0 => {
                self.get().await?;
                record(&mut self.answers.got, began);
            }
            1 => {
                self.list().await?;
                record(&mut self.answers.listed, began);
            }
            _ => {
                self.explain().await?;
                record(&mut self.answers.explained, began);
            }
        }
        Ok(())
    }

    async fn everything(&mut self) -> anyhow::Result<()> {
        self.state_page.clear();
        self.members_page.clear();
        let began = Instant::now();
        self.get().await?;
        while !self.state_page.is_empty() {
            self.get().await?;
        }
        record(&mut self.answers.got, began);
        let began = Instant::now();
        self.list().await?;
        while !self.members_page.is_empty() {
            self.list().await?;
        }
        record(&mut self.answers.listed, began);
        let began = Instant::now();
        self.explain().await?;
        record(&mut self.answers.explained, began);
        Ok(())
    }

    /// The next page of the state. The hub keeps few revisions for those who read on: who is told that its own is none
    /// of them begins again with its next call.
    async fn get(&mut self) -> anyhow::Result<()> {
        let asked = v1::GetStateRequest {
            page_token: std::mem::take(&mut self.state_page),
            ..Default::default()
        };
        self.answers.calls += 1;
        let page = match self.state.get(asked).await {
            Ok(page) => page.into_inner(),
            Err(status) if status.code() == Code::Aborted && self.answers.asking == Asking::ACallEach => {
                self.answers.begun_again += 1;
                return Ok(());
            }
            Err(status) => return Err(status.into()),
        };
        let imports = page.imports.into_iter();
        let seen = imports.rev().find_map(|seen| seen.import?.service);
        self.service = seen.or(self.service.take());
        self.state_page = page.next_page_token;
        Ok(())
    }

    /// The next page of the members.
    async fn list(&mut self) -> anyhow::Result<()> {
        let asked = v1::ListMembersRequest {
            page_token: std::mem::take(&mut self.members_page),
            ..Default::default()
        };
        self.answers.calls += 1;
        self.members_page = self.membership.list(asked).await?.into_inner().next_page_token;
        Ok(())
    }

    async fn explain(&mut self) -> anyhow::Result<()> {
        let service = self.service.clone().context("nothing is imported")?;
        let asked = v1::ExplainRequest {
            namespace: service.namespace,
            name: service.name,
            ..Default::default()
        };
        self.answers.calls += 1;
        self.state.explain(asked).await?;
        Ok(())
    }
}

fn record(latency: &mut Histogram<u64>, began: Instant) {
    let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    latency.saturating_record(micros.max(1));
}
