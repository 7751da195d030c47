//! Owns: the labels and annotations of what belongs to a topology: the class's, the topology's above them, ours above all.

use std::collections::BTreeMap;

use super::target::is_bookkeeping;
use crate::model::{Cluster, Metadata, Reference, WorkerClass, WorkerKind, WorkerTopology};

/// The label with the cluster's name.
pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// The label of what belongs to a topology, with no value.
pub const OWNED: &str = "topology.cluster.x-k8s.io/owned";
/// The label with the name of a machine deployment in the topology.
pub const DEPLOYMENT_NAME: &str = "topology.cluster.x-k8s.io/deployment-name";
/// The label with the name of a machine pool in the topology.
pub const POOL_NAME: &str = "topology.cluster.x-k8s.io/pool-name";
/// The annotation with the name of the template that an object came from.
pub const CLONED_FROM_NAME: &str = "cluster.x-k8s.io/cloned-from-name";
/// The annotation with the template's kind and group.
pub const CLONED_FROM_KIND: &str = "cluster.x-k8s.io/cloned-from-groupkind";
/// The annotation of workers at which, and behind which, upgrades of their kind stop.
pub const HOLD_UPGRADES: &str = "topology.cluster.x-k8s.io/hold-upgrade-sequence";
/// The annotation of workers that upgrades pass over.
pub const DEFER_UPGRADE: &str = "topology.cluster.x-k8s.io/defer-upgrade";

/// The label with the name that workers of a kind have in the topology.
pub fn name_label(kind: WorkerKind) -> &'static str {
    match kind {
        WorkerKind::MachineDeployment => DEPLOYMENT_NAME,
        WorkerKind::MachinePool => POOL_NAME,
    }
}

/// Labels of all that belongs to a topology.
pub fn labels(cluster: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        (CLUSTER_NAME.to_owned(), cluster.to_owned()),
        (OWNED.to_owned(), String::new()),
    ])
}

/// Annotations of an object that is made from a template.
pub fn cloned_from(reference: &Reference) -> BTreeMap<String, String> {
    let (group, kind) = reference.group_kind();
    BTreeMap::from([
        (CLONED_FROM_NAME.to_owned(), reference.name.clone()),
        (CLONED_FROM_KIND.to_owned(), format!("{kind}.{group}")),
    ])
}

/// The fields of a control plane, without the source of its copy.
pub fn of_control_plane(cluster: &Cluster, class: &Metadata, topology: &Metadata) -> Metadata {
    let mut all = over(class, topology);
    all.labels.extend(labels(&cluster.name));
    all
}

/// Those of a machine deployment or pool; the annotations that steer upgrades are the topology's alone.
pub fn of_worker(cluster: &Cluster, class: &WorkerClass, worker: &WorkerTopology) -> Metadata {
    let mut all = over(&class.metadata, &worker.metadata);
    all.annotations.remove(HOLD_UPGRADES);
    all.annotations.remove(DEFER_UPGRADE);
    all.labels.extend(labels(&cluster.name));
    all.labels
        .insert(name_label(worker.kind).to_owned(), worker.name.clone());
    all
}

/// Both, the second one's where both say something; what tools keep in annotations is left out.
fn over(below: &Metadata, above: &Metadata) -> Metadata {
    let mut all = below.clone();
    all.labels.extend(above.labels.clone());
    all.annotations.extend(above.annotations.clone());
    all.annotations.retain(|name, _| !is_bookkeeping(name));
    all
}
