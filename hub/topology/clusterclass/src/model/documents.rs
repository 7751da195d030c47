//! Owns: a text of YAML or JSON as its documents, each by itself: one that cannot be read does not hide the others.

use serde_json::{Map, Value};
use serde_norway::Value as Yaml;

use super::limits::{MAX_DEPTH, MAX_DOCUMENT, MAX_DOCUMENTS, MAX_VALUES};

/// The documents of a text, in order; of one that cannot be read, why. A `List` is its items.
pub(super) fn documents(text: &str) -> Vec<Result<Value, String>> {
    let mut read = Vec::new();
    for part in parts(text) {
        if read.len() >= MAX_DOCUMENTS {
            read.push(Err(format!(
                "the file has more than {MAX_DOCUMENTS} documents: give more files"
            )));
            break;
        }
        match document(part) {
            Ok(Value::Null) => {}
            Ok(Value::Object(mut object)) if object.get("kind").is_some_and(|kind| kind == "List") => {
                match object.remove("items") {
                    Some(Value::Array(items)) => read.extend(items.into_iter().map(Ok)),
                    _ => read.push(Err("a List without items".to_owned())),
                }
            }
            other => read.push(other),
        }
    }
    read.truncate(MAX_DOCUMENTS + 1);
    read
}

/// A marker at a line's start ends a document, whatever is open.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" || line.starts_with("--- ") {
            parts.push(&text[start..at]);
            start = at;
        }
        at += line.len();
    }
    parts.push(&text[start..]);
    parts
}

fn document(text: &str) -> Result<Value, String> {
    if text.len() > MAX_DOCUMENT {
        return Err(format!(
            "has {} bytes, more than {MAX_DOCUMENT}: make it smaller",
            text.len()
        ));
    }
    let yaml: Yaml = serde_norway::from_str(text).map_err(|error| format!("is no YAML: {error}"))?;
    json(yaml, MAX_DEPTH, &mut { MAX_VALUES })
}

fn json(yaml: Yaml, depth: usize, left: &mut usize) -> Result<Value, String> {
    if depth == 0 {
        return Err(format!("is nested deeper than {MAX_DEPTH} levels"));
    }
    *left = left
        .checked_sub(1)
        .ok_or_else(|| format!("has more than {MAX_VALUES} values"))?;
    Ok(match yaml {
        Yaml::Null => Value::Null,
        Yaml::Bool(flag) => Value::Bool(flag),
        Yaml::Number(number) => number_of(&number)?,
        Yaml::String(text) => Value::String(text),
        Yaml::Sequence(items) => Value::Array(
            items
                .into_iter()
                .map(|item| json(item, depth - 1, left))
                .collect::<Result<_, _>>()?,
        ),
        Yaml::Mapping(entries) => {
            let mut object = Map::new();
            for (key, value) in entries {
                let Yaml::String(key) = key else {
                    return Err("has a key that is no text: quote it".to_owned());
                };
                object.insert(key, json(value, depth - 1, left)?);
            }
            Value::Object(object)
        }
        Yaml::Tagged(_) => return Err("has a tag of YAML, which JSON has not: leave it out".to_owned()),
    })
}

/// The part of a value that exceeds the bounds of a document, if any does.
pub(super) fn over_bounds(value: &Value) -> Option<String> {
    fn over(value: &Value, depth: usize, left: &mut usize) -> Option<String> {
        if depth == 0 {
            return Some(format!("is nested deeper than {MAX_DEPTH} levels"));
        }
        let Some(less) = left.checked_sub(1) else {
            return Some(format!("has more than {MAX_VALUES} values"));
        };
        *left = less;
        match value {
            Value::Array(items) => items.iter().find_map(|item| over(item, depth - 1, left)),
            Value::Object(fields) => fields.values().find_map(|value| over(value, depth - 1, left)),
            _ => None,
        }
    }
    over(value, MAX_DEPTH, &mut { MAX_VALUES })
}

fn number_of(number: &serde_norway::Number) -> Result<Value, String> {
    let read = match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) => Some(whole.into()),
        (_, Some(whole)) => Some(whole.into()),
        _ => number.as_f64().and_then(serde_json::Number::from_f64),
    };
    read.map(Value::Number)
        .ok_or_else(|| format!("has {number}, which is no number of JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_document_does_not_hide_the_next() {
        let read = documents("a: 1\n---\na: [\n---\nb: 2.5\n---\n# nothing\n");
        assert_eq!(read.len(), 3);
        assert_eq!(read[0], Ok(serde_json::json!({"a": 1})));
        assert!(read[1].as_ref().is_err_and(|why| why.starts_with("is no YAML")));
        assert_eq!(read[2], Ok(serde_json::json!({"b": 2.5})));
    }

    #[test]
    fn a_list_is_its_items_and_json_is_read_too() {
        let read = documents(r#"{"kind": "List", "items": [{"a": 1}, {"b": null}]}"#);
        assert_eq!(
            read,
            [
                Ok(serde_json::json!({"a": 1})),
                Ok(serde_json::json!({"b": null}))
            ]
        );
    }

    #[test]
    fn bounds_are_told() {
        let large = format!("a: {}", "x".repeat(MAX_DOCUMENT));
        assert!(
            documents(&large)[0]
                .as_ref()
                .is_err_and(|why| why.contains("bytes, more than"))
        );
        let deep = "[".repeat(MAX_DEPTH + 1) + &"]".repeat(MAX_DEPTH + 1);
        assert!(
            documents(&deep)[0]
                .as_ref()
                .is_err_and(|why| why.contains("nested deeper"))
        );
        let many = "---\na: 1\n".repeat(MAX_DOCUMENTS + 1);
        let read = documents(&many);
        assert_eq!(read.len(), MAX_DOCUMENTS + 1);
        assert!(read[MAX_DOCUMENTS].is_err());
    }

    #[test]
    fn a_value_is_within_the_bounds_of_a_document_or_it_is_told() {
        let nested = |levels: usize| {
            let text = "[".repeat(levels) + &"]".repeat(levels);
            serde_json::from_str::<Value>(&text).unwrap()
        };
        assert_eq!(over_bounds(&nested(MAX_DEPTH)), None);
        assert!(over_bounds(&nested(MAX_DEPTH + 1)).is_some_and(|why| why.contains("nested deeper")));
        let many = |values: usize| serde_json::json!({"a": vec![0; values - 2]});
        assert_eq!(over_bounds(&many(MAX_VALUES)), None);
        assert!(over_bounds(&many(MAX_VALUES + 1)).is_some_and(|why| why.contains("more than")));
    }

    #[test]
    fn what_json_has_not_is_refused() {
        for text in ["a: !x 1", "1: a", "a: .nan", "a: 1\na: 2", "a: &x [*x]"] {
            assert!(documents(text)[0].is_err(), "{text}");
        }
    }

    #[test]
    fn a_bomb_of_aliases_ends() {
        let mut text = String::from("a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
        for (name, last) in "bcdefghij".chars().zip("abcdefghi".chars()) {
            let many = vec![format!("*{last}"); 10].join(", ");
            text += &format!("{name}: &{name} [{many}]\n");
        }
        assert!(documents(&text)[0].is_err());
    }
}
