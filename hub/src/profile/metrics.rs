//! Metrics of the profile writer. Labels are closed sets of words; no cluster is a label.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use shared::api_client::{ApiMetrics, ServedVersions};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    action: &'static str,
    outcome: &'static str,
}

/// Counters of the profile writer; clones count together.
#[derive(Debug, Clone, Default)]
pub struct ProfileMetrics {
    /// Requests to the hub's own Kubernetes cluster.
    pub(super) api: ApiMetrics,
    /// In which version ClusterProfiles are served there.
    pub(super) versions: ServedVersions,
    writes: Family<WriteLabels, Counter>,
    waiting: Gauge,
    not_ours: Gauge,
    failing: Gauge,
}

impl ProfileMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            api: ApiMetrics::register(registry),
            ..Self::default()
        };
        let help = "1 for the version in which the hub's own cluster serves the kind, by kind and version";
        registry.register("served_version", help, metrics.versions.shown());
        registry.register(
            "profile_writes",
            "Writes of ClusterProfiles: action `apply` or `delete`, outcome `written`, `not_ours` or `failed`",
            metrics.writes.clone(),
        );
        registry.register(
            "profiles_waiting",
            "ClusterProfiles whose change waits for the write budget or the next try",
            metrics.waiting.clone(),
        );
        registry.register(
            "profiles_not_ours",
            "Members whose ClusterProfile somebody else made: it is not touched",
            metrics.not_ours.clone(),
        );
        registry.register(
            "profiles_failing",
            "1 while the hub's own Kubernetes cluster does not take or show ClusterProfiles",
            metrics.failing.clone(),
        );
        metrics
    }

    pub(super) fn wrote(&self, action: &'static str, outcome: &'static str) {
        self.writes.get_or_create(&WriteLabels { action, outcome }).inc();
    }

    pub(super) fn waiting(&self, count: usize) {
        self.waiting.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(super) fn not_ours(&self, count: usize) {
        self.not_ours.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(super) fn failing(&self, failing: bool) {
        self.failing.set(failing.into());
    }
}
