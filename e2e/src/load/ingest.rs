//! Owns: shape ingest: as many facts as the hub makes durable, many in flight, nobody interested in them.
//! Never: leaves an acknowledgement out: the rate counts what was acknowledged, until the last one.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use anyhow::Context;
use bytes::Bytes;
use hdrhistogram::Histogram;
use shared::model::{ClusterId, sync::Namespaces};
use tokio::task::JoinSet;

use super::{
    args::Arguments,
    cores::UsedCores,
    etcd::{self, Puts},
    facts::{self, NUMBERS_MAX, Size, SliceTemplate},
    figure::Aim,
    hub::{HubProcess, Setup},
    player::{Player, Session},
    report::{Section, latencies},
};

/// Slices of one member, updated in turn.
const MEMBER_SLICES: usize = 1_000;
/// Most facts of one message.
const MESSAGE_FACTS: usize = 256;
/// Bytes of one message, about.
const MESSAGE_BYTES: usize = 128 * 1024;
/// What one clusterset is to take on the hub's one core, at 400 bytes a fact.
const FACTS_PER_SECOND_AIM: f64 = 60_000.0;
/// The fact size that the aim is about.
const AIM_FACT_BYTES: usize = 400;
/// How much faster it is to be than etcd's transactions.
const ETCD_RATIO_AIM: f64 = 2.0;

/// Measures ingest at one fact size.
pub(super) async fn measure(setup: &Setup, arguments: &Arguments, bytes: usize) -> anyhow::Result<Section> {
    let members = arguments.ingest_members;
    let mut section = Section::begin(format!("ingest, {bytes} bytes a fact, {members} members"));
    let lasting = Duration::from_secs(arguments.seconds);
    let data = setup.data(&format!("ingest-{bytes}"))?;
    let hub = HubProcess::start(setup, &data, UsedCores::OwnCores).await?;
    let mut sessions = Vec::new();
    for index in 0..members {
        sessions.push(Reporter::connect(setup, &hub, index, bytes).await?);
    }
    let (counters, usage, began) = (hub.counters().await?, hub.usage()?, Instant::now());
    let mut tasks = JoinSet::new();
    sessions
        .into_iter()
        .for_each(|reporter| drop(tasks.spawn(reporter.report(began + lasting))));
    let (mut facts, mut latency) = (0, latencies()?);
    while let Some(done) = tasks.join_next().await {
        let (count, one) = done??;
        facts += count;
        latency.add(one)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let (spent, end) = (hub.usage()?.cpu_seconds - usage.cpu_seconds, hub.usage()?);
    let after = hub.settled_counters(counters.events + facts as f64).await?;
    hub.kill().await?;
    let rate = facts as f64 / seconds;
    match bytes {
        AIM_FACT_BYTES => section.aimed(
            "facts durable",
            rate,
            "facts/s",
            Aim::AtLeast(FACTS_PER_SECOND_AIM),
        ),
        _ => section.figure("facts durable", rate, "facts/s"),
    }
    section.figure("fact bytes durable", rate * bytes as f64 / 1e6, "MB/s");
    section.figure(
        "sent to acknowledged p50",
        latency.value_at_quantile(0.5) as f64 / 1e3,
        "ms",
    );
    section.figure(
        "sent to acknowledged p99",
        latency.value_at_quantile(0.99) as f64 / 1e3,
        "ms",
    );
    section.figure("syncs", after.syncs - counters.syncs, "");
    section.figure(
        "events a sync",
        facts as f64 / (after.syncs - counters.syncs).max(1.0),
        "",
    );
    section.figure(
        "share of the time inside the log",
        (after.append_seconds - counters.append_seconds) / seconds,
        "",
    );
    section.figure("hub processor time", spent / seconds, "cores");
    section.figure("hub processor time a fact", spent / facts as f64 * 1e6, "us");
    section.figure("hub memory", end.resident as f64 / 1e6, "MB");
    let payload = (after.payload_bytes - counters.payload_bytes) / facts as f64;
    section.figure("log payload", payload, "bytes/event");
    section.figure(
        "log on disk",
        (after.disk_bytes - counters.disk_bytes) / facts as f64,
        "bytes/event",
    );
    compare(setup, &mut section, lasting, bytes, rate).await;
    Ok(section)
}

/// The same bytes through etcd; a peer that is not there is a note, not a failure.
async fn compare(setup: &Setup, section: &mut Section, lasting: Duration, bytes: usize, rate: f64) {
    let ways = [
        (Puts::Single, "single puts"),
        (Puts::Transactions, "transactions of 128 puts"),
    ];
    for (how, name) in ways {
        match etcd::puts(setup, lasting, bytes, how).await {
            Ok(puts) => {
                section.figure(format!("etcd beside it, {name}, synced as well"), puts, "puts/s");
                let ratio = rate / puts;
                match how {
                    Puts::Single => section.figure(format!("ratio to etcd, {name}"), ratio, ""),
                    Puts::Transactions => {
                        let aim = Aim::AtLeast(ETCD_RATIO_AIM);
                        section.aimed(format!("ratio to etcd, {name}"), ratio, "", aim);
                    }
                }
            }
            Err(error) => section.note(format!("no etcd beside it, {name}: {error:#}")),
        }
    }
}

/// One member that reports as fast as it may.
struct Reporter {
    session: Session,
    slices: Vec<SliceTemplate>,
    message_facts: usize,
}

impl Reporter {
    async fn connect(setup: &Setup, hub: &HubProcess, index: usize, bytes: usize) -> anyhow::Result<Self> {
        let cluster = ClusterId::new(&format!("member-{index:04}"))?;
        let player = Player {
            credentials: setup.member(&cluster)?,
            cluster,
            interest: Namespaces::default(),
        };
        let mut session = player.connect(&hub.address).await?;
        let namespace = format!("team-{index:04}");
        let name = |service: usize| format!("cart-{service:05}-abcde");
        let size = Size::of(&facts::service(&namespace, 0)?, &name(0), bytes)?;
        let (mut exports, mut slices) = (Vec::new(), Vec::new());
        for service in 0..MEMBER_SLICES {
            let key = facts::service(&namespace, service)?;
            exports.push(facts::export(&key, index * MEMBER_SLICES + service, false));
            slices.push(size.slice(&key, &name(service)));
        }
        let listed = slices.iter().map(|slice| slice.numbered(0));
        session
            .list(exports.into_iter().chain(listed).collect(), |_| {})
            .await?;
        Ok(Self {
            message_facts: (MESSAGE_BYTES / slices[0].len().max(1)).clamp(1, MESSAGE_FACTS),
            session,
            slices,
        })
    }

    /// Reports until the time is over and everything is acknowledged: how many facts, and how long each message
    /// waited for its acknowledgement.
    async fn report(mut self, until: Instant) -> anyhow::Result<(u64, Histogram<u64>)> {
        let (first, mut number) = (self.session.sent(), 0);
        let mut waiting: VecDeque<(u64, Instant)> = VecDeque::new();
        let mut latency = latencies()?;
        loop {
            let over = Instant::now() >= until;
            if over && self.session.acknowledged() == self.session.sent() {
                return Ok((self.session.sent() - first, latency));
            }
            if !over && self.session.room() >= self.message_facts as u64 {
                let facts: Vec<Bytes> = (0..self.message_facts).map(|_| self.next(&mut number)).collect();
                self.session.report(facts).await?;
                waiting.push_back((self.session.sent(), Instant::now()));
                continue;
            }
            self.session
                .hear()
                .await
                .context("while it waited for acknowledgements")?;
            while let Some((last, sent)) = waiting.front()
                && *last <= self.session.acknowledged()
            {
                latency.saturating_record(sent.elapsed().as_micros() as u64);
                waiting.pop_front();
            }
        }
    }

    fn next(&self, number: &mut u32) -> Bytes {
        *number = (*number + 1) % NUMBERS_MAX;
        self.slices[*number as usize % self.slices.len()].numbered(*number)
    }
}
