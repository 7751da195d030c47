//! Metrics of the webhook: its answers, and the time left for its certificate. Absent without it.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{counter::Counter, family::Family, gauge::ConstGauge},
    registry::Registry,
};
use shared::tls::ServedCertificate;

use crate::admission::Outcome;

/// The answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// With a verdict.
    Given(Outcome),
    /// It was none.
    Malformed,
    /// Too late.
    Overdue,
    /// Not at all: a mistake of ours.
    Failed,
}

impl Answer {
    const ALL: [Self; 7] = [
        Self::Given(Outcome::Allowed),
        Self::Given(Outcome::Warned),
        Self::Given(Outcome::Refused),
        Self::Given(Outcome::Unread),
        Self::Malformed,
        Self::Overdue,
        Self::Failed,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Given(Outcome::Allowed) => "allowed",
            Self::Given(Outcome::Warned) => "warned",
            Self::Given(Outcome::Refused) => "refused",
            Self::Given(Outcome::Unread) => "unread",
            Self::Malformed => "malformed",
            Self::Overdue => "overdue",
            Self::Failed => "failed",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    answer: &'static str,
}

/// Counters of a webhook; clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct WebhookMetrics(Family<Labels, Counter>);

impl WebhookMetrics {
    /// Makes the metrics and registers them.
    pub(super) fn register(registry: &mut Registry, certificate: Arc<ServedCertificate>) -> Self {
        let metrics = Self::default();
        metrics.register_answers(registry);
        registry.register_collector(Box::new(Expiry(certificate)));
        metrics
    }

    /// Registers the answers; every one is there from the start, at zero.
    pub(super) fn register_answers(&self, registry: &mut Registry) {
        for answer in Answer::ALL {
            let labels = Labels {
                answer: answer.word(),
            };
            drop(self.0.get_or_create(&labels));
        }
        registry.register(
            "topology_webhook_reviews",
            "What API servers asked about ClusterClasses and Clusters, by the answer",
            self.0.clone(),
        );
    }

    pub(super) fn answered(&self, answer: Answer) {
        let labels = Labels {
            answer: answer.word(),
        };
        self.0.get_or_create(&labels).inc();
    }
}

struct Expiry(Arc<ServedCertificate>);

impl fmt::Debug for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Expiry")
    }
}

impl Collector for Expiry {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let gauge = ConstGauge::new(self.0.expires_in_seconds());
        let help = "Seconds until the certificate of the admission webhook expires";
        let name = "topology_webhook_certificate_expires_in_seconds";
        gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
    }
}
