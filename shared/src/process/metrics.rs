//! The registry of a process's metrics and their text form.
//! Parts register at start; afterwards the registry is only read.

use std::sync::Arc;

use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::info::Info,
    registry::Registry,
};

/// The media type of [`encode`]'s text.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Collects metrics at start, all under one prefix.
pub struct Metrics(Registry);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: String,
}

impl Metrics {
    /// A registry whose metrics begin with `tributary_hub` or `tributary_agent`, with `build_info` in it.
    pub fn new(prefix: &str, version: &str) -> Self {
        let mut registry = Registry::with_prefix(prefix);
        let build = Info::new(BuildLabels {
            version: version.to_owned(),
        });
        registry.register("build", "The program's version", build);
        Self(registry)
    }

    /// Where parts register what they count.
    pub fn registry(&mut self) -> &mut Registry {
        &mut self.0
    }

    /// Ends the registering.
    pub fn finish(self) -> Arc<Registry> {
        Arc::new(self.0)
    }
}

/// All metrics in the OpenMetrics text form.
pub fn encode(registry: &Registry) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    text::encode(&mut text, registry)?;
    Ok(text)
}
