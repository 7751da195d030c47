//! Owns: what is refused at the door, counted. Label values are a closed set of words.
//! Never: names who was refused.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    reason: &'static str,
}

/// The reasons, which are there from the start, at zero.
const REASONS: [&str; 2] = ["calls", "before_hello"];

/// Counters of the doors; clones count together.
#[derive(Debug, Clone, Default)]
pub struct DoorMetrics {
    refused: Family<Refused, Counter>,
}

impl DoorMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        for reason in REASONS {
            drop(metrics.refused.get_or_create(&Refused { reason }));
        }
        registry.register(
            "calls_refused",
            "Calls refused because of what their identity has open: as many calls as it may have (calls), more bytes \
             than are taken of a stream without Hello (before_hello)",
            metrics.refused.clone(),
        );
        metrics
    }

    pub(super) fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&Refused { reason }).inc();
    }

    /// Number of refusals for this reason.
    #[cfg(test)]
    pub(super) fn count(&self, reason: &'static str) -> u64 {
        self.refused.get_or_create(&Refused { reason }).get()
    }
}
