//! Owns: which class a Cluster has, and the edit that gives it another one, in the spelling of its object.
//! Never: changes anything else of a Cluster.

use std::str::FromStr;

use clusterclass::model::{Key, class_of};
use serde_json::{Value, json};

/// A class as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClassName {
    /// None for the namespace of each Cluster.
    namespace: Option<String>,
    name: String,
}

impl FromStr for ClassName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        if name.is_empty() || name.contains('/') || namespace == Some("") {
            return Err("give NAME or NAMESPACE/NAME of a ClusterClass".to_owned());
        }
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        })
    }
}

impl std::fmt::Display for ClassName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(out, "{namespace}/")?;
        }
        out.write_str(&self.name)
    }
}

impl ClassName {
    /// The class for Clusters of a namespace.
    pub(super) fn of(&self, namespace: &str) -> Key {
        let namespace = self.namespace.as_deref().unwrap_or(namespace);
        (namespace.to_owned(), self.name.clone())
    }
}

/// The class of a Cluster; none if it has no topology.
pub(super) fn class(cluster: &Value) -> Option<Key> {
    let topology = cluster.pointer("/spec/topology")?;
    Some(class_of(topology, namespace(cluster)))
}

/// Returns true if nobody carries out what a Cluster says.
pub(super) fn is_paused(cluster: &Value) -> bool {
    let annotations = cluster.pointer("/metadata/annotations");
    cluster.pointer("/spec/paused") == Some(&Value::Bool(true))
        || annotations.is_some_and(|all| all.get("cluster.x-k8s.io/paused").is_some())
}

fn namespace(cluster: &Value) -> &str {
    let namespace = cluster.pointer("/metadata/namespace");
    namespace.and_then(Value::as_str).unwrap_or("default")
}

/// The edit as a JSON Patch. It fails if the Cluster is another one by now, or has another class.
pub(super) fn patch(cluster: &Value, to: &Key) -> Value {
    let mut edits = vec![json!({"op": "test", "path": "/metadata/uid", "value": cluster["metadata"]["uid"]})];
    for (name, value) in fields(cluster, to) {
        let path = format!("/spec/topology/{name}");
        let before = cluster.pointer(&path);
        if let Some(before) = before {
            edits.push(json!({"op": "test", "path": path, "value": before}));
        }
        match (before, value) {
            (_, Some(value)) => edits.push(json!({"op": "add", "path": path, "value": value})),
            (Some(_), None) => edits.push(json!({"op": "remove", "path": path})),
            (None, None) => {}
        }
    }
    Value::Array(edits)
}

/// The Cluster after the edit.
pub(super) fn edited(cluster: &Value, to: &Key) -> Value {
    let mut after = cluster.clone();
    if let Some(topology) = after.pointer_mut("/spec/topology").and_then(Value::as_object_mut) {
        for (name, value) in fields(cluster, to) {
            match value {
                Some(value) => drop(topology.insert(name.to_owned(), value)),
                None => drop(topology.remove(name)),
            }
        }
    }
    after
}

/// The fields that name the class: a namespace is named if it is not the Cluster's own.
fn fields(cluster: &Value, to: &Key) -> Vec<(&'static str, Option<Value>)> {
    let (class_namespace, name) = to;
    let other = (class_namespace != namespace(cluster)).then(|| json!(class_namespace));
    if cluster["apiVersion"] == "cluster.x-k8s.io/v1beta1" {
        return vec![("class", Some(json!(name))), ("classNamespace", other)];
    }
    let mut reference = json!({"name": name});
    if let Some(other) = other {
        reference["namespace"] = other;
    }
    vec![("classRef", Some(reference))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, name: &str) -> Key {
        (namespace.to_owned(), name.to_owned())
    }

    #[test]
    fn classes_are_named_with_a_namespace_or_without() {
        let read = |text: &str| text.parse::<ClassName>();
        assert_eq!(read("b").map(|one| one.of("ns")), Ok(key("ns", "b")));
        assert_eq!(read("x/b").map(|one| one.of("ns")), Ok(key("x", "b")));
        assert_eq!(read("x/b").map(|one| one.to_string()), Ok("x/b".to_owned()));
        for bad in ["", "/b", "x/", "x/y/z"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn both_spellings_are_edited_and_nothing_else() {
        let newer = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "metadata": {"name": "c", "namespace": "ns", "uid": "u"},
            "spec": {"topology": {"classRef": {"name": "a"}, "version": "v1.31.0"}},
        });
        let mut older = newer.clone();
        older["apiVersion"] = json!("cluster.x-k8s.io/v1beta1");
        older["spec"]["topology"] = json!({"class": "a", "version": "v1.31.0"});
        for (cluster, own, other) in [
            (
                &newer,
                json!({"classRef": {"name": "b"}, "version": "v1.31.0"}),
                json!({"classRef": {"name": "b", "namespace": "x"}, "version": "v1.31.0"}),
            ),
            (
                &older,
                json!({"class": "b", "version": "v1.31.0"}),
                json!({"class": "b", "classNamespace": "x", "version": "v1.31.0"}),
            ),
        ] {
            assert_eq!(class(cluster), Some(key("ns", "a")));
            let in_own = edited(cluster, &key("ns", "b"));
            assert_eq!(in_own["spec"]["topology"], own);
            assert_eq!(class(&in_own), Some(key("ns", "b")));
            let elsewhere = edited(cluster, &key("x", "b"));
            assert_eq!(elsewhere["spec"]["topology"], other);
            assert_eq!(class(&elsewhere), Some(key("x", "b")));
            assert_eq!(
                edited(&elsewhere, &key("ns", "b"))["spec"]["topology"],
                own,
                "and back"
            );
        }
        assert_eq!(
            patch(&newer, &key("ns", "b")),
            json!([
                {"op": "test", "path": "/metadata/uid", "value": "u"},
                {"op": "test", "path": "/spec/topology/classRef", "value": {"name": "a"}},
                {"op": "add", "path": "/spec/topology/classRef", "value": {"name": "b"}},
            ])
        );
        older["spec"]["topology"]["classNamespace"] = json!("x");
        assert_eq!(
            patch(&older, &key("ns", "b")),
            json!([
                {"op": "test", "path": "/metadata/uid", "value": "u"},
                {"op": "test", "path": "/spec/topology/class", "value": "a"},
                {"op": "add", "path": "/spec/topology/class", "value": "b"},
                {"op": "test", "path": "/spec/topology/classNamespace", "value": "x"},
                {"op": "remove", "path": "/spec/topology/classNamespace"},
            ])
        );
    }

    #[test]
    fn a_paused_cluster_is_known_by_either_sign() {
        assert!(!is_paused(&json!({"metadata": {}, "spec": {"paused": false}})));
        assert!(is_paused(&json!({"spec": {"paused": true}})));
        assert!(is_paused(
            &json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}})
        ));
    }
}
