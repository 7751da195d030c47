//! What the watches count: objects that cannot be decoded, by kind, as they are when somebody asks.

use std::sync::{Arc, OnceLock};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
    registry::Registry,
};

use super::Watches;

/// Counts the objects that cannot be decoded. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct UnreadableMetric(Arc<OnceLock<Watches>>);

impl UnreadableMetric {
    /// Registers it; it says nothing before there are watches.
    pub fn register(registry: &mut Registry) -> Self {
        let metric = Self::default();
        registry.register_collector(Box::new(metric.clone()));
        metric
    }

    /// From now on counts what these watches cannot decode.
    pub fn of(&self, watches: &Watches) {
        let _ = self.0.set(watches.clone());
    }
}

impl Collector for UnreadableMetric {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Some(watches) = self.0.get() else {
            return Ok(());
        };
        let counts = [
            ("Namespace", watches.namespaces.unreadable_count()),
            ("Service", watches.services.unreadable_count()),
            ("EndpointSlice", watches.slices.unreadable_count()),
            ("ServiceExport", watches.exports.unreadable_count()),
            ("ServiceImport", watches.imports.unreadable_count()),
        ];
        let help = "Objects that cannot be decoded and count as unknown, by kind";
        let gauge = ConstGauge::new(0_i64);
        let mut family = encoder.encode_descriptor("objects_unreadable", help, None, gauge.metric_type())?;
        for (kind, count) in counts {
            let labels = [("kind", kind)];
            let gauge = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
            gauge.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
