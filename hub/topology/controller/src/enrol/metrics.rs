//! Metrics of Clusters that become members, or leave. Absent without enrolment.

use std::collections::BTreeMap;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::decide::Awaited;

/// Gauges.
#[derive(Debug, Clone, Default)]
pub struct EnrolmentMetrics {
    waiting: Family<For, Gauge>,
    failing: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct For {
    r#for: &'static str,
}

/// Every reason to wait, by its label.
const REASONS: [(Awaited, &str); 3] = [
    (Awaited::ControlPlane, "control_plane"),
    (Awaited::Join, "join"),
    (Awaited::Departure, "departure"),
];

impl EnrolmentMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "topology_enrolment_waiting",
            "Clusters that wait: for their control plane, to join with what they were given, for their member to have left",
            metrics.waiting.clone(),
        );
        registry.register(
            "topology_enrolment_failing",
            "Clusters that could not be given what they need to join, or not be let go, and are tried again",
            metrics.failing.clone(),
        );
        metrics.looked(&BTreeMap::new(), 0);
        metrics
    }

    pub(super) fn looked(&self, awaited: &BTreeMap<Awaited, usize>, failing: usize) {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        for (reason, word) in REASONS {
            let count = awaited.get(&reason).copied().unwrap_or(0);
            self.waiting.get_or_create(&For { r#for: word }).set(gauge(count));
        }
        self.failing.set(gauge(failing));
    }
}
