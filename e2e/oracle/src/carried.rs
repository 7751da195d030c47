//! Owns: which exported labels and annotations an export carries, read anew from docs/runbooks/export-not-ready.md.
//! Never: shares a rule with the agent.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Keys and values of labels and annotations together, in bytes.
const BYTES_MAX: usize = 32 * 1024;
const LABEL_VALUE_CHARACTERS_MAX: usize = 63;

/// The labels and annotations of this export's spec that its imports may show; null where there are none.
pub(super) fn carried(spec: &Value) -> (Value, Value) {
    let mut room = BYTES_MAX;
    let mut take = |field: &str, well_formed: fn(&str) -> bool| {
        let mut taken = Map::new();
        let in_order: BTreeMap<&String, &Value> = spec[field].as_object().into_iter().flatten().collect();
        for (key, value) in in_order {
            let text = value.as_str().unwrap_or_default();
            let size = key.len() + text.len();
            if !is_reserved(key) && !key.contains(' ') && well_formed(text) && size <= room {
                room -= size;
                taken.insert(key.clone(), value.clone());
            }
        }
        if taken.is_empty() {
            Value::Null
        } else {
            Value::Object(taken)
        }
    };
    let labels = take("exportedLabels", is_label_value);
    let annotations = take("exportedAnnotations", |_| true);
    (labels, annotations)
}

fn is_reserved(key: &str) -> bool {
    let prefix = key.split('/').next().unwrap_or_default();
    key == "app.kubernetes.io/managed-by"
        || ["kubernetes.io", "multicluster.kubernetes.io", "tributary.dev"].contains(&prefix)
}

fn is_label_value(text: &str) -> bool {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    text.len() <= LABEL_VALUE_CHARACTERS_MAX && text.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_export_carries_is_read_from_the_documents() {
        let big = "x".repeat(BYTES_MAX);
        let spec = json!({
            "exportedLabels": {"kubernetes.io/x": "x", "app.kubernetes.io/part-of": "shop", "bad": "not a value!"},
            "exportedAnnotations": {"a": "x", "big": big},
        });
        let (labels, annotations) = carried(&spec);
        assert_eq!(labels, json!({"app.kubernetes.io/part-of": "shop"}));
        assert_eq!(annotations, json!({"a": "x"}));
        assert_eq!(carried(&json!({})), (Value::Null, Value::Null));
    }
}
