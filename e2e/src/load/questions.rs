//! Owns: shape questions: mesh-250 while nobody asks, and the same while readers ask the hub about its state once a second
//! each. Questions must not disturb the writer.
//! Never: asks less because an answer is slow: one that is late is late.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use hdrhistogram::Histogram;
use proto::v1::{self, membership_client::MembershipClient, state_client::StateClient};
use shared::tls::{HubAddress, HubConnector, LiveCredentials, TcpDial, TlsMetrics, explain};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::{
    args::Arguments,
    churn::{MESH, MESH_RATE},
    figure::Aim,
    hub::Setup,
    loaded::LoadedHub,
    report::{Section, latencies},
};

/// Who asks at the same time.
const READERS: u32 = 10;
/// Between the beginnings of a reader's rounds.
const ROUND: Duration = Duration::from_secs(1);
/// By how much the p99 may differ: by a quarter of it, or by so many milliseconds if those are more.
const P99_SHARE_MAX: f64 = 0.25;
const P99_MILLIS_MAX: f64 = 2.0;

/// Plays the shape.
pub(super) async fn measure(
    setup: &Setup,
    arguments: &Arguments,
    sections: &mut Vec<Section>,
) -> anyhow::Result<()> {
    let mut stage = LoadedHub::set(setup, MESH, "questions", sections).await?;
    let section = Section::begin(format!("questions, {MESH_RATE} updates/s, nobody asks"));
    let quiet = stage.wave(section, MESH_RATE, arguments.seconds).await?;
    let readers = Readers::begin(setup, &stage.hub.address)?;
    let section = Section::begin(format!("questions, {MESH_RATE} updates/s, {READERS} readers ask"));
    let mut asked = stage.wave(section, MESH_RATE, arguments.seconds).await?;
    let answers = readers.end().await?;
    let p99 = |section: &Section| section.point.as_ref().map_or(f64::NAN, |point| point.p99_millis);
    let (before, with) = (p99(&quiet), p99(&asked));
    let may = f64::max(before * P99_SHARE_MAX, P99_MILLIS_MAX);
    asked.figure("p99 while nobody asked", before, "ms");
    asked.figure("difference of the p99", with - before, "ms");
    asked.aimed(
        "difference, of what it may be",
        (with - before) / may,
        "",
        Aim::Below(1.0),
    );
    answers.add_to(&mut asked);
    sections.extend([quiet, asked]);
    stage.hub.kill().await
}

/// What readers were answered.
struct Answers {
    explained: Histogram<u64>,
    listed: Histogram<u64>,
    got: Histogram<u64>,
    pages: u64,
}

impl Answers {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            explained: latencies()?,
            listed: latencies()?,
            got: latencies()?,
            pages: 0,
        })
    }

    fn take(&mut self, other: &Self) -> anyhow::Result<()> {
        self.explained.add(&other.explained)?;
        self.listed.add(&other.listed)?;
        self.got.add(&other.got)?;
        self.pages += other.pages;
        Ok(())
    }

    fn add_to(&self, section: &mut Section) {
        let methods = [
            ("State/Explain", &self.explained),
            ("Membership/List, all pages", &self.listed),
            ("State/Get, all pages", &self.got),
        ];
        for (method, latency) in methods {
            let millis = |quantile| latency.value_at_quantile(quantile) as f64 / 1e3;
            section.figure(format!("{method}, answered"), latency.len() as f64, "");
            section.figure(format!("{method}, p50"), millis(0.5), "ms");
            section.figure(format!("{method}, p99"), millis(0.99), "ms");
        }
        section.figure("pages in all", self.pages as f64, "");
    }
}

/// Those who ask.
struct Readers {
    readers: JoinSet<anyhow::Result<Answers>>,
    enough: CancellationToken,
}

impl Readers {
    fn begin(setup: &Setup, hub: &HubAddress) -> anyhow::Result<Self> {
        let (mut readers, enough) = (JoinSet::new(), CancellationToken::new());
        for number in 0..READERS {
            let operator = setup.operator("alice")?;
            let (hub, enough) = (hub.clone(), enough.clone());
            // They do not all ask at the same moment.
            let begin = Instant::now() + ROUND * number / READERS;
            readers.spawn(async move { Reader::connect(hub, operator).await?.ask(begin, enough).await });
        }
        Ok(Self { readers, enough })
    }

    /// What all of them were answered; an error if one of them once was not.
    async fn end(mut self) -> anyhow::Result<Answers> {
        self.enough.cancel();
        let mut all = Answers::new()?;
        while let Some(ended) = self.readers.join_next().await {
            all.take(&ended.context("a reader panicked")??)?;
        }
        Ok(all)
    }
}

/// One who asks, over one connection.
struct Reader {
    state: StateClient<Channel>,
    membership: MembershipClient<Channel>,
    answers: Answers,
}

impl Reader {
    async fn connect(hub: HubAddress, operator: Arc<LiveCredentials>) -> anyhow::Result<Self> {
        let connector = HubConnector::new(vec![hub], operator, Arc::new(TcpDial), TlsMetrics::default());
        let channel = connector.connect().await.map_err(|error| {
            let why = explain(&error).unwrap_or_else(|| error.to_string());
            anyhow::anyhow!(why)
        })?;
        Ok(Self {
            state: StateClient::new(channel.clone()),
            membership: MembershipClient::new(channel),
            answers: Answers::new()?,
        })
    }

    async fn ask(mut self, begin: Instant, enough: CancellationToken) -> anyhow::Result<Answers> {
        tokio::time::sleep_until(begin).await;
        let mut rounds = interval(ROUND);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !enough.is_cancelled() {
            rounds.tick().await;
            self.round().await?;
        }
        Ok(self.answers)
    }

    async fn round(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        let service = self.get().await?;
        record(&mut self.answers.got, began);
        let began = Instant::now();
        self.list().await?;
        record(&mut self.answers.listed, began);
        let explain = v1::ExplainRequest {
            namespace: service.namespace,
            name: service.name,
            ..Default::default()
        };
        let began = Instant::now();
        self.state.explain(explain).await?;
        record(&mut self.answers.explained, began);
        Ok(())
    }

    /// All pages of the state; an imported service.
    async fn get(&mut self) -> anyhow::Result<v1::ServiceKey> {
        let (mut page_token, mut service) = (String::new(), None);
        loop {
            let asked = v1::GetStateRequest {
                page_token,
                ..Default::default()
            };
            let page = self.state.get(asked).await?.into_inner();
            self.answers.pages += 1;
            let imports = page.imports.into_iter();
            service = imports.rev().find_map(|seen| seen.import?.service).or(service);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return service.context("nothing is imported");
            }
        }
    }

    async fn list(&mut self) -> anyhow::Result<()> {
        let mut page_token = String::new();
        loop {
            let asked = v1::ListMembersRequest {
                page_token,
                ..Default::default()
            };
            page_token = self.membership.list(asked).await?.into_inner().next_page_token;
            self.answers.pages += 1;
            if page_token.is_empty() {
                return Ok(());
            }
        }
    }
}

fn record(latency: &mut Histogram<u64>, began: Instant) {
    let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    latency.saturating_record(micros.max(1));
}
