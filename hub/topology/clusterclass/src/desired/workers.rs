//! Owns: machine deployments and machine pools: what the topology says of each above its class.

use serde_json::{Map, Value, json};

use super::{
    current::CORE,
    named::NamedWorker,
    parts::{about, refer, set},
};
use crate::{
    model::{Cluster, Reference, WorkerClass, WorkerTopology},
    patch::{
        cluster::metadata,
        owned::{self, DEPLOYMENT_NAME},
    },
};

/// The machine deployment of this version.
pub(super) fn machine_deployment(
    class: &WorkerClass,
    cluster: &Cluster,
    said: &WorkerTopology,
    named: &NamedWorker,
    version: &str,
) -> Value {
    let all = owned::of_worker(cluster, class, said);
    let settings = said.settings.over(&class.settings);
    let mut machine = json!({
        "clusterName": cluster.name,
        "version": version,
        "bootstrap": {
            "configRef": refer(&class.bootstrap.api_version, &class.bootstrap.kind, &named.bootstrap),
        },
        "infrastructureRef": refer(&class.machines.api_version, &class.machines.kind, &named.machines),
    });
    for name in ["failureDomain", "minReadySeconds", "readinessGates", "taints"] {
        if let Some(value) = settings.get(name) {
            machine[name] = value.clone();
        }
    }
    let deletion = settings.get("deletion").and_then(Value::as_object);
    let mut limits: Map<String, Value> = deletion.cloned().unwrap_or_default();
    let order = limits.remove("order");
    if !limits.is_empty() {
        machine["deletion"] = Value::Object(limits);
    }
    let mut labels = owned::labels(&cluster.name);
    labels.insert(DEPLOYMENT_NAME.to_owned(), said.name.clone());
    let mut spec = json!({
        "clusterName": cluster.name,
        "selector": {"matchLabels": labels},
        "template": {"metadata": metadata(all.clone()), "spec": machine},
    });
    if let Some(replicas) = &said.replicas {
        spec["replicas"] = json!(replicas.value);
    }
    for name in ["rollout", "remediation"] {
        if let Some(value) = settings.get(name) {
            spec[name] = value.clone();
        }
    }
    if let Some(order) = order {
        set(&mut spec, &["deletion", "order"], order);
    }
    json!({
        "apiVersion": CORE,
        "kind": "MachineDeployment",
        "metadata": about(cluster, &named.object, all),
        "spec": spec,
    })
}

/// The machine pool of this version.
pub(super) fn machine_pool(
    class: &WorkerClass,
    cluster: &Cluster,
    said: &WorkerTopology,
    named: &NamedWorker,
    version: &str,
) -> Value {
    let all = owned::of_worker(cluster, class, said);
    let settings = said.settings.over(&class.settings);
    let refer = |template: &Reference, name: &str| {
        let kind = template.kind.strip_suffix("Template").unwrap_or(&template.kind);
        refer(&template.api_version, kind, name)
    };
    let mut machine = json!({
        "clusterName": cluster.name,
        "version": version,
        "bootstrap": {"configRef": refer(&class.bootstrap, &named.bootstrap)},
        "infrastructureRef": refer(&class.machines, &named.machines),
    });
    for name in ["deletion", "minReadySeconds", "taints"] {
        if let Some(value) = settings.get(name).filter(|value| **value != json!({})) {
            machine[name] = value.clone();
        }
    }
    let mut spec = json!({
        "clusterName": cluster.name,
        "template": {"metadata": metadata(all.clone()), "spec": machine},
    });
    if let Some(replicas) = &said.replicas {
        spec["replicas"] = json!(replicas.value);
    }
    if let Some(domains) = settings.get("failureDomains") {
        spec["failureDomains"] = domains.clone();
    }
    json!({
        "apiVersion": CORE,
        "kind": "MachinePool",
        "metadata": about(cluster, &named.object, all),
        "spec": spec,
    })
}
