//! Metrics of topologies that the hub keeps itself. Absent if it keeps none.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::engine::Count;

/// Gauges and counters.
#[derive(Debug, Clone, Default)]
pub struct OwnMetrics {
    clusters: Family<State, Gauge>,
    writes: Counter,
    failing: Gauge,
    fell_back: Gauge,
    refused: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

impl OwnMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "topology_own_clusters",
            "Clusters whose topologies the hub keeps: as they should be (settled), on their way (working), waiting for \
             other rollouts (held), wrong or refused (failing), left alone (resting)",
            metrics.clusters.clone(),
        );
        registry.register(
            "topology_own_writes",
            "Objects of topologies that the hub has written or deleted",
            metrics.writes.clone(),
        );
        registry.register(
            "topology_own_failing",
            "1 while what topologies are made of cannot be read in the hub's own Kubernetes cluster",
            metrics.failing.clone(),
        );
        registry.register(
            "topology_own_fell_back",
            "1 if another controller keeps topologies there, so that the hub writes nothing",
            metrics.fell_back.clone(),
        );
        registry.register(
            "topology_own_refused",
            "1 while another hub holds the Lease default/tributary-topology there, so that this hub writes nothing",
            metrics.refused.clone(),
        );
        metrics
    }

    pub(super) fn looked(&self, count: &Count) {
        let states = [
            ("settled", count.settled),
            ("working", count.working),
            ("held", count.held),
            ("failing", count.failing),
            ("resting", count.resting),
        ];
        for (state, count) in states {
            let gauge = self.clusters.get_or_create(&State { state });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.writes.inc_by(count.writes as u64);
        self.failing.set(0);
    }

    pub(super) fn failed(&self) {
        self.failing.set(1);
    }

    pub(super) fn refused(&self, refused: bool) {
        self.refused.set(refused.into());
    }

    #[cfg(test)]
    pub(super) fn is_refused(&self) -> bool {
        self.refused.get() == 1
    }

    pub(super) fn fell_back(&self) {
        self.fell_back.set(1);
    }
}
