//! Metrics of comparisons. Absent without them.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// Gauges and counters of comparisons.
#[derive(Debug, Clone, Default)]
pub struct ShadowMetrics {
    clusters: Family<Agreement, Gauge>,
    findings: Gauge,
    failing: Gauge,
    comparisons: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Agreement {
    plan: &'static str,
}

impl ShadowMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "topology_shadow_clusters",
            "Clusters that are as they would be planned (agrees), and those that are not (differs), at the last comparison",
            metrics.clusters.clone(),
        );
        registry.register(
            "topology_shadow_findings",
            "What was wrong at the last comparison; the Clusters that it is about have no plan",
            metrics.findings.clone(),
        );
        registry.register(
            "topology_shadow_failing",
            "1 while what is compared cannot be read in the hub's own Kubernetes cluster",
            metrics.failing.clone(),
        );
        registry.register(
            "topology_shadow_comparisons",
            "Comparisons of what is there with what would be planned",
            metrics.comparisons.clone(),
        );
        metrics
    }

    pub(super) fn compared(&self, (agrees, differs): (usize, usize), findings: usize) {
        for (plan, count) in [("agrees", agrees), ("differs", differs)] {
            let gauge = self.clusters.get_or_create(&Agreement { plan });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.findings.set(i64::try_from(findings).unwrap_or(i64::MAX));
        self.failing.set(0);
        self.comparisons.inc();
    }

    pub(super) fn failed(&self) {
        self.failing.set(1);
    }
}
