//! Owns: RFC 6902 as the library of upstream (evanphx/json-patch, version 5) carries it out: `add`, `replace`, `remove`.
//! Never: makes what is missing on the way; never panics, whatever a path says.
//!
//! The crate `json-patch` keeps to the RFC. Upstream's library does not, and these are its edges that a class can reach:
//! an index may have a sign, leading zeros, and count from the end; `~2` is no error but itself; `replace` of the empty
//! name sets it even where it is missing, while nothing below the empty name is ever found.

use serde_json::Value;

/// Sets a field, or puts an element into a list; `-` means the place behind its last item.
pub(super) fn add(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let (container, key) = container(document, path)?;
    match container {
        Value::Object(fields) => {
            fields.insert(key, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let at = index(&key, items.len() + 1)?;
            items.insert(at, value);
        }
        _ => return Err(no_container(path)),
    }
    Ok(())
}

/// Sets what is there.
pub(super) fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let (container, key) = container(document, path)?;
    match container {
        Value::Object(fields) if key.is_empty() || fields.contains_key(&key) => {
            fields.insert(key, value);
        }
        Value::Object(_) => return Err(missing(path)),
        Value::Array(items) => {
            let at = index(&key, items.len())?;
            items[at] = value;
        }
        _ => return Err(no_container(path)),
    }
    Ok(())
}

/// Takes away what is there.
pub(super) fn remove(document: &mut Value, path: &str) -> Result<(), String> {
    let (container, key) = container(document, path)?;
    match container {
        Value::Object(fields) => {
            fields.remove(&key).ok_or_else(|| missing(path))?;
        }
        Value::Array(items) => {
            let at = index(&key, items.len())?;
            items.remove(at);
        }
        _ => return Err(no_container(path)),
    }
    Ok(())
}

/// The value at a path.
pub(super) fn get<'a>(document: &'a mut Value, path: &str) -> Result<&'a Value, String> {
    let (container, key) = container(document, path)?;
    match container {
        Value::Object(fields) => fields.get(&key).ok_or_else(|| missing(path)),
        Value::Array(items) => index(&key, items.len()).map(|at| &items[at]),
        _ => Err(no_container(path)),
    }
}

/// The container of a path's last part, and that part.
fn container<'a>(document: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), String> {
    let way = path
        .strip_prefix('/')
        .ok_or_else(|| format!("path {} does not begin with /", super::finding::shown(path)))?;
    let (way, last) = match way.rsplit_once('/') {
        Some((way, last)) => (Some(way), last),
        None => (None, way),
    };
    let mut at = document;
    let mut passed = String::new();
    for part in way.into_iter().flat_map(|way| way.split('/')) {
        passed.push('/');
        passed.push_str(part);
        let key = decoded(part);
        let below = match at {
            Value::Object(fields) if !key.is_empty() => fields.get_mut(&key),
            Value::Array(items) => index(&key, items.len()).ok().map(|at| &mut items[at]),
            _ => None,
        };
        at = below
            .filter(|below| below.is_object() || below.is_array())
            .ok_or_else(|| no_container(&passed))?;
    }
    Ok((at, decoded(last)))
}

/// A part of a path as the name that it encodes.
fn decoded(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// The place in a list of this length.
fn index(key: &str, length: usize) -> Result<usize, String> {
    let shown = super::finding::shown(key);
    let index: i64 = key
        .parse()
        .map_err(|_| format!("the list there has no place {shown}"))?;
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let at = if index < 0 {
        index.saturating_add(length)
    } else {
        index
    };
    if at < 0 || at >= length {
        return Err(format!("the list there has no place {shown}"));
    }
    usize::try_from(at).map_err(|_| format!("the list there has no place {shown}"))
}

fn missing(path: &str) -> String {
    format!("there is no {}", super::finding::shown(path))
}

fn no_container(path: &str) -> String {
    format!(
        "there is no object or list at {}; add it first",
        super::finding::shown(path)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn done(before: &Value, op: &str, path: &str) -> Result<Value, String> {
        let mut document = before.clone();
        match op {
            "add" => add(&mut document, path, json!("new"))?,
            "replace" => replace(&mut document, path, json!("new"))?,
            _ => remove(&mut document, path)?,
        }
        Ok(document)
    }

    #[test]
    fn fields_are_added_replaced_and_removed() {
        let before = json!({"spec": {"a": {"b": 1}, "l": [1, 2]}});
        for (op, path, after) in [
            ("add", "/spec/c", json!({"a": {"b": 1}, "c": "new", "l": [1, 2]})),
            ("add", "/spec/a", json!({"a": "new", "l": [1, 2]})),
            (
                "add",
                "/spec/a/c",
                json!({"a": {"b": 1, "c": "new"}, "l": [1, 2]}),
            ),
            ("add", "/spec/l/-", json!({"a": {"b": 1}, "l": [1, 2, "new"]})),
            ("add", "/spec/l/0", json!({"a": {"b": 1}, "l": ["new", 1, 2]})),
            ("add", "/spec/l/2", json!({"a": {"b": 1}, "l": [1, 2, "new"]})),
            ("replace", "/spec/a/b", json!({"a": {"b": "new"}, "l": [1, 2]})),
            ("replace", "/spec/l/1", json!({"a": {"b": 1}, "l": [1, "new"]})),
            ("remove", "/spec/a/b", json!({"a": {}, "l": [1, 2]})),
            ("remove", "/spec/l/0", json!({"a": {"b": 1}, "l": [2]})),
        ] {
            assert_eq!(
                done(&before, op, path),
                Ok(json!({ "spec": after })),
                "{op} {path}"
            );
        }
    }

    #[test]
    fn what_is_missing_is_an_error() {
        let before = json!({"spec": {"a": {}, "l": [1], "n": null, "s": "x"}});
        for (op, path) in [
            ("add", "/spec/x/y"),
            ("add", "/spec/n/y"),
            ("add", "/spec/s/y"),
            ("add", "/spec/l/2"),
            ("add", "/spec/l/x"),
            ("add", "/spec/l/"),
            ("add", "spec"),
            ("add", ""),
            ("replace", "/spec/x"),
            ("replace", "/spec/l/1"),
            ("replace", "/spec/l/-"),
            ("replace", "/spec/l/"),
            ("remove", "/spec/x"),
            ("remove", "/spec/l/1"),
            ("remove", "/spec/l/-"),
            ("remove", "/spec/a/b/c"),
            ("remove", "/spec/l/99999999999999999999"),
        ] {
            assert!(done(&before, op, path).is_err(), "{op} {path}");
        }
    }

    #[test]
    fn names_are_escaped_as_the_pointer_says() {
        let before = json!({"spec": {"a/b": 1, "c~d": 1, "~1": 1, "~2": 1}});
        for (path, name) in [
            ("/spec/a~1b", "a/b"),
            ("/spec/c~0d", "c~d"),
            ("/spec/~01", "~1"),
            ("/spec/~2", "~2"),
        ] {
            let after = done(&before, "replace", path).expect("it applies");
            assert_eq!(after["spec"][name], json!("new"), "{path}");
        }
    }

    #[test]
    fn the_edges_are_upstreams() {
        let before = json!({"spec": {"l": [1, 2], "": {"a": 1}}});
        for (op, path, after) in [
            ("add", "/spec/l/-1", json!([1, 2, "new"])),
            ("add", "/spec/l/-3", json!(["new", 1, 2])),
            ("replace", "/spec/l/-1", json!([1, "new"])),
            ("replace", "/spec/l/+01", json!([1, "new"])),
            ("remove", "/spec/l/-2", json!([2])),
        ] {
            let done = done(&before, op, path).expect("it applies");
            assert_eq!(done["spec"]["l"], after, "{op} {path}");
        }
        assert!(done(&before, "remove", "/spec/l/-3").is_err());
        assert!(
            done(&before, "add", "/spec//b").is_err(),
            "nothing is below the empty name"
        );
        let set = done(&json!({"spec": {}}), "replace", "/spec/").expect("it is set");
        assert_eq!(set, json!({"spec": {"": "new"}}));
    }
}
