//! Metrics of sessions. Label values are closed sets of words; no cluster name is a label.

use model::sync::HubMessage;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

use super::unacknowledged::InFlight;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Admitted {
    from: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Rejected {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Renewal {
    result: &'static str,
}

/// Why sessions are refused or ended, which are there from the start, at zero.
const REJECTED: [&str; 11] = [
    "other_clusterset",
    "not_a_member",
    "held",
    "membership",
    "membership_ended",
    "duplicate_identity",
    "not_serving",
    "doubted",
    "new_epoch",
    "too_often",
    "protocol",
];
const FROM_CURSOR: &str = "cursor";
const FROM_SNAPSHOT: &str = "snapshot";
const CERTIFIED: &str = "certified";
const REFUSED: &str = "refused";

/// Counters of the sync service.
#[derive(Debug, Clone)]
pub struct SyncMetrics {
    admitted: Family<Admitted, Counter>,
    rejected: Family<Rejected, Counter>,
    snapshots_begun: Counter,
    items_pushed: Counter,
    bytes_pushed: Counter,
    differences_pushed: Counter,
    items_wanted: Counter,
    renewals: Family<Renewal, Counter>,
    applied: Histogram,
    in_flight: InFlight,
}

impl Default for SyncMetrics {
    fn default() -> Self {
        Self {
            admitted: Family::default(),
            rejected: Family::default(),
            snapshots_begun: Counter::default(),
            items_pushed: Counter::default(),
            bytes_pushed: Counter::default(),
            differences_pushed: Counter::default(),
            items_wanted: Counter::default(),
            renewals: Family::default(),
            // From 5 ms to 11 minutes.
            applied: Histogram::new(exponential_buckets(0.005, 2.0, 18)),
            in_flight: InFlight::default(),
        }
    }
}

impl SyncMetrics {
    /// The bytes of all sessions that are not acknowledged.
    pub(super) fn in_flight(&self) -> InFlight {
        self.in_flight.clone()
    }

    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        metrics.count_from_zero();
        registry.register(
            "sessions_admitted",
            "Sessions admitted; from `cursor` (resumed) or from `snapshot`",
            metrics.admitted.clone(),
        );
        registry.register(
            "sessions_rejected",
            format!("Sessions refused or ended for a reason: {}", REJECTED.join(", ")),
            metrics.rejected.clone(),
        );
        registry.register_with_unit(
            "facts_in_flight",
            "Facts that were read from members and are not acknowledged to them yet",
            Unit::Bytes,
            metrics.in_flight.0.clone(),
        );
        registry.register(
            "snapshots_begun",
            "Snapshots begun: for sessions that cannot resume, and again for a member that fell behind the oldest \
             removal on record",
            metrics.snapshots_begun.clone(),
        );
        registry.register(
            "items_pushed",
            "Derived objects sent to members",
            metrics.items_pushed.clone(),
        );
        registry.register(
            "bytes_pushed",
            "Bytes of derived objects sent",
            metrics.bytes_pushed.clone(),
        );
        registry.register(
            "differences_pushed",
            "Derived objects of which only the difference was sent",
            metrics.differences_pushed.clone(),
        );
        registry.register(
            "items_wanted",
            "Derived objects that members asked for whole, because a difference did not lead from what they hold",
            metrics.items_wanted.clone(),
        );
        registry.register(
            "renewals",
            "Certificates that members asked for over their sessions, by result: certified, refused",
            metrics.renewals.clone(),
        );
        registry.register_with_unit(
            "applied",
            "Time from when a change was recorded until a member that it concerns said that it stands in its cluster; \
             members that come with a snapshot are not in it",
            Unit::Seconds,
            metrics.applied.clone(),
        );
        metrics
    }

    /// Every label is there from the start, at zero, so that the first time shows as an increase.
    fn count_from_zero(&self) {
        for reason in REJECTED {
            drop(self.rejected.get_or_create(&Rejected { reason }));
        }
        for from in [FROM_CURSOR, FROM_SNAPSHOT] {
            drop(self.admitted.get_or_create(&Admitted { from }));
        }
        for result in [CERTIFIED, REFUSED] {
            drop(self.renewals.get_or_create(&Renewal { result }));
        }
    }

    /// A member reported changes as applied, each of which took so many milliseconds.
    pub fn applied(&self, took: &[u64]) {
        for millis in took {
            self.applied.observe(*millis as f64 / 1e3);
        }
    }

    /// A session was admitted.
    pub fn admitted(&self, resume: bool) {
        let from = if resume { FROM_CURSOR } else { FROM_SNAPSHOT };
        self.admitted.get_or_create(&Admitted { from }).inc();
    }

    /// A session was refused, or ended by the hub.
    pub fn rejected(&self, reason: &'static str) {
        debug_assert!(REJECTED.contains(&reason), "{reason} is not there from the start");
        self.rejected.get_or_create(&Rejected { reason }).inc();
    }

    /// A member asked for a certificate, and was given one or not.
    pub fn renewed(&self, certified: bool) {
        let result = if certified { CERTIFIED } else { REFUSED };
        self.renewals.get_or_create(&Renewal { result }).inc();
    }

    /// A member asks for so many objects whole.
    pub fn wanted(&self, items: usize) {
        self.items_wanted.inc_by(items as u64);
    }

    /// A message goes out, with so many differences among its items.
    pub fn sent(&self, message: &HubMessage, differences: u64) {
        self.differences_pushed.inc_by(differences);
        match message {
            HubMessage::Desired { items, .. } => {
                self.items_pushed.inc_by(items.len() as u64);
                self.bytes_pushed
                    .inc_by(items.iter().map(|item| item.len() as u64).sum());
            }
            HubMessage::SnapshotBegin { .. } => drop(self.snapshots_begun.inc()),
            _ => {}
        }
    }
}
