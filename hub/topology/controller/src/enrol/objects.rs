//! Owns: what is applied to objects of the management cluster: to a Cluster, and the Secret beside it.
//! Never: asks a cluster.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared::api::names::{ANNOTATION_ENROLLED, ANNOTATION_ENROLMENT_SEAL, FINALIZER_MEMBER};

use crate::{model::Key, observe::Life};

/// Ends of the names of Secrets: of the one that Cluster API makes, and of ours.
const KUBECONFIG_SUFFIX: &str = "-kubeconfig";
const JOIN_SUFFIX: &str = "-tributary-join";
/// The type of Secrets that a ClusterResourceSet applies to Clusters.
const RESOURCE_SET: &str = "addons.cluster.x-k8s.io/resource-set";
/// The key in it.
pub const BUNDLE: &str = "tributary-agent.yaml";

/// The Secret of a Cluster with its kubeconfig.
pub fn kubeconfig_secret(cluster: &str) -> String {
    format!("{cluster}{KUBECONFIG_SUFFIX}")
}

/// The Secret of a Cluster with what has it join.
pub fn join_secret(cluster: &str) -> String {
    format!("{cluster}{JOIN_SUFFIX}")
}

/// Our annotations on a Cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said<'a> {
    /// The record of its enrolment.
    pub enrolled: Option<&'a str>,
    /// The proof that it is the member that it names.
    pub seal: Option<&'a str>,
    /// It does not go before we let it.
    pub held: bool,
    /// Nothing of it is changed or deleted.
    pub paused: bool,
}

/// A Cluster with our annotations: earlier ones that are not set now are removed. Only the one that was looked at.
pub fn cluster((namespace, name): &Key, life: &Life, api_version: &str, said: &Said<'_>) -> Value {
    let enrolled = said.enrolled.map(|enrolled| (ANNOTATION_ENROLLED, enrolled));
    let seal = said.seal.map(|seal| (ANNOTATION_ENROLMENT_SEAL, seal));
    let annotations: BTreeMap<_, _> = enrolled.into_iter().chain(seal).collect();
    let finalizers: Vec<&str> = said.held.then_some(FINALIZER_MEMBER).into_iter().collect();
    let mut object = json!({
        "apiVersion": api_version,
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": namespace, "uid": life.uid},
    });
    if !annotations.is_empty() {
        object["metadata"]["annotations"] = json!(annotations);
    }
    if !finalizers.is_empty() {
        object["metadata"]["finalizers"] = json!(finalizers);
    }
    if said.paused {
        object["spec"] = json!({"paused": true});
    }
    object
}

/// The Secret with what has a Cluster join; it goes with the Cluster.
pub fn bundle((namespace, name): &Key, life: &Life, api_version: &str, text: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": join_secret(name),
            "namespace": namespace,
            "labels": {"app.kubernetes.io/part-of": "tributary", "cluster.x-k8s.io/cluster-name": name},
            "ownerReferences": [{"apiVersion": api_version, "kind": "Cluster", "name": name, "uid": life.uid}],
        },
        "type": RESOURCE_SET,
        "stringData": {BUNDLE: text},
    })
}
