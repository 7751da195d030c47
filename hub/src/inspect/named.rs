//! Owns: metrics with the names of members, for operators who asked for them (`--member-metrics`): who is lost, on hold, or
//! behind. They are read off what is published, at each scrape.
//! Never: names more members than it may. Those in trouble come first, and one metric counts the others.

use std::{
    fmt,
    sync::{Arc, OnceLock, atomic::AtomicU64},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};
use shared::model::{ClusterId, sync::SourceState};

use crate::{fold::Member, session::Reports, writer::Present};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MemberLabel {
    member: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MemberStateLabel {
    member: String,
    state: &'static str,
}

/// The metrics of one clusterset. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct NamedMembers {
    /// Most members that are named.
    most: usize,
    source: Arc<OnceLock<(Present, Reports)>>,
}

/// One scrape.
#[derive(Default)]
struct Scrape {
    member_state: Family<MemberStateLabel, Gauge>,
    member_exports_held: Family<MemberLabel, Gauge>,
    member_parked: Family<MemberLabel, Gauge>,
    member_waiting: Family<MemberLabel, Gauge<f64, AtomicU64>>,
    members_unnamed: Gauge,
}

/// A member as it is shown.
struct Row {
    cluster: ClusterId,
    state: SourceState,
    held: usize,
    parked: u32,
    waits_millis: u64,
}

impl NamedMembers {
    /// Registers them. They name nobody until there is a hub to ask.
    pub(crate) fn register(most: u16, registry: &mut Registry) -> Self {
        let named = Self {
            most: most.into(),
            source: Arc::default(),
        };
        registry.register_collector(Box::new(named.clone()));
        named
    }

    /// From now on this clusterset is asked.
    pub(crate) fn ask(&self, present: Present, reports: Reports) {
        // It is opened once in a process.
        let _ = self.source.set((present, reports));
    }

    fn scrape(&self) -> Scrape {
        let scrape = Scrape::default();
        let Some((present, reports)) = self.source.get() else {
            return scrape;
        };
        // A writer that stopped knows of no members.
        let Ok(published) = present.read() else {
            return scrape;
        };
        let members = published.state.members().iter();
        let rows = members.filter_map(|(cluster, member)| row(cluster, member, reports));
        scrape.show(rows.collect(), self.most);
        scrape
    }
}

/// `None`: it is no member any more.
fn row(cluster: &ClusterId, member: &Member, reports: &Reports) -> Option<Row> {
    let state = member.source_state();
    if matches!(
        state,
        SourceState::Left | SourceState::Evicted | SourceState::Forgotten
    ) {
        return None;
    }
    let standing = reports.of(cluster).and_then(|report| report.standing);
    let standing = standing
        .filter(|_| state == SourceState::Live)
        .unwrap_or_default();
    let waits_millis = standing
        .waits_since
        .map_or(0, |since| reports.now().saturating_sub(since));
    Some(Row {
        cluster: cluster.clone(),
        state,
        held: member.taken_back().held_exports().count(),
        parked: standing.parked,
        waits_millis,
    })
}

impl Row {
    /// Sorts before members that are well: lost ones first, then those on hold, then those that wait longest.
    fn order(&self) -> impl Ord + use<> {
        let state = match self.state {
            SourceState::Lost => 0,
            SourceState::Suspect => 1,
            _ => 2,
        };
        let waits = std::cmp::Reverse((self.held > 0, self.parked > 0, self.waits_millis));
        (state, waits, self.cluster.clone())
    }
}

impl Scrape {
    fn show(&self, mut rows: Vec<Row>, most: usize) {
        rows.sort_by_cached_key(Row::order);
        let unnamed = rows.len().saturating_sub(most);
        self.members_unnamed
            .set(i64::try_from(unnamed).unwrap_or(i64::MAX));
        for row in rows.into_iter().take(most) {
            let member = row.cluster.to_string();
            let label = MemberLabel {
                member: member.clone(),
            };
            let state = row.state.as_str();
            self.member_state
                .get_or_create(&MemberStateLabel { member, state })
                .set(1);
            let held = i64::try_from(row.held).unwrap_or(i64::MAX);
            self.member_exports_held.get_or_create(&label).set(held);
            self.member_parked.get_or_create(&label).set(row.parked.into());
            let waits = row.waits_millis as f64 / 1e3;
            self.member_waiting.get_or_create(&label).set(waits);
        }
    }

    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "1 for the state of each member that is named";
        let kind = self.member_state.metric_type();
        self.member_state
            .encode(encoder.encode_descriptor("member_state", help, None, kind)?)?;
        let help = "ServiceExports of the member that were taken back and count all the same";
        let kind = self.member_exports_held.metric_type();
        self.member_exports_held.encode(encoder.encode_descriptor(
            "member_exports_held",
            help,
            None,
            kind,
        )?)?;
        let help = "Services that the member cannot bring to what it was sent";
        let kind = self.member_parked.metric_type();
        self.member_parked
            .encode(encoder.encode_descriptor("member_parked", help, None, kind)?)?;
        let help =
            "How long the oldest change waits that the member was sent and does not say to have applied";
        let unit = Some(&Unit::Seconds);
        let kind = self.member_waiting.metric_type();
        self.member_waiting
            .encode(encoder.encode_descriptor("member_waiting", help, unit, kind)?)?;
        let help = "Members beyond --member-metrics, which no metric names; those in trouble are named first";
        let kind = self.members_unnamed.metric_type();
        self.members_unnamed
            .encode(encoder.encode_descriptor("members_unnamed", help, None, kind)?)
    }
}

impl Collector for NamedMembers {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.scrape().encode(encoder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Shown(Vec<(&'static str, SourceState, usize, u64)>, usize);

    impl Collector for Shown {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
            let row = |(cluster, state, held, waits_millis): &(&str, SourceState, usize, u64)| Row {
                cluster: ClusterId::new(cluster).expect("valid"),
                state: *state,
                held: *held,
                parked: 0,
                waits_millis: *waits_millis,
            };
            let scrape = Scrape::default();
            scrape.show(self.0.iter().map(row).collect(), self.1);
            scrape.encode(encoder)
        }
    }

    #[test]
    fn members_in_trouble_are_named_first_and_the_others_are_counted() {
        let members = vec![
            ("a-well", SourceState::Live, 0, 0),
            ("b-slow", SourceState::Live, 0, 90_000),
            ("c-lost", SourceState::Lost, 0, 0),
            ("d-held", SourceState::Live, 7, 0),
            ("e-quiet", SourceState::Suspect, 0, 0),
        ];
        let text = |most| {
            let mut registry = Registry::default();
            registry.register_collector(Box::new(Shown(members.clone(), most)));
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).expect("encoded");
            text
        };
        let few = text(4);
        for line in [
            r#"member_state{member="c-lost",state="lost"} 1"#,
            r#"member_state{member="e-quiet",state="suspect"} 1"#,
            r#"member_exports_held{member="d-held"} 7"#,
            r#"member_waiting_seconds{member="b-slow"} 90.0"#,
            "members_unnamed 1",
        ] {
            assert!(few.contains(line), "{line}: {few}");
        }
        assert!(!few.contains("a-well"), "{few}");
        assert!(text(3).contains("members_unnamed 2") && !text(3).contains("b-slow"));
        assert!(text(5).contains("a-well") && text(5).contains("members_unnamed 0"));
    }
}
