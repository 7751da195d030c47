//! A CRD as a flat map from path to value, so that two of them can be compared field by field.
//! Descriptions are left out, sets lose their order, numbers their spelling; nothing else is dropped.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Path to value, for example `v1beta1.schema.spec.ips:maxItems` to `2`.
pub(crate) type Flat = BTreeMap<String, String>;

/// Flattens one CRD.
pub(crate) fn flatten(crd: &Value) -> Flat {
    let mut flat = Flat::new();
    let spec = &crd["spec"];
    for key in ["labels", "annotations"] {
        for (name, value) in crd["metadata"][key].as_object().into_iter().flatten() {
            flat.insert(format!("{key}.{name}"), text(value));
        }
    }
    for (key, value) in spec.as_object().expect("a CRD has a spec") {
        match key.as_str() {
            "versions" => {}
            "names" => flatten_names(value, &mut flat),
            _ => drop(flat.insert(key.clone(), text(value))),
        }
    }
    for version in spec["versions"].as_array().expect("a CRD has versions") {
        flatten_version(version, &mut flat);
    }
    flat
}

/// Every path at which the two differ, with both values.
pub(crate) fn differences(ours: &Flat, theirs: &Flat) -> Vec<(String, String)> {
    let paths: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let shown = |flat: &Flat, path: &String| flat.get(path).map_or("nothing", String::as_str).to_owned();
    paths
        .into_iter()
        .filter(|path| ours.get(*path) != theirs.get(*path))
        .map(|path| {
            (
                path.clone(),
                format!(
                    "ours is {}, upstream's {}",
                    shown(ours, path),
                    shown(theirs, path)
                ),
            )
        })
        .collect()
}

fn flatten_names(names: &Value, flat: &mut Flat) {
    // The API server's own default, which upstream writes out in some files and not in others.
    let list_kind = format!("{}List", names["kind"].as_str().expect("a CRD has a kind"));
    flat.insert("listKind".to_owned(), list_kind);
    for (key, value) in names.as_object().expect("names is an object") {
        flat.insert(
            key.clone(),
            value.as_str().map_or_else(|| text(value), str::to_owned),
        );
    }
}

fn flatten_version(version: &Value, flat: &mut Flat) {
    let name = version["name"].as_str().expect("a version has a name");
    for (key, value) in version.as_object().expect("a version is an object") {
        if key == "schema" {
            flatten_schema(&format!("{name}.schema"), &value["openAPIV3Schema"], flat);
        } else {
            flat.insert(format!("{name}.{key}"), text(value));
        }
    }
}

fn flatten_schema(path: &str, schema: &Value, flat: &mut Flat) {
    let empty = Map::new();
    for (keyword, value) in schema.as_object().unwrap_or(&empty) {
        match keyword.as_str() {
            "description" => {}
            "properties" => {
                for (name, property) in value.as_object().unwrap_or(&empty) {
                    flatten_schema(&format!("{path}.{name}"), property, flat);
                }
            }
            "items" | "additionalProperties" if value.is_object() => {
                flatten_schema(&format!("{path}.{keyword}"), value, flat);
            }
            "required" | "enum" => {
                let set: BTreeSet<String> = value.as_array().into_iter().flatten().map(text).collect();
                flat.insert(format!("{path}:{keyword}"), format!("{set:?}"));
            }
            _ => drop(flat.insert(format!("{path}:{keyword}"), text(value))),
        }
    }
}

fn text(value: &Value) -> String {
    value
        .as_f64()
        .map_or_else(|| value.to_string(), |number| number.to_string())
}
