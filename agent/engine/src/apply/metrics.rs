//! Metrics of applying: actions by kind and result, services in trouble, unmanaged objects, the queue.

use std::sync::{Arc, Mutex};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::{ConstGauge, Gauge},
    },
    registry::Registry,
};
use tokio::time::Instant;

use super::{contention::Contention, lock::lock};
use crate::plan::{Action, Kind};

/// The counters; clones share them.
#[derive(Debug, Clone, Default)]
pub struct ApplyMetrics {
    actions: Family<ActionLabels, Counter>,
    /// Services that wait for another try.
    pub(super) delayed: Gauge,
    /// Services whose writes are refused, or have failed for long.
    pub(super) parked: Gauge,
    /// Imports that stay although the hub took them away.
    pub(super) withdrawals_held: Gauge,
    /// Names that something else has.
    pub(super) strangers: Gauge,
    /// Objects that somebody else changes back again and again; counted on scrape, since no event marks the end of a
    /// fight.
    pub(super) contention: Arc<Mutex<Contention>>,
    /// Services that wait to be planned.
    pub(super) queued: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActionLabels {
    action: &'static str,
    result: &'static str,
}

impl ApplyMetrics {
    /// Registers under `apply_…`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("apply");
        let actions = "Actions on the cluster, by kind and result (done, stale, throttled, refused, forbidden, \
                       schema, unavailable)";
        registry.register("actions", actions, self.actions.clone());
        registry.register(
            "delayed",
            "Services that wait for another try",
            self.delayed.clone(),
        );
        let parked = "Services whose writes are refused, or have failed for longer than a minute";
        registry.register("parked", parked, self.parked.clone());
        let held = "Imports on hold: the hub took most of this cluster's away at once, and they stay for now";
        registry.register("withdrawals_held", held, self.withdrawals_held.clone());
        let strangers = "Objects that are not Tributary's under names it needs";
        registry.register("strangers", strangers, self.strangers.clone());
        registry.register("queued", "Services that wait to be planned", self.queued.clone());
        registry.register_collector(Box::new(Contended(self.contention.clone())));
    }

    pub(super) fn count(&self, action: &Action, result: &'static str) {
        let action = match action {
            Action::ApplyImport { .. } => "apply_import",
            Action::ApplyImportStatus { .. } => "apply_import_status",
            Action::ApplyDerived { .. } => "apply_derived_service",
            Action::ApplySlice { .. } => "apply_slice",
            Action::Delete {
                kind: Kind::Import, ..
            } => "delete_import",
            Action::Delete {
                kind: Kind::Derived, ..
            } => "delete_derived_service",
            Action::Delete {
                kind: Kind::Slice, ..
            } => "delete_slice",
            Action::ApplyExportStatus { .. } => "apply_export_status",
            Action::ExportEvent { .. } => "export_event",
        };
        self.actions.get_or_create(&ActionLabels { action, result }).inc();
    }
}

/// Counts what is fought over at each scrape.
#[derive(Debug)]
struct Contended(Arc<Mutex<Contention>>);

impl Collector for Contended {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let contended = lock(&self.0).contended(Instant::now());
        let gauge = ConstGauge::new(i64::try_from(contended).unwrap_or(i64::MAX));
        let help = "Objects that somebody else changes back again and again, written at growing intervals";
        let descriptor = encoder.encode_descriptor("contended", help, None, gauge.metric_type())?;
        gauge.encode(descriptor)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::ServiceKey;
    use prometheus_client::encoding::text::encode;

    use super::*;
    use crate::plan::content::ImportStatus;

    #[test]
    fn what_is_fought_over_is_counted_when_it_is_asked_for() {
        let (metrics, mut registry) = (ApplyMetrics::default(), Registry::with_prefix("tributary_agent"));
        metrics.register(&mut registry);
        let scraped = || {
            let mut text = String::new();
            encode(&mut text, &registry).expect("a String takes everything");
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("tributary_agent_apply_contended "));
            line.map(str::to_owned)
        };
        assert_eq!(scraped().as_deref(), Some("0"));
        let cart = ServiceKey::new("shop", "cart").expect("a key");
        let same = Action::ApplyImportStatus {
            uid: None,
            status: ImportStatus::default(),
        };
        let now = Instant::now();
        for _ in 0..10 {
            lock(&metrics.contention).written(&cart, &same, now, 0);
        }
        assert_eq!(scraped().as_deref(), Some("1"));
        // The same in an hour is no fight: what was is forgotten without anybody's doing.
        lock(&metrics.contention).contended(now + Duration::from_secs(3_600));
        assert_eq!(scraped().as_deref(), Some("0"));
    }
}
