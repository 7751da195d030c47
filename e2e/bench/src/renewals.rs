//! Owns: shape renewals: all members of fleet-1000 in session, each of which reports now and then, has a certificate made
//! for a new key over its session, goes on, and comes again under that key while the old session stands: how long each
//! takes, what it costs those who report, and whether anything that was acknowledged is missing.
//! Never: keeps a key longer than a run, or renews as an agent decides to: when is the shape's.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, ensure};
use bytes::Bytes;
use hdrhistogram::Histogram;
use proto::v1;
use shared::{
    model::sync::{AgentMessage, Renewed},
    tls::{Credentials, HubAddress, LiveCredentials, Pem, TlsFiles, new_key, pem_of, signing_request},
    wire,
};
use tokio::{
    sync::{Barrier, Semaphore},
    task::JoinSet,
    time::{sleep_until, timeout},
};

use super::{
    args::Arguments,
    churn::FLEET,
    cores::UsedCores,
    facts::SliceTemplate,
    figure::Aim,
    hub::{HubProcess, Setup},
    load_shape::{LoadShape, ShapeMember},
    player::{Heard, Memory, Player, Session},
    report::{Section, latencies},
};
use cluster::clusterset::Inspection;

/// Members that connect at the same time before anything is measured.
const CONNECTING_MAX: usize = 64;
/// Interval of a member's reports: with a thousand members 100 updates a second.
const UPDATE_EVERY: Duration = Duration::from_secs(10);
/// Time for which a member keeps its session after it received a certificate.
const GOES_ON: Duration = Duration::from_secs(3);
/// Longest wait for an answer of the hub's.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// The schedule, the same for all.
struct Plan {
    hub: HubAddress,
    /// Duration of the phase of mere reports, and of the renewals, one after the other.
    lasting: Duration,
    connecting: Semaphore,
    ready: Barrier,
}

/// A member's measurements.
struct Measured {
    /// Report to acknowledgement, in microseconds, before anybody renews and while all do.
    before: Histogram<u64>,
    during: Histogram<u64>,
    /// Request to answer, and connection to Welcome under the new key.
    renewed: Histogram<u64>,
    came_again: Histogram<u64>,
    /// The hub asked for a listing: it does not hold what it acknowledged.
    asked_to_list: u64,
}

impl Measured {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            before: latencies()?,
            during: latencies()?,
            renewed: latencies()?,
            came_again: latencies()?,
            asked_to_list: 0,
        })
    }

    fn add(&mut self, other: &Self) -> anyhow::Result<()> {
        self.before.add(&other.before)?;
        self.during.add(&other.during)?;
        self.renewed.add(&other.renewed)?;
        self.came_again.add(&other.came_again)?;
        self.asked_to_list += other.asked_to_list;
        Ok(())
    }
}

/// One member that renews.
struct Renewing {
    player: Player,
    exports: Vec<Bytes>,
    slices: Vec<SliceTemplate>,
    number: u32,
    /// Its place among all, from 0 to 1.
    share: f64,
    /// Reports without an acknowledgement, by sequence number.
    pending: VecDeque<(u64, Instant)>,
    measured: Measured,
}

impl Renewing {
    fn new(setup: &Setup, member: &ShapeMember, share: f64) -> anyhow::Result<Self> {
        Ok(Self {
            player: Player {
                cluster: member.cluster.clone(),
                credentials: setup.member(&member.cluster)?,
                interest: member.interest.clone(),
                // What it holds is not kept from the one session to the next.
                takes_differences: false,
            },
            exports: member.exports.clone(),
            slices: member.slices.clone(),
            number: 0,
            share,
            pending: VecDeque::new(),
            measured: Measured::new()?,
        })
    }

    /// Everything that it reports; its first slice is the one that changes.
    fn facts(&self) -> Vec<Bytes> {
        let changes = self
            .slices
            .iter()
            .zip(std::iter::once(self.number).chain(std::iter::repeat(0)));
        let slices = changes.map(|(slice, number)| slice.numbered(number));
        self.exports.iter().cloned().chain(slices).collect()
    }

    /// The whole of it. An error is a stream that ended, or a refusal.
    async fn play(mut self, plan: Arc<Plan>) -> anyhow::Result<Measured> {
        let connecting = plan.connecting.acquire().await?;
        let mut session = self.player.connect(&plan.hub).await?;
        session.list(self.facts(), |_| ()).await?;
        drop(connecting);
        plan.ready.wait().await;
        let start = Instant::now();
        let due = start + plan.lasting + plan.lasting.mul_f64(self.share);
        let end = start + plan.lasting * 2 + GOES_ON;
        self.report_until(&mut session, due, start + plan.lasting).await?;
        let credentials = self.renew(&mut session).await?;
        self.report_until(&mut session, due + GOES_ON, start).await?;
        self.settle(&mut session).await?;

        // The old session stands meanwhile, as an agent's does.
        self.player.credentials = credentials;
        let memory = Memory {
            cursor: session.cursor(),
            ..Memory::of(&self.facts())?
        };
        let began = Instant::now();
        let mut again = self.player.connect_again(&plan.hub, &memory).await?;
        self.measured.came_again.saturating_record(micros(began));
        self.measured.asked_to_list += u64::from(again.asks_for_exports());
        drop(session);
        again.list(Vec::new(), |_| ()).await?;
        self.report_until(&mut again, end, start).await?;
        self.settle(&mut again).await?;
        Ok(self.measured)
    }

    /// Reports now and then, and hears. What is reported from `during` on counts as beside renewals.
    async fn report_until(
        &mut self,
        session: &mut Session,
        end: Instant,
        during: Instant,
    ) -> anyhow::Result<()> {
        let mut next = Instant::now() + UPDATE_EVERY.mul_f64(self.share);
        loop {
            tokio::select! {
                heard = session.hear() => {
                    heard?;
                    self.acknowledged(session, during);
                }
                () = sleep_until(next.min(end).into()) => {
                    if Instant::now() >= end {
                        return Ok(());
                    }
                    next += UPDATE_EVERY;
                    self.number += 1;
                    let changed = self.slices.first().context("a member has slices")?;
                    session.report(vec![changed.numbered(self.number)]).await?;
                    self.pending.push_back((session.sent(), Instant::now()));
                }
            }
        }
    }

    fn acknowledged(&mut self, session: &Session, during: Instant) {
        while let Some((sequence, at)) = self.pending.front().copied()
            && sequence <= session.acknowledged()
        {
            self.pending.pop_front();
            let latency = if at < during {
                &mut self.measured.before
            } else {
                &mut self.measured.during
            };
            latency.saturating_record(micros(at));
        }
    }

    /// Until everything is acknowledged.
    async fn settle(&mut self, session: &mut Session) -> anyhow::Result<()> {
        let all = async {
            while session.acknowledged() < session.sent() {
                session.hear().await?;
            }
            anyhow::Ok(())
        };
        timeout(ANSWER_WAIT, all).await.context("not acknowledged")??;
        self.pending.clear();
        Ok(())
    }

    /// Has a certificate made for a new key.
    async fn renew(&mut self, session: &mut Session) -> anyhow::Result<Arc<LiveCredentials>> {
        let key = new_key()?;
        let request = AgentMessage::RenewalRequested(signing_request(&key)?.into());
        let began = Instant::now();
        session.member.say(wire::agent_message_to_proto(request)).await?;
        let answered = async {
            loop {
                if let Heard::Renewal(answer) = session.hear().await? {
                    return answer.map_err(|why| anyhow!("the hub renews nothing: {why}"));
                }
            }
        };
        let renewed = timeout(ANSWER_WAIT, answered)
            .await
            .context("the hub does not answer")??;
        self.measured.renewed.saturating_record(micros(began));
        Ok(LiveCredentials::new(credentials(&renewed, key)?))
    }
}

/// As an agent keeps them.
fn credentials(renewed: &Renewed, key: String) -> anyhow::Result<Credentials> {
    let pem = |all: &[Bytes]| {
        let pem = all.iter().map(|der| pem_of(&der.to_vec().into()));
        pem.collect::<String>().into_bytes()
    };
    let (cert, ca) = (pem(&renewed.certificates), pem(&renewed.authorities));
    Ok(Credentials::from_pem(&Pem {
        cert,
        key: key.into_bytes(),
        ca,
    })?)
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Measures it.
pub(super) async fn measure(setup: &Setup, arguments: &Arguments) -> anyhow::Result<Section> {
    let world = LoadShape::new(FLEET)?;
    let members = world.members.len();
    let mut section = Section::begin(format!("renewals, {members} members"));
    let data = setup.data("renewals")?;
    let hub = HubProcess::start_certifying(setup, &data, UsedCores::OwnCores).await?;
    let plan = Arc::new(Plan {
        hub: hub.address.clone(),
        lasting: Duration::from_secs(arguments.seconds),
        connecting: Semaphore::new(CONNECTING_MAX),
        ready: Barrier::new(members),
    });
    let mut playing = JoinSet::new();
    for (place, member) in world.members.iter().enumerate() {
        let member = Renewing::new(setup, member, place as f64 / members as f64)?;
        playing.spawn(member.play(plan.clone()));
    }
    let (mut all, mut ended) = (Measured::new()?, Vec::new());
    while let Some(one) = playing.join_next().await {
        match one? {
            Ok(measured) => all.add(&measured)?,
            Err(error) => ended.push(format!("{error:#}")),
        }
    }
    if let Some(first) = ended.first() {
        section.note(format!("the first stream that ended: {first}"));
    }
    describe(&mut section, &all, ended.len());
    recorded(setup, &hub, members, &mut section).await?;
    let usage = hub.usage()?;
    section.figure("hub processor time", usage.cpu_seconds, "s");
    section.figure("hub memory at its peak", usage.resident_peak as f64 / 1e6, "MB");
    section.beside_the_disk(&setup.directory)?;
    hub.kill().await?;
    ensure!(
        ended.is_empty(),
        "{} of {members} streams ended: {}",
        ended.len(),
        ended[0]
    );
    Ok(section)
}

fn describe(section: &mut Section, all: &Measured, ended: usize) {
    section.aimed("streams that ended", ended as f64, "", Aim::Below(1.0));
    section.aimed(
        "members asked for what was acknowledged",
        all.asked_to_list as f64,
        "",
        Aim::Below(1.0),
    );
    for (what, latency) in [
        ("certificate asked for to given", &all.renewed),
        ("new connection to Welcome, the old session open", &all.came_again),
        ("update to acknowledged, before", &all.before),
        ("update to acknowledged, while all renew", &all.during),
    ] {
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            let millis = latency.value_at_quantile(quantile) as f64 / 1e3;
            section.figure(format!("{what}, {name}"), millis, "ms");
        }
    }
    section.figure("updates, before", all.before.len() as f64, "");
    section.figure("updates, while all renew", all.during.len() as f64, "");
}

/// Checks the log's events about keys: each was certified once, and nothing had to be decided or doubted.
async fn recorded(
    setup: &Setup,
    hub: &HubProcess,
    members: usize,
    section: &mut Section,
) -> anyhow::Result<()> {
    let file = |name: &str| setup.directory.join(name);
    setup.write_operator("reads")?;
    let files = TlsFiles {
        cert: file("reads.crt"),
        key: file("reads.key"),
        ca: file("ca.crt"),
    };
    let mut log = Inspection::at(&hub.listen.to_string(), &files).await?.log;
    for (kind, aim) in [
        ("member_key_certified", Aim::AtLeast(members as f64)),
        ("member_rekeyed", Aim::Below(1.0)),
        ("member_key_contested", Aim::Below(1.0)),
        ("member_lost", Aim::Below(1.0)),
    ] {
        let (mut next, mut found) = (1, 0);
        while next != 0 {
            let filter = Some(v1::EventFilter {
                kind: kind.to_owned(),
                ..Default::default()
            });
            let request = v1::ListEventsRequest {
                from_revision: next,
                filter,
                ..Default::default()
            };
            let page = log.list(request).await?.into_inner();
            (next, found) = (page.next_revision, found + page.events.len());
        }
        section.aimed(format!("events {kind}"), found as f64, "", aim);
    }
    Ok(())
}
