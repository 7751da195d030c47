//! The registry of a process's metrics and their text form.
//! Parts register at start; afterwards the registry is only read.

use std::{collections::BTreeMap, sync::Arc};

use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::info::Info,
    registry::Registry,
};

/// A text form of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' own text form, version 0.0.4, which knows no `info`, no units and no end mark.
    Plain,
}

impl Form {
    /// Returns the form that an Accept header prefers: OpenMetrics unless plain text is preferred over it.
    pub(super) fn accepted(accept: &str) -> Self {
        let (mut open, mut plain) = (0.0, 0.0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts.find_map(|part| part.strip_prefix("q="));
            let weight: f32 = weight.and_then(|weight| weight.parse().ok()).unwrap_or(1.0);
            match media.as_str() {
                "application/openmetrics-text" => open = weight.max(open),
                "text/plain" | "text/*" => plain = weight.max(plain),
                _ => {}
            }
        }
        if plain > open {
            Self::Plain
        } else {
            Self::OpenMetrics
        }
    }

    /// The media type of its text.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Collects metrics at start, all under one prefix but those of the process itself.
pub struct Metrics {
    all: Registry,
    prefix: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: String,
}

impl Metrics {
    /// A registry whose metrics begin with `tributary_hub` or `tributary_agent`, with `build_info` in it, and
    /// [`PROCESS_METRICS`](super::PROCESS_METRICS) beside them.
    pub fn new(prefix: &str, version: &str) -> Self {
        let mut all = Registry::default();
        #[cfg(target_os = "linux")]
        super::usage::register(&mut all);
        let mut metrics = Self {
            all,
            prefix: prefix.to_owned(),
        };
        let build = Info::new(BuildLabels {
            version: version.to_owned(),
        });
        metrics
            .registry()
            .register("build", "The program's version", build);
        metrics
    }

    /// The registry for the metrics of all parts.
    pub fn registry(&mut self) -> &mut Registry {
        self.all.sub_registry_with_prefix(&self.prefix)
    }

    /// Ends the registering.
    pub fn finish(self) -> Arc<Registry> {
        Arc::new(self.all)
    }
}

/// All metrics in the OpenMetrics text form.
pub fn encode(registry: &Registry) -> Result<String, std::fmt::Error> {
    encode_as(registry, Form::OpenMetrics)
}

/// All metrics in a text form.
pub(super) fn encode_as(registry: &Registry, form: Form) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    text::encode(&mut text, registry)?;
    let text = with_each_family_once(&text);
    Ok(match form {
        Form::OpenMetrics => text,
        Form::Plain => plain(&text),
    })
}

/// The same in version 0.0.4: the type is that of the samples' name, `_total` and `_info` included, and an info is a gauge.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("EOF" | "UNIT"), ..) => {}
            // It comes before the type, which says under which name it goes.
            (Some("#"), Some("HELP"), Some(_), words) => help = Some(words.unwrap_or_default()),
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                let (suffix, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "unknown" => ("", "untyped"),
                    kind => ("", kind),
                };
                if let Some(help) = help.take() {
                    plain.push_str(&format!("# HELP {name}{suffix} {help}\n"));
                }
                plain.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
            }
            _ => {
                plain.push_str(line);
                plain.push('\n');
            }
        }
    }
    plain
}

/// One metric with its description and its samples.
#[derive(Default)]
struct Family<'a> {
    described: Vec<&'a str>,
    samples: Vec<&'a str>,
}

/// Several parts of a process count the same under labels of their own, and the encoder writes a metric again for each
/// of them; the form allows each metric once. Lines in order are not moved.
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
    use prometheus_client::{
        metrics::{counter::Counter, gauge::Gauge, histogram::Histogram},
        registry::Unit,
    };

    use super::*;

    /// A name that no program has.
    const EVENTS: &str = "events";
    const SIZE: &str = "size";
    const TIME: &str = "time";

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
        let mut registry = Registry::with_prefix("tributary_test");
        registry.register(EVENTS, "Some", Counter::<u64>::default());
        let mut plain = String::new();
        text::encode(&mut plain, &registry).expect("text");
        assert_eq!(encode(&registry).expect("text"), plain);
    }

    #[test]
    fn plain_text_names_the_type_of_each_sample() {
        let mut metrics = Metrics::new("tributary_test", "1.2.3");
        let registry = metrics.registry();
        registry.register(EVENTS, "Some", Counter::<u64>::default());
        let size = Gauge::<i64>::default();
        registry.register_with_unit(SIZE, "How much", Unit::Bytes, size);
        let time = Histogram::new([1.0]);
        registry.register(TIME, "How long", time);
        let text = encode_as(&metrics.finish(), Form::Plain).expect("text");
        let expected = "# HELP tributary_test_build_info The program's version.\n\
             # TYPE tributary_test_build_info gauge\n\
             tributary_test_build_info{version=\"1.2.3\"} 1\n\
             # HELP tributary_test_events_total Some.\n\
             # TYPE tributary_test_events_total counter\n\
             tributary_test_events_total 0\n\
             # HELP tributary_test_size_bytes How much.\n\
             # TYPE tributary_test_size_bytes gauge\n\
             tributary_test_size_bytes 0\n\
             # HELP tributary_test_time How long.\n\
             # TYPE tributary_test_time histogram\n\
             tributary_test_time_sum 0.0\n\
             tributary_test_time_count 0\n\
             tributary_test_time_bucket{le=\"1.0\"} 0\n\
             tributary_test_time_bucket{le=\"+Inf\"} 0\n";
        // Those of the process stand before.
        let own = text.find("# HELP tributary_").expect("metrics of the program");
        assert_eq!(&text[own..], expected);
    }

    #[test]
    fn the_form_is_the_one_that_is_asked_for() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,\
             application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        for (accept, form) in [
            ("", Form::OpenMetrics),
            ("*/*", Form::OpenMetrics),
            (prometheus, Form::OpenMetrics),
            ("text/plain;version=0.0.4", Form::Plain),
            (
                "text/plain; version=0.0.4; q=0.9, application/openmetrics-text; q=0.2",
                Form::Plain,
            ),
            ("application/openmetrics-text, text/plain", Form::OpenMetrics),
            ("TEXT/PLAIN", Form::Plain),
        ] {
            assert_eq!(Form::accepted(accept), form, "{accept}");
        }
    }
}
