//! Owns: classes and Clusters in the spelling of v1beta1, as far as the comparison uses fields.
//! Never: is how the product reads them.

use serde_json::{Map, Value, json};

const OLDER: &str = "cluster.x-k8s.io/v1beta1";
/// Fields of both spellings that are durations in the older one.
const TIMEOUTS: [&str; 3] = [
    "nodeDrainTimeout",
    "nodeVolumeDetachTimeout",
    "nodeDeletionTimeout",
];

/// An object as v1beta1 writes it; one of another kind as it is.
pub(super) fn spelled(object: &Value) -> Value {
    let mut object = object.clone();
    match object["kind"].as_str() {
        Some("ClusterClass") => class(&mut object["spec"]),
        Some("Cluster") => cluster(&mut object["spec"]),
        _ => return object,
    }
    object["apiVersion"] = json!(OLDER);
    without_nulls(&mut object["spec"]);
    object
}

/// An index of what is not there leaves a null.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

fn class(spec: &mut Value) {
    template(&mut spec["infrastructure"]);
    let plane = &mut spec["controlPlane"];
    template(plane);
    template(&mut plane["machineInfrastructure"]);
    settings(plane);
    for workers in ["machineDeployments", "machinePools"] {
        for worker in items(&mut spec["workers"][workers]) {
            settings(worker);
            let mut inner = Map::new();
            for name in ["metadata", "bootstrap", "infrastructure"] {
                if let Some(mut value) = taken(worker, name) {
                    template(&mut value);
                    inner.insert(name.to_owned(), value);
                }
            }
            worker["template"] = Value::Object(inner);
        }
    }
}

fn cluster(spec: &mut Value) {
    for name in ["infrastructureRef", "controlPlaneRef"] {
        if let Some(mut reference) = taken(spec, name) {
            let group = taken(&mut reference, "apiGroup");
            let group = group.as_ref().and_then(Value::as_str).unwrap_or_default();
            reference["apiVersion"] = json!(format!("{group}/v1beta2"));
            spec[name] = reference;
        }
    }
    let topology = &mut spec["topology"];
    if let Some(class) = taken(topology, "classRef") {
        topology["class"] = class["name"].clone();
    }
    settings(&mut topology["controlPlane"]);
    for workers in ["machineDeployments", "machinePools"] {
        for worker in items(&mut topology["workers"][workers]) {
            settings(worker);
        }
    }
}

/// `templateRef` is `ref`.
fn template(holder: &mut Value) {
    if let Some(reference) = taken(holder, "templateRef") {
        holder["ref"] = reference;
    }
}

/// Settings of machines, and their health check.
fn settings(holder: &mut Value) {
    if let Some(naming) = taken(holder, "naming") {
        holder["namingStrategy"] = naming;
    }
    let mut strategy = taken(holder, "rollout").map(|mut rollout| rollout["strategy"].take());
    if let Some(mut deletion) = taken(holder, "deletion") {
        for name in TIMEOUTS {
            if let Some(seconds) = taken(&mut deletion, &format!("{name}Seconds")) {
                holder[name] = json!(format!("{seconds}s"));
            }
        }
        if let Some(order) = taken(&mut deletion, "order") {
            let strategy = strategy.get_or_insert_with(|| json!({}));
            strategy["rollingUpdate"]["deletePolicy"] = order;
        }
    }
    if let Some(strategy) = strategy {
        holder["strategy"] = strategy;
    }
    if let Some(mut health) = taken(holder, "healthCheck") {
        let mut older = json!({});
        if let Some(enabled) = taken(&mut health, "enabled") {
            older["enable"] = enabled;
        }
        if let Some(seconds) = health.pointer("/checks/nodeStartupTimeoutSeconds") {
            older["nodeStartupTimeout"] = json!(format!("{seconds}s"));
        }
        holder["machineHealthCheck"] = older;
    }
}

fn taken(holder: &mut Value, name: &str) -> Option<Value> {
    holder.as_object_mut()?.remove(name)
}

fn items(list: &mut Value) -> impl Iterator<Item = &mut Value> {
    list.as_array_mut().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_say_the_same() {
        let newer = json!({"kind": "Cluster", "spec": {
            "infrastructureRef": {"apiGroup": "p.x", "kind": "Cloud", "name": "c"},
            "topology": {
                "classRef": {"name": "k"},
                "controlPlane": {"healthCheck": {"enabled": false}},
                "workers": {"machineDeployments": [{
                    "name": "md", "deletion": {"order": "Newest", "nodeDrainTimeoutSeconds": 5},
                    "rollout": {"strategy": {"type": "RollingUpdate"}},
                }]},
            },
        }});
        let expected = json!({"apiVersion": OLDER, "kind": "Cluster", "spec": {
            "infrastructureRef": {"apiVersion": "p.x/v1beta2", "kind": "Cloud", "name": "c"},
            "topology": {
                "class": "k",
                "controlPlane": {"machineHealthCheck": {"enable": false}},
                "workers": {"machineDeployments": [{
                    "name": "md", "nodeDrainTimeout": "5s",
                    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"deletePolicy": "Newest"}},
                }]},
            },
        }});
        assert_eq!(spelled(&newer), expected);
    }
}
