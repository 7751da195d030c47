//! Owns: whether two exports say the same of a namespace's topology: each as far as whoever keeps it says something, with the
//! places of objects for their names.
//! Never: asks a cluster.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use hub::topology::desired::compare::{MANAGER, UPSTREAM_MANAGER};
use serde_json::{Map, Value, json};

use super::world::Export;

/// The labels with the name of a machine deployment, or pool, in the topology.
const WORKERS: [&str; 2] = [
    "topology.cluster.x-k8s.io/deployment-name",
    "topology.cluster.x-k8s.io/pool-name",
];
/// Kinds of what a machine pool refers to. With it they go, sooner or later.
pub(super) const OF_POOLS: [&str; 2] = ["Host", "Boot"];

/// Both are the same; how many objects these are.
pub(super) fn same(theirs: &Export, ours: &Export, namespace: &str) -> anyhow::Result<usize> {
    let (theirs, ours) = (
        tree(theirs, namespace, UPSTREAM_MANAGER).context("upstream's")?,
        tree(ours, namespace, MANAGER).context("ours")?,
    );
    let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    for name in names {
        let (their, our) = (theirs.get(name), ours.get(name));
        ensure!(
            their == our,
            "{name} is not the same: upstream's {}, ours {}",
            their.unwrap_or(&Value::Null),
            our.unwrap_or(&Value::Null)
        );
    }
    ensure!(!ours.is_empty(), "there is nothing to compare");
    Ok(ours.len())
}

/// A manager's values of each place.
fn tree(export: &Export, namespace: &str, manager: &str) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut said = Vec::new();
    for ((_, kind, name), object) in export.iter().filter(|((of, ..), _)| of == namespace) {
        if let Some(fields) = fields(object, manager) {
            // A health check has the name of what it is of, and no label of its own.
            let of = (namespace.to_owned(), "MachineDeployment".to_owned(), name.clone());
            let of = export.get(&of).unwrap_or(object);
            let mut workers = WORKERS
                .iter()
                .map(|label| of["metadata"]["labels"][label].as_str());
            let workers = workers.find_map(|workers| workers).unwrap_or("-");
            let mut projected = projected(object, fields);
            if let Some(Value::Object(about)) = projected.get_mut("metadata") {
                // Cluster API's other controllers have a say in them.
                about.remove("ownerReferences");
            }
            said.push((kind.clone(), name.clone(), format!("{kind}/{workers}"), projected));
        }
    }
    // Where upstream's manager has much to do, it makes what Clusters refer to a second time, from what it remembers; ours may
    // not. What only such an object refers to is no more there than it is.
    let forgiven = |kind: &str| manager == UPSTREAM_MANAGER && ["Cloud", "Plane"].contains(&kind);
    let is_template = |kind: &str| kind.ends_with("Template") || OF_POOLS.contains(&kind);
    let mut referred = BTreeSet::new();
    for (kind, .., projected) in &said {
        if !is_template(kind) && !forgiven(kind) {
            references(projected, &mut referred);
        }
    }
    for (kind, name, _, projected) in &said {
        if forgiven(kind) && referred.contains(&(kind.clone(), name.clone())) {
            references(projected, &mut referred);
        }
    }
    // Templates that are not referred to any more go sooner or later.
    said.retain(|(kind, name, ..)| {
        let stays = !is_template(kind) && !forgiven(kind);
        stays || referred.contains(&(kind.clone(), name.clone()))
    });
    let names: BTreeMap<String, String> = said
        .iter()
        .filter(|(kind, ..)| kind != "Cluster")
        .map(|(_, name, place, _)| (name.clone(), place.clone()))
        .collect();
    let mut tree = BTreeMap::new();
    for (_, name, place, mut projected) in said {
        rename(&mut projected, &names);
        let twice = tree.insert(place.clone(), projected);
        ensure!(twice.is_none(), "{place} is there twice, once as {name}");
    }
    Ok(tree)
}

fn fields<'a>(object: &'a Value, manager: &str) -> Option<&'a Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    let mut own = entries.iter().filter(|entry| {
        entry["manager"] == manager && entry["operation"] == "Apply" && entry["subresource"].is_null()
    });
    own.next().map(|entry| &entry["fieldsV1"])
}

/// A value as far as fields are owned.
fn projected(value: &Value, fields: &Value) -> Value {
    let below: Vec<(&String, &Value)> = fields
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != ".")
        .collect();
    if below.is_empty() {
        return value.clone();
    }
    if let Some(items) = value.as_array() {
        let mut found: Vec<Value> = below
            .iter()
            .filter_map(|(name, fields)| {
                let key: Value = serde_json::from_str(name.get(2..)?).ok()?;
                let is = |item: &&Value| match &key {
                    Value::Object(keys) if name.starts_with("k:") => {
                        keys.iter().all(|(name, value)| item.get(name) == Some(value))
                    }
                    key => *item == key,
                };
                items.iter().find(is).map(|item| projected(item, fields))
            })
            .collect();
        found.sort_by_key(Value::to_string);
        return Value::Array(found);
    }
    let mut object = Map::new();
    for (name, fields) in below {
        if let Some((name, value)) = name
            .strip_prefix("f:")
            .and_then(|name| Some((name, value.get(name)?)))
        {
            object.insert(name.to_owned(), projected(value, fields));
        }
    }
    Value::Object(object)
}

/// Objects referred to by others than templates, by namespace, kind and name.
pub(super) fn referred(export: &Export) -> BTreeSet<(String, String, String)> {
    let mut all = BTreeSet::new();
    for ((namespace, kind, _), object) in export {
        let mut found = BTreeSet::new();
        if !kind.ends_with("Template") {
            references(&object["spec"], &mut found);
        }
        all.extend(
            found
                .into_iter()
                .map(|(kind, name)| (namespace.clone(), kind, name)),
        );
    }
    all
}

fn references(value: &Value, found: &mut BTreeSet<(String, String)>) {
    match value {
        Value::Object(fields) => {
            let of = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
            found.extend(of("kind").zip(of("name")));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn rename(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(place) = names.get(text) {
                *value = json!(place);
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(|value| rename(value, names)),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(manager: &str, name: &str, size: u8) -> Export {
        let entry = |fields: Value| json!([{"manager": manager, "operation": "Apply", "fieldsV1": fields}]);
        let template = json!({
            "metadata": {"managedFields": entry(json!({"f:spec": {"f:size": {}}}))},
            "spec": {"size": size, "defaulted": true},
        });
        let plane = json!({
            "metadata": {"managedFields": entry(json!({"f:spec": {"f:ref": {}, "f:gates": {"k:{\"type\":\"a\"}": {".": {}, "f:type": {}}}}}))},
            "spec": {"ref": {"kind": "HostTemplate", "name": name}, "gates": [{"type": "b"}, {"type": "a", "x": 1}]},
        });
        let unused = json!({"metadata": template["metadata"], "spec": {"size": 9}});
        let cluster = json!({
            "metadata": {"managedFields": entry(json!({"f:spec": {}}))},
            "spec": {"controlPlaneRef": {"kind": "Plane", "name": "p"}},
        });
        let key = |kind: &str, name: &str| ("ns".to_owned(), kind.to_owned(), name.to_owned());
        BTreeMap::from([
            (key("HostTemplate", name), template),
            (key("HostTemplate", "unused"), unused),
            (key("Plane", "p"), plane),
            (key("Cluster", "c"), cluster),
        ])
    }

    #[test]
    fn what_is_said_is_compared_and_names_are_not() {
        let theirs = export(UPSTREAM_MANAGER, "x", 1);
        assert_eq!(same(&theirs, &export(MANAGER, "y", 1), "ns").unwrap(), 3);
        let told = same(&theirs, &export(MANAGER, "y", 2), "ns")
            .unwrap_err()
            .to_string();
        assert!(told.starts_with("HostTemplate/- is not the same"), "{told}");
        let tree = tree(&theirs, "ns", UPSTREAM_MANAGER).unwrap();
        assert_eq!(
            tree["Plane/-"],
            json!({"spec": {"ref": {"kind": "HostTemplate", "name": "HostTemplate/-"}, "gates": [{"type": "a"}]}})
        );
    }

    #[test]
    fn what_upstream_makes_twice_and_refers_to_from_nowhere_counts_as_little_as_what_it_refers_to() {
        let (mut theirs, mut ours) = (export(UPSTREAM_MANAGER, "x", 1), export(MANAGER, "y", 1));
        for (tree, manager) in [(&mut theirs, UPSTREAM_MANAGER), (&mut ours, MANAGER)] {
            for ((namespace, kind, name), object) in export(manager, "second", 3) {
                let name = if kind == "Plane" { "twice".to_owned() } else { name };
                tree.entry((namespace, kind, name)).or_insert(object);
            }
        }
        assert!(same(&theirs, &export(MANAGER, "y", 1), "ns").is_ok());
        assert!(same(&theirs, &ours, "ns").is_err(), "ours may not");
    }

    #[test]
    fn nothing_is_not_the_same_as_nothing() {
        assert!(same(&Export::new(), &Export::new(), "ns").is_err());
    }
}
