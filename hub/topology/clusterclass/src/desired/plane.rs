//! Owns: the control plane: what the topology says of it, at the places that its provider's contract has for it.

use serde_json::{Value, json};

use super::{
    blueprint::Contract,
    parts::{get, object, said_by, set, take},
};
use crate::{
    model::{Class, Cluster, Topology},
    patch::{cluster::metadata, owned, target::Target},
};

/// Wanted values of a control plane that are not in its template.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    /// The name of the template of its machines.
    pub(super) machines: Option<&'a str>,
    pub(super) contract: Contract,
}

/// The control plane from its template, before patches and after them.
pub(super) fn control_plane(
    (before, patched): (&Target, &Value),
    class: &Class,
    cluster: &Cluster,
    topology: &Topology,
    wanted: Wanted<'_>,
) -> Value {
    let (of_class, said) = (&class.control_plane, &topology.control_plane);
    let all = owned::of_control_plane(cluster, &of_class.metadata, &said.metadata);
    let mut plane = object(before, &of_class.template, cluster, wanted.name, all.clone());
    if let (Some(reference), Some(name)) = (&of_class.machines, wanted.machines) {
        let mut of_machines = said_by(&plane, "/spec/machineTemplate/metadata");
        of_machines.labels.extend(all.labels);
        of_machines.annotations.extend(all.annotations);
        set(&mut plane, MACHINE_METADATA, metadata(of_machines));
        let (path, value) = match wanted.contract {
            Contract::V1Beta1 => (
                &MACHINES_OLDER[..],
                json!({
                    "apiVersion": reference.api_version,
                    "kind": reference.kind,
                    "name": name,
                    "namespace": cluster.namespace,
                }),
            ),
            Contract::V1Beta2 => (
                &MACHINES[..],
                super::parts::refer(&reference.api_version, &reference.kind, name),
            ),
        };
        set(&mut plane, path, value);
    }
    if let Some(replicas) = said.replicas {
        set(&mut plane, &["spec", "replicas"], json!(replicas));
    }
    settings(&mut plane, class, topology, wanted.contract);
    set(&mut plane, &["spec", "version"], json!(wanted.version));
    let kept: Vec<(&[&str], Value)> = KEPT
        .iter()
        .filter_map(|path| Some((*path, get(&plane, path)?.clone())))
        .collect();
    take(&mut plane, "/spec", patched);
    for (path, value) in kept {
        set(&mut plane, path, value);
    }
    plane
}

/// Time limits, gates, taints, and since when machines are replaced.
fn settings(plane: &mut Value, class: &Class, topology: &Topology, contract: Contract) {
    let all = topology
        .control_plane
        .settings
        .over(&class.control_plane.settings);
    let of_machines: &[&str] = match contract {
        Contract::V1Beta1 => &["spec", "machineTemplate"],
        Contract::V1Beta2 => &["spec", "machineTemplate", "spec"],
    };
    let mut put = |name: &str, value: Value| {
        let path: Vec<&str> = of_machines.iter().copied().chain(name.split('.')).collect();
        set(plane, &path, value);
    };
    for name in ["readinessGates", "taints"] {
        if let Some(value) = all.get(name) {
            put(name, value.clone());
        }
    }
    for (older, newer) in TIMEOUTS {
        if let Some(seconds) = all.get("deletion").and_then(|deletion| deletion.get(newer)) {
            match contract {
                Contract::V1Beta1 => put(older, json!(format!("{seconds}s"))),
                Contract::V1Beta2 => put(&format!("deletion.{newer}"), seconds.clone()),
            }
        }
    }
    if let Some(after) = all.get("rollout").and_then(|rollout| rollout.get("after")) {
        set(plane, &["spec", "rollout", "after"], after.clone());
    }
}

const MACHINE_METADATA: &[&str] = &["spec", "machineTemplate", "metadata"];
const MACHINES: [&str; 4] = ["spec", "machineTemplate", "spec", "infrastructureRef"];
const MACHINES_OLDER: [&str; 3] = ["spec", "machineTemplate", "infrastructureRef"];
const TIMEOUTS: [(&str, &str); 3] = [
    ("nodeDrainTimeout", "nodeDrainTimeoutSeconds"),
    ("nodeVolumeDetachTimeout", "nodeVolumeDetachTimeoutSeconds"),
    ("nodeDeletionTimeout", "nodeDeletionTimeoutSeconds"),
];
/// Fields that patches cannot change once the topology or the class has set them.
const KEPT: &[&[&str]] = &[
    MACHINE_METADATA,
    &MACHINES,
    &MACHINES_OLDER,
    &[
        "spec",
        "machineTemplate",
        "spec",
        "deletion",
        "nodeDrainTimeoutSeconds",
    ],
    &[
        "spec",
        "machineTemplate",
        "spec",
        "deletion",
        "nodeVolumeDetachTimeoutSeconds",
    ],
    &[
        "spec",
        "machineTemplate",
        "spec",
        "deletion",
        "nodeDeletionTimeoutSeconds",
    ],
    &["spec", "machineTemplate", "nodeDrainTimeout"],
    &["spec", "machineTemplate", "nodeVolumeDetachTimeout"],
    &["spec", "machineTemplate", "nodeDeletionTimeout"],
    &["spec", "machineTemplate", "spec", "readinessGates"],
    &["spec", "machineTemplate", "readinessGates"],
    &["spec", "machineTemplate", "spec", "taints"],
    &["spec", "machineTemplate", "taints"],
    &["spec", "replicas"],
    &["spec", "version"],
    &["spec", "rollout", "after"],
];
