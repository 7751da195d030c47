//! Merge patches and strategic merge patches.
//! Pure functions over JSON; server-side apply is `fields.rs`'s.

use serde_json::{Map, Value, json};

/// RFC 7386: null removes, objects merge, everything else replaces.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            target.as_object_mut().map(|map| map.remove(name));
        } else {
            merge(&mut target[name], value);
        }
    }
}

/// The merge key of a list in the built-in kinds; nothing for one that is replaced.
fn merge_key(path: &str) -> Option<&'static str> {
    match path {
        "/spec/ports" => Some("port"),
        "/spec/template/spec/containers" | "/spec/template/spec/initContainers" => Some("name"),
        "/spec/template/spec/containers/ports" => Some("containerPort"),
        "/spec/template/spec/containers/env" => Some("name"),
        "/status/conditions" => Some("type"),
        "/metadata/ownerReferences" => Some("uid"),
        _ => None,
    }
}

/// A strategic merge patch, with the directives that kubectl sends.
pub(crate) fn strategic(target: &mut Value, patch: &Value) {
    strategic_at(target, patch, "");
}

fn strategic_at(target: &mut Value, patch: &Value, path: &str) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if patch.get("$patch") == Some(&json!("replace")) || !target.is_object() {
        *target = json!({});
    }
    let Some(map) = target.as_object_mut() else { return };
    for (name, value) in patch {
        let inner = format!("{path}/{name}");
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            let gone = value.as_array().cloned().unwrap_or_default();
            map.get_mut(list)
                .and_then(Value::as_array_mut)
                .map(|list| list.retain(|item| !gone.contains(item)))
                .unwrap_or(());
        } else if name == "$retainKeys" {
            let kept = value.as_array().cloned().unwrap_or_default();
            map.retain(|name, _| kept.contains(&json!(name)));
        } else if name.starts_with('$') {
            // $patch was seen above, $setElementOrder is applied below.
        } else if value.is_null() || value["$patch"] == json!("delete") {
            map.remove(name);
        } else if let (Some(key), Some(items)) = (merge_key(&inner), value.as_array()) {
            let list = map.entry(name.clone()).or_insert_with(|| json!([]));
            merge_items(list, items, key, &inner);
        } else if inner == "/metadata/finalizers" {
            add_missing(map, name, value);
        } else {
            strategic_at(map.entry(name.clone()).or_insert(Value::Null), value, &inner);
        }
    }
    reorder(map, patch, path);
}

fn merge_items(list: &mut Value, items: &[Value], key: &str, path: &str) {
    if items.iter().any(|item| *item == json!({"$patch": "replace"})) {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    for item in items.iter().filter(|item| !item[key].is_null()) {
        let at = list.iter().position(|old| old[key] == item[key]);
        match at {
            Some(at) if item["$patch"] == json!("delete") => drop(list.remove(at)),
            Some(at) => strategic_at(&mut list[at], item, path),
            None if item["$patch"] == json!("delete") => {}
            None => list.push(item.clone()),
        }
    }
}

fn add_missing(map: &mut Map<String, Value>, name: &str, value: &Value) {
    let list = map.entry(name.to_owned()).or_insert_with(|| json!([]));
    for item in value.as_array().into_iter().flatten() {
        if let Some(list) = list.as_array_mut().filter(|list| !list.contains(item)) {
            list.push(item.clone());
        }
    }
}

fn reorder(map: &mut Map<String, Value>, patch: &Map<String, Value>, path: &str) {
    for (name, order) in patch {
        let Some(list) = name.strip_prefix("$setElementOrder/") else {
            continue;
        };
        let Some(key) = merge_key(&format!("{path}/{list}")) else {
            continue;
        };
        let order = order.as_array().cloned().unwrap_or_default();
        let place = |item: &Value| {
            order
                .iter()
                .position(|wanted| wanted[key] == item[key])
                .unwrap_or(usize::MAX)
        };
        if let Some(list) = map.get_mut(list).and_then(Value::as_array_mut) {
            list.sort_by_key(place);
        }
    }
}
