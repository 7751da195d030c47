//! The registry of a process's metrics and their text form.
//! Parts register at start; afterwards the registry is only read.

use std::{collections::BTreeMap, sync::Arc};

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
    Ok(with_each_family_once(&text))
}

/// One metric with what is said of it, and its samples.
#[derive(Default)]
struct Family<'a> {
    described: Vec<&'a str>,
    samples: Vec<&'a str>,
}

/// Several parts of a process count the same under labels of their own, and the encoder writes a metric again for each of
/// them; the form allows each metric once. Of what is in order nothing is moved.
fn with_each_family_once(text: &str) -> String {
    let mut families: Vec<Family<'_>> = Vec::new();
    let mut places = BTreeMap::new();
    let (mut place, mut end): (Option<usize>, _) = (None, "");
    for line in text.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            let place = place.unwrap_or_default();
            families.resize_with(families.len().max(place + 1), Family::default);
            families[place].samples.push(line);
            continue;
        };
        let Some(name) = comment.split(' ').nth(1) else {
            end = line;
            continue;
        };
        let at = *places.entry(name).or_insert(families.len());
        families.resize_with(families.len().max(at + 1), Family::default);
        if !families[at].described.contains(&line) {
            families[at].described.push(line);
        }
        place = Some(at);
    }
    let mut ordered = String::with_capacity(text.len());
    let lines = families
        .iter()
        .flat_map(|one| one.described.iter().chain(&one.samples));
    for line in lines.copied().chain((!end.is_empty()).then_some(end)) {
        ordered.push_str(line);
        ordered.push('\n');
    }
    ordered
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;

    use super::*;

    /// A name that no program has.
    const EVENTS: &str = "events";

    #[test]
    fn parts_that_count_the_same_make_one_family() {
        let mut metrics = Metrics::new("tributary_test", "1.2.3");
        for (name, count) in [("labs", 1), ("shops", 2)] {
            let label = ("clusterset".into(), name.into());
            let part = metrics.registry().sub_registry_with_label(label);
            for metric in ["events", "batches"] {
                let counter = Counter::<u64>::default();
                counter.inc_by(count);
                part.register(metric, "Some", counter);
            }
        }
        let text = encode(&metrics.finish()).expect("text");
        let events = "# HELP tributary_test_events Some.\n# TYPE tributary_test_events counter\n\
             tributary_test_events_total{clusterset=\"labs\"} 1\n\
             tributary_test_events_total{clusterset=\"shops\"} 2\n";
        assert!(text.contains(events), "{text}");
        assert_eq!(
            text.matches("# TYPE tributary_test_batches ").count(),
            1,
            "{text}"
        );
        assert!(text.ends_with("\n# EOF\n"), "{text}");
    }

    #[test]
    fn what_is_in_order_stays_as_it_is() {
        let mut metrics = Metrics::new("tributary_test", "1.2.3");
        metrics
            .registry()
            .register(EVENTS, "Some", Counter::<u64>::default());
        let registry = metrics.finish();
        let mut plain = String::new();
        text::encode(&mut plain, &registry).expect("text");
        assert_eq!(encode(&registry).expect("text"), plain);
    }
}
