//! Owns: shape replay: a log of so many events without a snapshot, and a hub that starts over it.
//! Never: writes a log in another way than a hub does: the log's own code makes it.

use std::path::Path;

use anyhow::Context;
use hub::log::{self, Batch, Log};
use shared::{
    model::{
        ClusterId, EncodedFact, Epoch, Event, Fact, KeyFingerprint, KeyTerms, ListingGroup, Revision,
        SessionId, UnixMillis,
    },
    wire,
};

use super::{
    cores::UsedCores,
    facts::{self, Size, SliceTemplate},
    figure::Aim,
    hub::{HubProcess, Setup},
    report::Section,
};

/// Clusters in the log, and the slices of each, updated in turn.
const MEMBERS: usize = 10;
const MEMBER_SLICES: usize = 1_000;
/// Bytes of a fact.
const FACT_BYTES: usize = 400;
/// Events of one append.
const APPEND_EVENTS: usize = 4_096;
/// Aim of a start.
const EVENTS_PER_SECOND_AIM: f64 = 300_000.0;
/// Time of the log's first event, and the time between two events.
const FIRST_RECORDED: u64 = 1_700_000_000_000;

/// Measures the start of a hub over a log of so many events.
pub(super) async fn measure(setup: &Setup, events: usize) -> anyhow::Result<Section> {
    let mut section = Section::begin(format!(
        "replay, {events} events of {FACT_BYTES} bytes, no snapshot"
    ));
    let data = setup.data("replay")?;
    let (place, clusterset) = (data.clone(), setup.clusterset().clone());
    let head = tokio::task::spawn_blocking(move || write(&place, &clusterset, events)).await??;
    let hub = HubProcess::start(setup, &data, UsedCores::AllCores).await?;
    let (replayed, usage) = (hub.replayed()?, hub.usage()?);
    anyhow::ensure!(
        replayed.revision == head.0,
        "the hub replayed up to {}, not {}",
        replayed.revision,
        head.0
    );
    let seconds = replayed.millis.max(1) as f64 / 1e3;
    section.aimed(
        "replayed, verified and folded",
        head.0 as f64 / seconds,
        "events/s",
        Aim::AtLeast(EVENTS_PER_SECOND_AIM),
    );
    section.figure("replay", seconds, "s");
    section.figure(
        "from the start of the process to serving",
        hub.serving_after().as_secs_f64(),
        "s",
    );
    section.figure("hub processor time", usage.cpu_seconds, "s");
    section.figure("hub memory", usage.resident as f64 / 1e6, "MB");
    section.figure(
        "log on disk",
        hub.settled_counters(0.0).await?.disk_bytes / head.0 as f64,
        "bytes/event",
    );
    section.note("the hub may use all cores here: the generator waits");
    hub.kill().await?;
    Ok(section)
}

/// Writes the log; its head.
fn write(data: &Path, clusterset: &shared::model::Clusterset, events: usize) -> anyhow::Result<Revision> {
    let epoch = Epoch::default().next(UnixMillis(FIRST_RECORDED), 1);
    let mut writing = Writing {
        log: log::open(data, clusterset, epoch).context("cannot make the log")?,
        payloads: Vec::with_capacity(APPEND_EVENTS),
        next: Revision(1),
    };
    let mut members = Vec::new();
    for index in 0..MEMBERS {
        members.push(writing.member(index)?);
    }
    let mut number = 0;
    while writing.next.0 <= events as u64 {
        let (cluster, incarnation, slices) = &members[number % MEMBERS];
        let slice = &slices[number / MEMBERS % MEMBER_SLICES];
        let fact = wire::decode_member_fact(slice.numbered(number as u32))?;
        writing.event(cluster, *incarnation, fact)?;
        number += 1;
    }
    writing.flush()?;
    Ok(Revision(writing.next.0 - 1))
}

struct Writing {
    log: Box<dyn Log>,
    payloads: Vec<Vec<u8>>,
    next: Revision,
}

type WrittenMember = (ClusterId, Revision, Vec<SliceTemplate>);

impl Writing {
    /// A member joins, lists its exports, and is complete.
    fn member(&mut self, index: usize) -> anyhow::Result<WrittenMember> {
        let cluster = ClusterId::new(&format!("member-{index:04}"))?;
        let incarnation = self.next;
        let joined = Fact::MemberJoined {
            key: KeyFingerprint([index as u8 + 1; 32]),
            cluster_fingerprint: format!("fingerprint-of-{cluster}").into(),
            terms: KeyTerms::default(),
        };
        self.event(&cluster, incarnation, wire::encode_fact(&joined))?;
        let namespace = format!("team-{index:04}");
        let name = |service: usize| format!("cart-{service:05}-abcde");
        let size = Size::of(&facts::service(&namespace, 0)?, &name(0), FACT_BYTES)?;
        let mut slices = Vec::new();
        for service in 0..MEMBER_SLICES {
            let key = facts::service(&namespace, service)?;
            let export = facts::export(&key, index * MEMBER_SLICES + service, false);
            self.event(&cluster, incarnation, wire::decode_member_fact(export)?)?;
            slices.push(size.slice(&key, &name(service)));
        }
        let listed = Fact::ListingCompleted(ListingGroup::Exports);
        self.event(&cluster, incarnation, wire::encode_fact(&listed))?;
        Ok((cluster, incarnation, slices))
    }

    fn event(&mut self, cluster: &ClusterId, incarnation: Revision, fact: EncodedFact) -> anyhow::Result<()> {
        let event = Event {
            revision: self.next,
            recorded_at: UnixMillis(FIRST_RECORDED + self.next.0),
            cluster: Some(cluster.clone()),
            incarnation,
            session: SessionId(1),
            member_sequence: self.next.0,
            fact,
            changed_by: None,
        };
        self.payloads.push(wire::encode_event(&event));
        self.next = self.next.next();
        if self.payloads.len() == APPEND_EVENTS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if !self.payloads.is_empty() {
            let batch = Batch::new(self.log.head(), std::mem::take(&mut self.payloads))?;
            self.log.append_and_wait(batch)?;
        }
        Ok(())
    }
}
