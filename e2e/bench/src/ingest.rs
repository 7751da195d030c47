//! Owns: shape ingest: as many facts as the hub makes durable, many in flight, nobody interested in them.
//! Never: leaves an acknowledgement out: the rate counts what was acknowledged, until the last one.

use std::{
    collections::VecDeque,
    path::Path,
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
    probe::{Counters, Generator, GeneratorTime, Usage},
    report::{Section, latencies},
    unbounded::lift_budgets,
};

/// Slices of one member, updated in turn.
const MEMBER_SLICES: usize = 1_000;
/// Most facts of one message.
const MESSAGE_FACTS: usize = 256;
/// Bytes of one message, about.
const MESSAGE_BYTES: usize = 128 * 1024;
/// Aim of one clusterset on the hub's one core, at 400 bytes a fact.
const FACTS_PER_SECOND_AIM: f64 = 60_000.0;
/// The fact size that the aim is about.
const AIM_FACT_BYTES: usize = 400;
/// Aim relative to etcd's transactions.
const ETCD_RATIO_AIM: f64 = 2.0;

/// Measures ingest at one fact size.
pub(super) async fn measure(setup: &Setup, arguments: &Arguments, bytes: usize) -> anyhow::Result<Section> {
    let members = arguments.ingest_members;
    let mut section = Section::begin(format!("ingest, {bytes} bytes a fact, {members} members"));
    let lasting = Duration::from_secs(arguments.seconds);
    let data = setup.data(&format!("ingest-{bytes}"))?;
    let hub = HubProcess::start(setup, &data, UsedCores::OwnCores).await?;
    lift_budgets(setup, &hub).await?;
    let mut sessions = Vec::new();
    for index in 0..members {
        sessions.push(Reporter::connect(setup, &hub, index, bytes).await?);
    }
    let (counters, usage, generator) = (hub.counters().await?, hub.usage()?, Generator::begin()?);
    let began = Instant::now();
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
    let (seconds, end) = (began.elapsed().as_secs_f64(), hub.usage()?);
    let generator = generator.spent()?;
    let after = hub.settled_counters(counters.events + facts as f64).await?;
    hub.kill().await?;
    let ingested = Ingested {
        facts: facts as f64,
        bytes,
        seconds,
        latency,
        usage: [usage, end],
        generator,
        counters: [counters, after],
    };
    describe(&mut section, &ingested, &setup.directory)?;
    compare(setup, &mut section, lasting, bytes, ingested.rate()).await;
    Ok(section)
}

/// The result; pairs are before and after.
struct Ingested {
    facts: f64,
    /// Of a fact.
    bytes: usize,
    seconds: f64,
    latency: Histogram<u64>,
    /// Of the hub.
    usage: [Usage; 2],
    generator: GeneratorTime,
    counters: [Counters; 2],
}

impl Ingested {
    /// Facts a second.
    fn rate(&self) -> f64 {
        self.facts / self.seconds
    }
}

fn describe(section: &mut Section, ingested: &Ingested, directory: &Path) -> anyhow::Result<()> {
    let rate = ingested.rate();
    match ingested.bytes {
        AIM_FACT_BYTES => section.aimed(
            "facts durable",
            rate,
            "facts/s",
            Aim::AtLeast(FACTS_PER_SECOND_AIM),
        ),
        _ => section.figure("facts durable", rate, "facts/s"),
    }
    section.figure("fact bytes durable", rate * ingested.bytes as f64 / 1e6, "MB/s");
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let millis = ingested.latency.value_at_quantile(quantile) as f64 / 1e3;
        section.figure(format!("sent to acknowledged {name}"), millis, "ms");
    }
    section.beside_the_disk(directory)?;
    let [usage, end] = &ingested.usage;
    let spent = end.cpu_seconds - usage.cpu_seconds;
    section.figure("hub processor time", spent / ingested.seconds, "cores");
    section.figure("hub processor time a fact", spent / ingested.facts * 1e6, "us");
    section.generator(ingested.generator);
    section.figure("hub memory", end.resident as f64 / 1e6, "MB");
    log_figures(section, ingested);
    Ok(())
}

/// Figures of the log's size.
fn log_figures(section: &mut Section, ingested: &Ingested) {
    let [before, after] = &ingested.counters;
    let syncs = after.syncs - before.syncs;
    section.figure("syncs", syncs, "");
    section.figure("events a sync", ingested.facts / syncs.max(1.0), "");
    let inside = (after.append_seconds - before.append_seconds) / ingested.seconds;
    section.figure("share of the time inside the log", inside, "");
    let payload = (after.payload_bytes - before.payload_bytes) / ingested.facts;
    section.figure("log payload", payload, "bytes/event");
    let on_disk = (after.disk_bytes - before.disk_bytes) / ingested.facts;
    section.figure("log on disk", on_disk, "bytes/event");
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
            takes_differences: false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hub_generator_and_disk_are_told_apart() {
        let usage = Usage::of(std::process::id()).expect("we run");
        let hub = |cpu_seconds| Usage { cpu_seconds, ..usage };
        let counters = |syncs, append_seconds| Counters {
            syncs,
            append_seconds,
            ..Counters::default()
        };
        let mut latency = latencies().expect("valid");
        latency.record(3_000).expect("in range");
        let ingested = Ingested {
            facts: 200_000.0,
            bytes: AIM_FACT_BYTES,
            seconds: 2.0,
            latency,
            usage: [hub(1.0), hub(2.5)],
            generator: GeneratorTime {
                cpu_seconds: 2.0,
                seconds: 2.0,
            },
            counters: [counters(10.0, 1.0), counters(110.0, 2.0)],
        };
        let mut section = Section::begin("ingest");
        let disk = tempfile::tempdir().expect("a temporary directory");
        describe(&mut section, &ingested, disk.path()).expect("its disk is probed");
        let lines: Vec<_> = section.figures.iter().map(|figure| figure.line()).collect();
        for (name, value) in [
            ("facts durable", "100,000 facts/s"),
            ("sent to acknowledged p99", "3.00 ms"),
            ("hub processor time ", "0.75 cores"),
            ("generator processor time", "1.00 cores"),
            ("events a sync", "2,000"),
            ("share of the time inside the log", "0.50"),
            ("the disk beside it: sync of 4 KiB p99", "ms"),
        ] {
            let line = lines.iter().find(|line| line.trim_start().starts_with(name));
            assert!(line.is_some_and(|line| line.contains(value)), "{name}: {lines:?}");
        }
    }
}
