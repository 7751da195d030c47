//! The metrics of TLS: handshakes, reloads, and the time until the certificate expires.
//! Labels are closed sets; no metric names a peer.

use std::sync::Arc;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, EncodeMetric, LabelValueEncoder},
    metrics::{counter::Counter, family::Family, gauge::ConstGauge},
    registry::Registry,
};

use super::{clock::now, live::LiveCredentials};

/// The outcome of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Handshake {
    /// A connection was made.
    Completed,
    /// One side refused the other's certificate, or they speak different protocols.
    Refused,
    /// The peer went away.
    Disconnected,
    /// It took too long.
    TimedOut,
    /// It was not finished, and was closed for a newer one.
    Displaced,
    /// Its peer has as many connections as one identity may have.
    Crowded,
    /// There are as many connections as there may be.
    Full,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HandshakeLabels {
    outcome: Handshake,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    outcome: ReloadOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ReloadOutcome {
    Loaded,
    Refused,
}

impl Handshake {
    const ALL: [Self; 7] = [
        Self::Completed,
        Self::Refused,
        Self::Disconnected,
        Self::TimedOut,
        Self::Displaced,
        Self::Crowded,
        Self::Full,
    ];

    /// The value of the label `outcome`.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Refused => "refused",
            Self::Disconnected => "disconnected",
            Self::TimedOut => "timed_out",
            Self::Displaced => "displaced",
            Self::Crowded => "crowded",
            Self::Full => "full",
        }
    }
}

impl EncodeLabelValue for Handshake {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.label().encode(encoder)
    }
}

impl EncodeLabelValue for ReloadOutcome {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        match self {
            Self::Loaded => "loaded".encode(encoder),
            Self::Refused => "refused".encode(encoder),
        }
    }
}

/// Counters of one process's TLS; clones count together.
#[derive(Clone, Default)]
pub struct TlsMetrics {
    handshakes: Family<HandshakeLabels, Counter>,
    reloads: Family<ReloadLabels, Counter>,
    displaced: Counter,
    flooded: Counter,
}

impl TlsMetrics {
    /// Adds them to a registry: `tls_handshakes_total{outcome}`, `tls_reloads_total{outcome}`,
    /// `tls_connections_displaced_total` and `tls_connections_flooded_total`.
    /// Every outcome is there from the start, at zero, so that a first failure shows as an increase.
    pub fn register(&self, registry: &mut Registry) {
        for outcome in Handshake::ALL {
            drop(self.handshakes.get_or_create(&HandshakeLabels { outcome }));
        }
        for outcome in [ReloadOutcome::Loaded, ReloadOutcome::Refused] {
            drop(self.reloads.get_or_create(&ReloadLabels { outcome }));
        }
        let handshakes = self.handshakes.clone();
        registry.register(
            "tls_handshakes",
            "TLS handshakes accepted or dialled, by how they ended",
            handshakes,
        );
        let reloads = self.reloads.clone();
        registry.register(
            "tls_reloads",
            "Changed TLS files, by whether they could be used",
            reloads,
        );
        registry.register(
            "tls_connections_displaced",
            "Idle or dead connections that were closed because their holder opened more than one may have",
            self.displaced.clone(),
        );
        registry.register(
            "tls_connections_flooded",
            "Connections that were closed because control frames of HTTP/2 came over them faster than any program sends them",
            self.flooded.clone(),
        );
    }

    /// Counts a connection that was closed for its control frames.
    pub(super) fn flooded(&self) {
        self.flooded.inc();
    }

    /// Connections that were closed for their control frames.
    #[cfg(test)]
    pub(super) fn connections_flooded(&self) -> u64 {
        self.flooded.get()
    }

    /// Counts a connection that was closed for a newer one of its holder.
    pub(super) fn displaced(&self) {
        self.displaced.inc();
    }

    /// Adds `tls_certificate_expires_in_seconds`, computed at each scrape; below zero once it has expired.
    pub fn register_expiry(registry: &mut Registry, live: Arc<LiveCredentials>) {
        registry.register_collector(Box::new(Expiry(live)));
    }

    /// Counts the end of a handshake.
    pub(super) fn handshake(&self, outcome: Handshake) {
        self.handshakes.get_or_create(&HandshakeLabels { outcome }).inc();
    }

    /// Number of handshakes with this outcome.
    pub fn handshakes(&self, outcome: Handshake) -> u64 {
        self.handshakes.get_or_create(&HandshakeLabels { outcome }).get()
    }

    /// Counts a change of the files.
    pub(super) fn reloaded(&self, loaded: bool) {
        let outcome = if loaded {
            ReloadOutcome::Loaded
        } else {
            ReloadOutcome::Refused
        };
        self.reloads.get_or_create(&ReloadLabels { outcome }).inc();
    }
}

struct Expiry(Arc<LiveCredentials>);

impl std::fmt::Debug for Expiry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Expiry")
    }
}

impl Collector for Expiry {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let seconds = |millis: u64| i64::try_from(millis / 1_000).unwrap_or(i64::MAX);
        let left = seconds(self.0.facts().not_after.0).saturating_sub(seconds(now().0));
        let gauge = ConstGauge::new(left);
        let help = "Seconds until this process's certificate expires";
        let name = "tls_certificate_expires_in_seconds";
        gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
    }
}
