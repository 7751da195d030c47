//! Owns: whole patches: RFC 6902 with all of its operations, and RFC 7386.
//! Never: changes the document it is given.

use serde_json::Value;

use super::super::{finding::shown, operation};

/// Most operations of one patch.
const MAX_OPERATIONS: usize = 10_000;

/// The document after the operations of a JSON patch.
pub(super) fn apply(document: &Value, operations: &[Value]) -> Result<Value, String> {
    if operations.len() > MAX_OPERATIONS {
        return Err(format!(
            "its JSON patch has more than {MAX_OPERATIONS} operations"
        ));
    }
    let mut after = document.clone();
    for (at, one) in operations.iter().enumerate() {
        carry_out(&mut after, one).map_err(|why| format!("operation {at} of its JSON patch: {why}"))?;
    }
    Ok(after)
}

fn carry_out(document: &mut Value, one: &Value) -> Result<(), String> {
    let text = |field: &str| {
        let text = one.get(field).and_then(Value::as_str);
        text.ok_or_else(|| format!("it has no {field}"))
    };
    let value = || one.get("value").cloned().ok_or("it has no value");
    let path = text("path")?;
    match text("op")? {
        "add" => operation::add(document, path, value()?),
        "replace" if path.is_empty() => {
            *document = value()?;
            Ok(())
        }
        "replace" => operation::replace(document, path, value()?),
        "remove" => operation::remove(document, path),
        "move" => {
            let from = text("from")?;
            let moved = operation::get(document, from)?.clone();
            operation::remove(document, from)?;
            operation::add(document, path, moved)
        }
        "copy" => {
            let copied = operation::get(document, text("from")?)?.clone();
            operation::add(document, path, copied)
        }
        "test" => {
            let there = operation::get(document, path).unwrap_or(&Value::Null);
            let wanted = one.get("value").unwrap_or(&Value::Null);
            if there == wanted {
                Ok(())
            } else {
                Err(format!("test: {} has another value", shown(path)))
            }
        }
        other => Err(format!("{} is no operation", shown(other))),
    }
}

/// The document with a merge patch: `null` removes, objects are merged, and anything else takes the place of what is there.
pub(super) fn merge(document: &Value, patch: &Value) -> Result<Value, String> {
    if !patch.is_object() {
        return Err("its merge patch is no object".to_owned());
    }
    let mut after = document.clone();
    put(&mut after, patch);
    Ok(after)
}

fn put(below: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *below = patch.clone();
        return;
    };
    if !below.is_object() {
        *below = Value::Object(serde_json::Map::new());
    }
    let Some(map) = below.as_object_mut() else {
        return;
    };
    for (name, value) in fields {
        if value.is_null() {
            map.remove(name);
        } else {
            put(map.entry(name.as_str()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_operation_is_carried_out() {
        let before = json!({"spec": {"a": 1, "l": [1, 2]}});
        let operations = [
            json!({"op": "test", "path": "/spec/a", "value": 1}),
            json!({"op": "add", "path": "/spec/b", "value": {"c": 2}}),
            json!({"op": "copy", "from": "/spec/b", "path": "/spec/d"}),
            json!({"op": "move", "from": "/spec/l/0", "path": "/spec/d/first"}),
            json!({"op": "replace", "path": "/spec/a", "value": 3}),
            json!({"op": "remove", "path": "/spec/b/c"}),
        ];
        let after = json!({"spec": {"a": 3, "b": {}, "d": {"c": 2, "first": 1}, "l": [2]}});
        assert_eq!(apply(&before, &operations), Ok(after));
        let whole = [json!({"op": "replace", "path": "", "value": {"x": 1}})];
        assert_eq!(apply(&before, &whole), Ok(json!({"x": 1})));
    }

    #[test]
    fn what_cannot_be_carried_out_is_told_with_its_place() {
        let before = json!({"spec": {"a": 1}});
        for (operation, why) in [
            (
                json!({"op": "test", "path": "/spec/a", "value": 2}),
                "test: /spec/a has another value",
            ),
            (
                json!({"op": "move", "from": "/spec/x", "path": "/spec/y"}),
                "there is no /spec/x",
            ),
            (json!({"op": "add", "path": "/spec/x"}), "it has no value"),
            (json!({"op": "add", "value": 1}), "it has no path"),
            (json!({"op": "put", "path": "/spec/x"}), "put is no operation"),
            (json!(7), "it has no path"),
        ] {
            let error = apply(
                &before,
                &[json!({"op": "test", "path": "/spec/a", "value": 1}), operation],
            );
            assert_eq!(error, Err(format!("operation 1 of its JSON patch: {why}")));
        }
    }

    #[test]
    fn a_merge_patch_removes_by_null() {
        let before = json!({"spec": {"a": 1, "b": {"c": 1, "d": 2}, "l": [1]}});
        let patch = json!({"spec": {"a": null, "b": {"c": 3}, "l": {"x": 1, "y": null}, "n": {"z": null}}});
        let after = json!({"spec": {"b": {"c": 3, "d": 2}, "l": {"x": 1}, "n": {}}});
        assert_eq!(merge(&before, &patch), Ok(after));
        assert!(merge(&before, &json!([])).is_err());
    }
}
