//! Owns: an edit over what a server has: the objects of files in the place of those of the same names.

use serde_json::{Map, Value, json};

use super::objects::{group_kind, name};

/// Fields that the topology itself sets in a Cluster; a file of one does not have them.
const KEPT: [&str; 3] = ["infrastructureRef", "controlPlaneRef", "controlPlaneEndpoint"];

/// The objects of a server after an edit. Objects only in the files are new.
pub(super) fn over<'f>(live: &[(&'f str, Value)], edits: &[(&'f str, Value)]) -> Vec<(&'f str, Value)> {
    let mut all = live.to_vec();
    for (file, edit) in edits {
        let named = name(edit);
        let is = |one: &Value| named.is_some() && name(one) == named;
        let is_same_version = |one: &Value| is(one) && one.get("apiVersion") == edit.get("apiVersion");
        let found = all.iter().position(|(_, one)| is_same_version(one));
        match found.or_else(|| all.iter().position(|(_, one)| is(one))) {
            Some(at) => all[at] = (*file, edited(&all[at].1, edit)),
            None => all.push((*file, edit.clone())),
        }
    }
    all
}

/// The object with what the edit says; whose it is, and what a Cluster refers to, stays.
fn edited(live: &Value, edit: &Value) -> Value {
    let mut after = live.clone();
    for field in ["apiVersion", "spec"] {
        if let Some(value) = edit.get(field) {
            after[field] = value.clone();
        }
    }
    for part in ["labels", "annotations"] {
        let said = edit
            .pointer(&format!("/metadata/{part}"))
            .and_then(Value::as_object);
        if let Some(said) = said {
            let mut all = live
                .pointer(&format!("/metadata/{part}"))
                .cloned()
                .unwrap_or_else(|| json!({}));
            if let Some(all) = all.as_object_mut() {
                all.extend(said.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
            after["metadata"][part] = all;
        }
    }
    if group_kind(live) == (super::current::group_of_cluster(), "Cluster") {
        let none = Map::new();
        let before = live.get("spec").and_then(Value::as_object).unwrap_or(&none);
        // A file that lists no variables takes none away that the Cluster was given.
        if let (Some(variables), Some(topology)) = (
            live.pointer("/spec/topology/variables"),
            after.pointer_mut("/spec/topology").and_then(Value::as_object_mut),
        ) {
            topology.entry("variables").or_insert_with(|| variables.clone());
        }
        for field in KEPT {
            if let (Some(value), Some(spec)) = (before.get(field), after["spec"].as_object_mut()) {
                spec.entry(field).or_insert_with(|| value.clone());
            }
        }
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_keeps_whose_an_object_is_and_what_a_cluster_refers_to() {
        let live = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": "c", "uid": "u", "labels": {"a": "1", "b": "1"}},
            "spec": {
                "infrastructureRef": {"name": "i"}, "paused": true,
                "topology": {"version": "v1", "variables": [{"name": "a", "value": 1}]},
            },
            "status": {"x": 1},
        });
        let edit = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": "c", "namespace": "default", "labels": {"b": "2"}},
            "spec": {"topology": {"version": "v2"}},
        });
        let new = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}});
        let after = over(&[("server", live)], &[("f", edit), ("f", new.clone())]);
        let expected = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": "c", "uid": "u", "labels": {"a": "1", "b": "2"}},
            "spec": {
                "infrastructureRef": {"name": "i"},
                "topology": {"version": "v2", "variables": [{"name": "a", "value": 1}]},
            },
            "status": {"x": 1},
        });
        assert_eq!(after, [("f", expected), ("f", new)]);
    }

    #[test]
    fn an_edit_of_an_object_that_was_read_in_two_versions_is_of_its_own_version() {
        let of = |version: &str, size: u64| json!({"apiVersion": version, "kind": "T", "metadata": {"name": "t"}, "spec": {"size": size}});
        let live = [("server", of("p.x/v1", 1)), ("server", of("p.x/v2", 1))];
        let after = over(&live, &[("f", of("p.x/v2", 2))]);
        assert_eq!(after, [("server", of("p.x/v1", 1)), ("f", of("p.x/v2", 2))]);
    }
}
