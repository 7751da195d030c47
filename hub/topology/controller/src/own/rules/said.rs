//! Owns: what a Cluster's own `spec` says of its machines: by another such word its owner takes a rollout into their hands.
//! Never: counts an edit that replaces no machines, such as one of replicas, labels or health checks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    desired::{change::Defaulted, objects::text},
    model::class_of,
};

/// Words of a Cluster by their place, each as a digest.
pub type Said = BTreeMap<String, String>;

/// Prefix of the places of machine deployments.
const WORKERS: &str = "machine-deployments.";
/// Letters of a digest.
const DIGEST: usize = 32;

/// A Cluster's values that decide about its machines: class, version, variables and others.
pub fn said(cluster: &Value) -> Said {
    let Some(topology) = cluster.pointer("/spec/topology") else {
        return Said::new();
    };
    let namespace = text(cluster, "/metadata/namespace").unwrap_or_default();
    let mut said = Said::new();
    let mut say = |place: String, value: &Value| drop(said.insert(place, digest(value)));
    say("class".to_owned(), &json!(class_of(topology, namespace)));
    say("version".to_owned(), &topology["version"]);
    say("rolloutAfter".to_owned(), &topology["rolloutAfter"]);
    for variable in list(topology, "/variables") {
        let name = text(variable, "/name").unwrap_or_default();
        say(format!("variables.{name}"), &variable["value"]);
    }
    let plane = &topology["controlPlane"];
    say("control-plane".to_owned(), &of_machines(plane));
    for worker in list(topology, "/workers/machineDeployments") {
        let name = text(worker, "/name").unwrap_or_default();
        say(format!("{WORKERS}{name}"), &of_machines(worker));
    }
    said
}

/// The same of a Cluster once it has these defaults.
pub fn said_with(cluster: &Value, defaults: &[Defaulted]) -> Said {
    let mut filled = cluster.clone();
    for one in defaults {
        one.write(&mut filled);
    }
    said(&filled)
}

/// The values of a control plane or a machine deployment whose change replaces its machines.
fn of_machines(part: &Value) -> Value {
    json!([
        part["class"],
        part["failureDomain"],
        part["variables"]["overrides"],
        part["rollout"]["after"],
    ])
}

fn list<'a>(topology: &'a Value, place: &str) -> impl Iterator<Item = &'a Value> {
    topology
        .pointer(place)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn digest(value: &Value) -> String {
    let mut digest = blake3::hash(value.to_string().as_bytes()).to_hex().to_string();
    digest.truncate(DIGEST);
    digest
}

/// Returns true if a Cluster says something else of machines that it has. Machine deployments that are added or removed say
/// nothing of the others.
pub fn says_otherwise(before: &Said, now: &Said) -> bool {
    let mut places = before.keys().chain(now.keys());
    places.any(|place| match (before.get(place), now.get(place)) {
        (Some(_), None) | (None, Some(_)) if place.starts_with(WORKERS) => false,
        (before, now) => before != now,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Value {
        json!({
            "metadata": {"namespace": "ns"},
            "spec": {"topology": {
                "classRef": {"name": "k"},
                "version": "v1.31.0",
                "variables": [{"name": "a", "value": {"x": 1}}],
                "controlPlane": {"replicas": 1},
                "workers": {"machineDeployments": [
                    {"class": "linux", "name": "md-0", "replicas": 2, "variables": {"overrides": [{"name": "a", "value": 2}]}},
                ]},
            }},
        })
    }

    fn counts(edit: impl Fn(&mut Value)) -> bool {
        let mut edited = cluster();
        edit(&mut edited["spec"]["topology"]);
        says_otherwise(&said(&cluster()), &said(&edited))
    }

    #[test]
    fn words_of_machines_count() {
        assert!(counts(|one| one["version"] = json!("v1.32.0")));
        assert!(counts(|one| one["classRef"]["name"] = json!("other")));
        assert!(counts(|one| one["classRef"]["namespace"] = json!("other")));
        assert!(counts(|one| one["variables"][0]["value"]["x"] = json!(2)));
        assert!(counts(|one| one["variables"] = json!([])));
        assert!(counts(
            |one| one["controlPlane"]["rollout"]["after"] = json!("2026-11-29T00:00:00Z")
        ));
        let worker = |edit: fn(&mut Value)| counts(|one| edit(&mut one["workers"]["machineDeployments"][0]));
        assert!(worker(|one| one["class"] = json!("windows")));
        assert!(worker(|one| one["failureDomain"] = json!("b")));
        assert!(worker(|one| one["variables"]["overrides"][0]["value"] = json!(3)));
    }

    #[test]
    fn words_of_something_else_do_not() {
        assert!(!counts(|_| {}));
        assert!(!counts(|one| one["classRef"]["namespace"] = json!("ns")));
        assert!(!counts(|one| one["controlPlane"]["replicas"] = json!(3)));
        assert!(!counts(
            |one| one["controlPlane"]["metadata"] = json!({"labels": {"a": "b"}})
        ));
        let worker = |edit: fn(&mut Value)| counts(|one| edit(&mut one["workers"]["machineDeployments"][0]));
        assert!(!worker(|one| one["replicas"] = json!(3)));
        assert!(!worker(|one| one["healthCheck"] = json!({"enabled": false})));
        assert!(!counts(|one| one["workers"]["machineDeployments"] = json!([])));
        assert!(!says_otherwise(&Said::new(), &Said::new()));
    }
}
