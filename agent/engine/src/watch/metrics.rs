//! Metrics of the watches, by kind, as they are when somebody asks: objects that cannot be decoded, and failing watches.

use std::sync::{Arc, OnceLock};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder},
    metrics::gauge::ConstGauge,
    registry::Registry,
};

use super::{Kept, Watched, Watches};

/// Shows objects that cannot be decoded and watches that fail. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct WatchMetrics(Arc<OnceLock<Watches>>);

impl WatchMetrics {
    /// Registers it; it says nothing before there are watches.
    pub fn register(registry: &mut Registry) -> Self {
        let metric = Self::default();
        registry.register_collector(Box::new(metric.clone()));
        metric
    }

    /// From now on shows these watches.
    pub fn of(&self, watches: &Watches) {
        let _ = self.0.set(watches.clone());
    }
}

impl Collector for WatchMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Some(watches) = self.0.get() else {
            return Ok(());
        };
        let of_kinds: [(&str, usize, bool); 5] = [
            of_kind("Namespace", &watches.namespaces),
            of_kind("Service", &watches.services),
            of_kind("EndpointSlice", &watches.slices),
            of_kind("ServiceExport", &watches.exports),
            of_kind("ServiceImport", &watches.imports),
        ];
        let help = "Objects that cannot be decoded and count as unknown, by kind";
        let unreadable = of_kinds.map(|(kind, unreadable, _)| (kind, unreadable));
        let kind_of_metric = ConstGauge::new(0_i64).metric_type();
        let family = encoder.encode_descriptor("objects_unreadable", help, None, kind_of_metric)?;
        encode_by_kind(family, unreadable)?;
        let help = "1 while lists or watches of the kind fail again and again, so that changes are not seen";
        let failing = of_kinds.map(|(kind, _, failing)| (kind, usize::from(failing)));
        let family = encoder.encode_descriptor("watch_failing", help, None, kind_of_metric)?;
        encode_by_kind(family, failing)
    }
}

fn of_kind<K: Kept>(kind: &'static str, watched: &Watched<K>) -> (&'static str, usize, bool) {
    (kind, watched.unreadable_count(), watched.is_followed_badly())
}

fn encode_by_kind(mut family: MetricEncoder<'_>, values: [(&str, usize); 5]) -> Result<(), std::fmt::Error> {
    for (kind, value) in values {
        let labels = [("kind", kind)];
        let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        gauge.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
