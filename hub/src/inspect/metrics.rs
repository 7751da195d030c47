//! Metrics of inspection. Labels are closed sets of words; no name is a label.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use tonic::Code;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    code: &'static str,
}

/// Counters of the inspection services; clones count together.
#[derive(Debug, Clone, Default)]
pub struct InspectionMetrics {
    requests: Family<RequestLabels, Counter>,
    watches: Gauge,
    events_watched: Counter,
}

impl InspectionMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "inspection_requests",
            "Requests of people and tools, by method (Service/Method) and gRPC code; a watch counts when it begins",
            metrics.requests.clone(),
        );
        registry.register(
            "inspection_watches",
            "Watches of the event log that are open",
            metrics.watches.clone(),
        );
        registry.register(
            "inspection_events_watched",
            "Events sent to watches",
            metrics.events_watched.clone(),
        );
        metrics
    }

    pub(super) fn request(&self, method: &'static str, code: Code) {
        self.requests
            .get_or_create(&RequestLabels {
                method,
                code: word(code),
            })
            .inc();
    }

    pub(super) fn event_watched(&self) {
        self.events_watched.inc();
    }

    /// Counts a watch as open until the result is dropped.
    pub(super) fn watch(&self) -> OpenWatch {
        self.watches.inc();
        OpenWatch(self.watches.clone())
    }
}

/// An open watch.
#[derive(Debug)]
pub(super) struct OpenWatch(Gauge);

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn word(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::InvalidArgument => "invalid_argument",
        Code::NotFound => "not_found",
        Code::PermissionDenied => "permission_denied",
        Code::Unauthenticated => "unauthenticated",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::OutOfRange => "out_of_range",
        Code::Aborted => "aborted",
        Code::Unavailable => "unavailable",
        Code::Internal => "internal",
        _ => "other",
    }
}
