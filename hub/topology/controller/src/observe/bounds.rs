//! Owns: the bounds of what is observed, and how a value is written within those of a property.
//! Never: cuts a value off.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};
use shared::api::names::{PROFILE_PROPERTY_NAME_CHARS_MAX, PROFILE_PROPERTY_VALUE_CHARS_MAX};

/// Most Clusters in the cache; those beyond are not published.
pub const CLUSTERS_MAX: usize = 10_000;
/// Most ClusterClasses with variables to tell; those beyond tell none.
pub const CLASSES_MAX: usize = 10_000;
/// Most variables that one class tells: the first of its list.
pub const PUBLISHED_VARIABLES_MAX: usize = 64;

/// A property's name; none if it is too long for one.
pub(super) fn name(prefix: &str, rest: &str) -> Option<String> {
    let name = format!("{prefix}{rest}");
    (name.chars().count() <= PROFILE_PROPERTY_NAME_CHARS_MAX).then_some(name)
}

/// A property's value: none for the empty text, a digest for one that is too long.
pub(super) fn text(text: &str) -> Option<String> {
    match text.chars().count() {
        0 => None,
        1..=PROFILE_PROPERTY_VALUE_CHARS_MAX => Some(text.to_owned()),
        _ => Some(format!("sha256:{:x}", Sha256::digest(text))),
    }
}

/// The same of a variable's value: a text as it is, everything else as JSON without spaces and with sorted keys.
pub(super) fn value(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(bare) => text(bare),
        other => text(&canonical(other)),
    }
}

fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            let fields = sorted
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), canonical(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_bare_texts_or_sorted_json() {
        for (written, told) in [
            (json!("a b"), Some("a b")),
            (json!(""), None),
            (json!(null), None),
            (json!(3), Some("3")),
            (json!(1.5), Some("1.5")),
            (json!(false), Some("false")),
            (json!({}), Some("{}")),
            (
                json!({"b": [1, {"d": null, "c": "\""}], "a": "x"}),
                Some(r#"{"a":"x","b":[1,{"c":"\"","d":null}]}"#),
            ),
        ] {
            assert_eq!(value(&written).as_deref(), told, "{written}");
        }
    }

    #[test]
    fn a_value_that_is_too_long_is_its_digest_and_never_cut() {
        let longest = "ä".repeat(PROFILE_PROPERTY_VALUE_CHARS_MAX);
        assert_eq!(text(&longest).as_ref(), Some(&longest));
        let digest = text(&format!("{longest}x")).expect("told");
        let hex = digest.strip_prefix("sha256:").expect("a digest");
        assert!(
            hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{hex}"
        );
        assert_ne!(Some(&digest), text(&format!("{longest}y")).as_ref());
        assert_eq!(text("abc"), Some("abc".to_owned()));
    }

    #[test]
    fn a_name_fits_or_there_is_none() {
        let rest = "x".repeat(PROFILE_PROPERTY_NAME_CHARS_MAX - 2);
        assert_eq!(name("p/", &rest).map(|name| name.len()), Some(253));
        assert_eq!(name("p/", &format!("{rest}x")), None);
    }
}
