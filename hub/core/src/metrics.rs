//! Every metric of the hub, with its meaning. Label sets are closed; no cluster or service name is a label.

use std::sync::atomic::{AtomicU64, Ordering};

use model::{
    ConflictReason, DenialReason,
    sync::{RefusalReason, Source, SourceState},
};
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

use event_log::{Space, Stats};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    reason: ReasonLabel,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ReasonLabel(RefusalReason);

impl EncodeLabelValue for ReasonLabel {
    fn encode(
        &self,
        encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>,
    ) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(&self.0.as_str(), encoder)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConflictLabel {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ContestLabel {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TotalLabel {
    of: &'static str,
}

/// The older export got the first place.
const CONTEST_TAKEN: &str = "taken";
/// The first export kept its place.
const CONTEST_HELD: &str = "held";

/// The writer's metrics.
#[derive(Debug, Clone)]
pub struct WriterMetrics {
    events: Counter,
    batches: Counter,
    batch_bytes: Counter,
    append_seconds: Histogram,
    refused: Family<RefusalLabels, Counter>,
    sessions: Gauge,
    members: Family<StateLabel, Gauge>,
    conflicts: Family<ConflictLabel, Gauge>,
    precedence_contests: Family<ContestLabel, Counter>,
    exports_refused: Family<ConflictLabel, Gauge>,
    members_over_budget: Gauge,
    state_used: Family<TotalLabel, Gauge<u64, AtomicU64>>,
    state_limit: Family<TotalLabel, Gauge<u64, AtomicU64>>,
    members_held: Gauge,
    members_leaving: Gauge,
    exports_held: Gauge,
    epochs_begun: Counter,
    not_served: Gauge,
    derived_anew: Counter,
    log_bytes: Gauge<u64, AtomicU64>,
    log_segments: Gauge<u64, AtomicU64>,
    log_oldest_revision: Gauge<u64, AtomicU64>,
    log_syncs: Counter,
    disk_free: Gauge<u64, AtomicU64>,
    disk_size: Gauge<u64, AtomicU64>,
    growth_refused: Gauge<u64, AtomicU64>,
}

impl Default for WriterMetrics {
    fn default() -> Self {
        Self {
            events: Counter::default(),
            batches: Counter::default(),
            batch_bytes: Counter::default(),
            append_seconds: Histogram::new(exponential_buckets(0.000_1, 2.0, 16)),
            refused: Family::default(),
            sessions: Gauge::default(),
            members: Family::default(),
            conflicts: Family::default(),
            precedence_contests: Family::default(),
            exports_refused: Family::default(),
            members_over_budget: Gauge::default(),
            state_used: Family::default(),
            state_limit: Family::default(),
            members_held: Gauge::default(),
            members_leaving: Gauge::default(),
            exports_held: Gauge::default(),
            epochs_begun: Counter::default(),
            not_served: Gauge::default(),
            derived_anew: Counter::default(),
            log_bytes: Gauge::default(),
            log_segments: Gauge::default(),
            log_oldest_revision: Gauge::default(),
            log_syncs: Counter::default(),
            disk_free: Gauge::default(),
            disk_size: Gauge::default(),
            growth_refused: Gauge::default(),
        }
    }
}

impl WriterMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("events_recorded", "Events made durable", metrics.events.clone());
        registry.register(
            "log_batches",
            "Batches made durable, each with one sync",
            metrics.batches.clone(),
        );
        registry.register_with_unit(
            "log_appended",
            "Payload bytes of events made durable",
            Unit::Bytes,
            metrics.batch_bytes.clone(),
        );
        registry.register_with_unit(
            "log_append",
            "Time from handing a batch to the log until it is durable",
            Unit::Seconds,
            metrics.append_seconds.clone(),
        );
        registry.register(
            "facts_refused",
            "Items of members that were not taken, by reason",
            metrics.refused.clone(),
        );
        registry.register("sessions", "Open sessions of members", metrics.sessions.clone());
        registry.register(
            "members",
            "Clusters that are or were members, by state",
            metrics.members.clone(),
        );
        registry.register(
            "exports_in_conflict",
            "ServiceExports with a conflict, by reason",
            metrics.conflicts.clone(),
        );
        registry.register(
            "epochs_begun",
            "Epochs begun because a member showed that the log was rewound, or knew a later one",
            metrics.epochs_begun.clone(),
        );
        registry.register(
            "not_served",
            "1 while nobody is served, because members know a later epoch",
            metrics.not_served.clone(),
        );
        metrics.register_snapshots(registry);
        metrics.register_policy(registry);
        metrics.register_log(registry);
        metrics.count_from_zero();
        metrics
    }

    /// Every reason is there from the start, at zero, so that the first time shows as an increase.
    fn count_from_zero(&self) {
        for reason in RefusalReason::ALL {
            drop(self.refused.get_or_create(&RefusalLabels {
                reason: ReasonLabel(reason),
            }));
        }
        for outcome in [CONTEST_TAKEN, CONTEST_HELD] {
            drop(self.precedence_contests.get_or_create(&ContestLabel { outcome }));
        }
    }

    /// Registers the metrics of a start.
    pub(crate) fn register_snapshots(&self, registry: &mut Registry) {
        registry.register(
            "snapshots_derived_anew",
            "Starts over a snapshot with derived objects that do not follow from its facts and were derived anew",
            self.derived_anew.clone(),
        );
    }

    /// Registers the metrics of policy and precedence.
    fn register_policy(&self, registry: &mut Registry) {
        registry.register(
            "exports_refused",
            "ServiceExports that were reported and are not taken, by reason",
            self.exports_refused.clone(),
        );
        registry.register(
            "members_over_budget",
            "Connected members of which something waits because their budget has no room for it",
            self.members_over_budget.clone(),
        );
        registry.register(
            "state_used",
            "What all members have recorded: exports, endpoint_slices, and an estimate of the bytes of memory",
            self.state_used.clone(),
        );
        registry.register(
            "state_limit",
            "How much of that all members together may have",
            self.state_limit.clone(),
        );
        registry.register(
            "members_leaving",
            "Members that are to leave, as an operator said",
            self.members_leaving.clone(),
        );
        registry.register(
            "members_held",
            "Members whose removal brake is engaged, because they took back most of their exports at once",
            self.members_held.clone(),
        );
        registry.register(
            "exports_held",
            "ServiceExports that were taken back and count all the same, by the removal brake",
            self.exports_held.clone(),
        );
        registry.register(
            "precedence_contests",
            "Exports that stated to be older than the one that stood first, by outcome: taken or held",
            self.precedence_contests.clone(),
        );
    }

    /// Registers the metrics of the log's intake and size.
    fn register_log(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "log_on_disk",
            "Bytes the event log takes on its volume; retention keeps them within --retention-bytes",
            Unit::Bytes,
            self.log_bytes.clone(),
        );
        registry.register(
            "log_segments",
            "Segments of the log that are kept, with the one that is written to",
            self.log_segments.clone(),
        );
        registry.register(
            "log_oldest_revision",
            "The first revision of the current epoch that is kept",
            self.log_oldest_revision.clone(),
        );
        registry.register(
            "log_syncs",
            "Syncs of the log since the hub started",
            self.log_syncs.clone(),
        );
        registry.register(
            "log_disk_free_bytes",
            "Bytes that are free on the disk under the event log",
            self.disk_free.clone(),
        );
        registry.register(
            "log_disk_size_bytes",
            "Size of the disk under the event log",
            self.disk_size.clone(),
        );
        registry.register(
            "growth_refused",
            "1 while new exports, slices and members are refused because that disk is nearly full",
            self.growth_refused.clone(),
        );
    }

    /// A batch became durable.
    pub fn observe_batch(&self, events: usize, bytes: usize, micros: u64) {
        self.events.inc_by(events as u64);
        self.batches.inc();
        self.batch_bytes.inc_by(bytes as u64);
        self.append_seconds.observe(micros as f64 / 1e6);
    }

    /// An item was refused.
    pub fn refused(&self, reason: RefusalReason) {
        self.refused
            .get_or_create(&RefusalLabels {
                reason: ReasonLabel(reason),
            })
            .inc();
    }

    /// A new epoch began on a member's word.
    pub fn epoch_begun(&self) {
        self.epochs_begun.inc();
    }

    /// Records if the clusterset is served.
    pub fn served(&self, serves: bool) {
        self.not_served.set(i64::from(!serves));
    }

    /// The hub started over a snapshot with derived objects that do not follow from its facts.
    pub fn derived_anew(&self) {
        self.derived_anew.inc();
    }

    /// All clusters that are known.
    pub fn members(&self, sources: &[Source]) {
        for state in SourceState::ALL {
            let count = sources.iter().filter(|source| source.state == state).count();
            let state = state.as_str();
            self.members
                .get_or_create(&StateLabel { state })
                .set(count as i64);
        }
    }

    /// Sets the number of exports in conflict by reason.
    pub fn conflicts(&self, count: impl Fn(ConflictReason) -> u64) {
        for reason in ConflictReason::ALL {
            let label = ConflictLabel {
                reason: reason.as_str(),
            };
            self.conflicts.get_or_create(&label).set(count(reason) as i64);
        }
    }

    /// Sets the number of refused exports by reason.
    pub fn exports_refused(&self, count: impl Fn(DenialReason) -> u64) {
        for reason in [DenialReason::Namespace, DenialReason::Policy] {
            let label = ConflictLabel {
                reason: reason.as_str(),
            };
            self.exports_refused
                .get_or_create(&label)
                .set(count(reason) as i64);
        }
    }

    /// Number of members with items that wait for room in their budgets.
    pub fn members_over_budget(&self, members: usize) {
        self.members_over_budget.set(members as i64);
    }

    /// Shows how much all members have recorded `of` something, and may have.
    pub fn observe_state(&self, of: &'static str, used: u64, limit: u64) {
        let label = TotalLabel { of };
        self.state_used.get_or_create(&label).set(used);
        self.state_limit.get_or_create(&label).set(limit);
    }

    /// Sets the number of members that are to leave.
    pub fn leaving(&self, members: usize) {
        self.members_leaving.set(members as i64);
    }

    /// Sets the number of members on hold, and of their exports.
    pub fn held(&self, (members, exports): (usize, usize)) {
        self.members_held.set(members as i64);
        self.exports_held.set(exports as i64);
    }

    /// An export claimed to be older than the first one, which keeps its place or does not.
    pub fn precedence_contested(&self, held: bool) {
        let outcome = if held { CONTEST_HELD } else { CONTEST_TAKEN };
        self.precedence_contests
            .get_or_create(&ContestLabel { outcome })
            .inc();
    }

    /// Sets the number of open sessions.
    pub fn sessions(&self, open: usize) {
        self.sessions.set(open as i64);
    }

    /// The log's figures.
    pub fn observe_log(&self, stats: &Stats) {
        self.log_bytes.set(stats.bytes_on_disk);
        self.log_segments.set(stats.segments);
        self.log_oldest_revision.set(stats.oldest_revision.0);
        self.log_syncs.inner().store(stats.sync_count, Ordering::Relaxed);
    }

    /// The disk under the log, where its size can be told.
    pub fn observe_disk(&self, space: Option<Space>, refuses_growth: bool) {
        if let Some(Space { free, total }) = space {
            self.disk_free.set(free);
            self.disk_size.set(total);
        }
        self.growth_refused.set(u64::from(refuses_growth));
    }
}
