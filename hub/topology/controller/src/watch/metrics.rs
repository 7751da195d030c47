//! Metrics of the observer of topologies. Absent without one.

use prometheus_client::{metrics::gauge::Gauge, registry::Registry};

/// Gauges of the observer.
#[derive(Debug, Clone, Default)]
pub struct TopologyMetrics {
    clusters: Gauge,
    ambiguous: Gauge,
    failing: Gauge,
}

impl TopologyMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "topology_clusters",
            "Clusters of Cluster API that are observed",
            metrics.clusters.clone(),
        );
        registry.register(
            "topology_ambiguous_members",
            "Members that more than one Cluster is said to be: none of those counts",
            metrics.ambiguous.clone(),
        );
        registry.register(
            "topology_failing",
            "1 while Clusters cannot be read in the hub's own Kubernetes cluster",
            metrics.failing.clone(),
        );
        metrics
    }

    pub(super) fn observed(&self, clusters: usize, ambiguous: usize) {
        self.clusters.set(i64::try_from(clusters).unwrap_or(i64::MAX));
        self.ambiguous.set(i64::try_from(ambiguous).unwrap_or(i64::MAX));
    }

    pub(super) fn failing(&self, failing: bool) {
        self.failing.set(failing.into());
    }
}
