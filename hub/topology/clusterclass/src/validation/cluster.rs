//! Owns: the rules that a Cluster keeps by itself and with its class.

use std::collections::BTreeSet;

use super::{
    super::{
        model::{
            Class, Cluster, HealthCheck, Metadata, Report, Topology, Version, WorkerKind, WorkerTopology,
        },
        variables::{Variables, is_block},
    },
    names::{check_metadata, is_dns_name, is_label_value},
    quantity::{check_health, check_rollout},
    taints::{Machines, check_taints},
};

/// Rules of every Cluster.
pub(super) const RULES: &[fn(&Cluster, &mut Report)] = &[
    cluster_name,
    topology_or_references,
    network_blocks,
    upgrade_concurrency,
];

/// Rules of a Cluster with a topology.
pub(super) const TOPOLOGY_RULES: &[fn(&Cluster, &Topology, &mut Report)] = &[
    topology_class,
    topology_version,
    worker_name,
    autoscaler_replicas,
    topology_metadata,
    topology_taints,
    topology_rollout,
];

/// Rules of a topology and its class.
pub(super) const CLASS_RULES: &[fn(&Topology, &Class, &mut Report)] = &[
    worker_class_exists,
    autoscaler_replicas_of_class,
    health_check_override,
    version_listed,
];

const CONCURRENCY: &str = "topology.cluster.x-k8s.io/upgrade-concurrency";
const AUTOSCALER: [&str; 2] = [
    "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size",
    "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size",
];

/// The name is one of DNS, and a label's value.
fn cluster_name(cluster: &Cluster, report: &mut Report) {
    if !is_dns_name(&cluster.name) || !is_label_value(&cluster.name) {
        report.say(
            "cluster-name",
            "metadata.name",
            "must be lower-case letters, digits, - and ., at most 63",
        );
    }
}

/// A Cluster has a topology, or names its parts itself.
fn topology_or_references(cluster: &Cluster, report: &mut Report) {
    if cluster.topology.is_none() && cluster.references.is_empty() {
        report.say(
            "topology-or-references",
            "spec",
            "must have a topology, or infrastructureRef or controlPlaneRef",
        );
    }
}

/// Blocks of addresses are such.
fn network_blocks(cluster: &Cluster, report: &mut Report) {
    for block in cluster.network.services.iter().chain(&cluster.network.pods) {
        if !is_block(&block.value) {
            let message = "must be a block of addresses, such as 10.0.0.0/8";
            report.say("network-blocks", &block.field, message);
        }
    }
}

/// Checks that the number of concurrent upgrades is at least 1.
fn upgrade_concurrency(cluster: &Cluster, report: &mut Report) {
    if let Some(written) = cluster.metadata.annotations.get(CONCURRENCY)
        && !written.parse::<i32>().is_ok_and(|number| number >= 1)
    {
        report.say(
            "upgrade-concurrency",
            format!("metadata.annotations[{CONCURRENCY}]"),
            "must be a whole number from 1",
        );
    }
}

/// A topology names its class.
fn topology_class(_: &Cluster, topology: &Topology, report: &mut Report) {
    if topology.class.value.is_empty() {
        report.say("topology-class", &topology.class.field, "must be given");
    }
}

/// The version is one.
fn topology_version(_: &Cluster, topology: &Topology, report: &mut Report) {
    if Version::read(&topology.version.value).is_none() {
        let message = "must be a version, such as v1.30.0";
        report.say("topology-version", &topology.version.field, message);
    }
}

/// Names of workers can be values of labels, each its own among those of its kind.
fn worker_name(_: &Cluster, topology: &Topology, report: &mut Report) {
    const RULE: &str = "worker-name";
    let mut known = BTreeSet::new();
    for worker in &topology.workers {
        let at = format!("{}.name", worker.field);
        if worker.name.is_empty() {
            report.say(RULE, at, "must be given");
        } else if !is_label_value(&worker.name) {
            report.say(
                RULE,
                at,
                "must be a value of a label: at most 63 letters, digits, -, _ and .",
            );
        } else if !known.insert((worker.kind, &worker.name)) {
            report.say(RULE, at, format!("{} is given twice", worker.name));
        }
    }
}

/// Checks that a deployment with an autoscaler does not state its number of machines, too.
fn autoscaler_replicas(_: &Cluster, topology: &Topology, report: &mut Report) {
    for worker in deployments(topology).filter(|worker| is_scaled(&worker.metadata)) {
        replicas_beside_autoscaler(worker, "annotations for the autoscaler", report);
    }
}

/// The same, where the class says that an autoscaler chooses.
fn autoscaler_replicas_of_class(topology: &Topology, class: &Class, report: &mut Report) {
    for worker in deployments(topology).filter(|worker| !is_scaled(&worker.metadata)) {
        if class
            .worker(worker.kind, &worker.class)
            .is_some_and(|class| is_scaled(&class.metadata))
        {
            replicas_beside_autoscaler(worker, "annotations of its class for the autoscaler", report);
        }
    }
}

/// Machine deployments: upstream asks nothing of the replicas of machine pools.
fn deployments(topology: &Topology) -> impl Iterator<Item = &WorkerTopology> {
    let workers = topology.workers.iter();
    workers.filter(|worker| worker.kind == WorkerKind::MachineDeployment)
}

fn is_scaled(metadata: &Metadata) -> bool {
    AUTOSCALER
        .iter()
        .any(|name| metadata.annotations.contains_key(*name))
}

fn replicas_beside_autoscaler(worker: &WorkerTopology, what: &str, report: &mut Report) {
    if let Some(replicas) = &worker.replicas {
        let message = format!("must not be given beside {what}: remove one of them");
        report.say("autoscaler-replicas", &replicas.field, message);
    }
}

/// Labels and annotations are such.
fn topology_metadata(_: &Cluster, topology: &Topology, report: &mut Report) {
    let workers = topology.workers.iter().map(|worker| &worker.metadata);
    for metadata in std::iter::once(&topology.control_plane.metadata).chain(workers) {
        check_metadata(metadata, report);
    }
}

/// Taints of nodes are such, and none that others keep for themselves.
fn topology_taints(_: &Cluster, topology: &Topology, report: &mut Report) {
    let plane = &topology.control_plane.settings;
    check_taints(
        Machines::OfControlPlane,
        plane,
        "spec.topology.controlPlane",
        report,
    );
    for worker in &topology.workers {
        check_taints(Machines::OfWorkers, &worker.settings, &worker.field, report);
    }
}

/// Rollouts can proceed.
fn topology_rollout(_: &Cluster, topology: &Topology, report: &mut Report) {
    for rollout in topology
        .workers
        .iter()
        .filter_map(|worker| worker.rollout.as_ref())
    {
        check_rollout(rollout, report);
    }
}

/// The class is among what was given.
pub(super) fn class_exists(topology: &Topology, exists: bool, report: &mut Report) {
    if !exists && !topology.class.value.is_empty() {
        let (namespace, name) = (&topology.class_namespace, &topology.class.value);
        let message = format!("there is no class {namespace}/{name} among the files: give it too");
        report.say("class-exists", &topology.class.field, message);
    }
}

/// Workers are of classes that the class has.
fn worker_class_exists(topology: &Topology, class: &Class, report: &mut Report) {
    for worker in &topology.workers {
        if class.worker(worker.kind, &worker.class).is_none() {
            let message = format!(
                "class {} has no class of {}s {}",
                class.name,
                worker.kind.words(),
                worker.class
            );
            report.say("worker-class-exists", format!("{}.class", worker.field), message);
        }
    }
}

/// Checks a topology's overrides of health checks: they are valid, and an enabled one is defined somewhere.
fn health_check_override(topology: &Topology, class: &Class, report: &mut Report) {
    const RULE: &str = "health-check-override";
    let enabled = |check: &HealthCheck, of_class: bool, report: &mut Report| {
        check_health(check, RULE, report);
        if check.enabled == Some(true) && !check.defined && !of_class {
            let message = "is enabled and defined neither here nor in the class: define it";
            report.say(RULE, &check.field, message);
        }
    };
    if let Some(check) = &topology.control_plane.health_check {
        enabled(check, class.control_plane.health_check.is_some(), report);
        let wanted = check.enabled != Some(false) && (check.defined || check.enabled == Some(true));
        if wanted && class.control_plane.machines.is_none() {
            let message = "the class's control plane has no machineInfrastructure: remove it";
            report.say(RULE, &check.field, message);
        }
    }
    for worker in &topology.workers {
        if let (Some(check), Some(of)) = (&worker.health_check, class.worker(worker.kind, &worker.class)) {
            enabled(check, of.health_check.is_some(), report);
        }
    }
}

/// The version is one that the class lists, if it lists any.
fn version_listed(topology: &Topology, class: &Class, report: &mut Report) {
    let version = &topology.version;
    if !class.versions.is_empty() && !class.versions.iter().any(|listed| listed.value == version.value) {
        let message = format!("must be one of kubernetesVersions of class {}", class.name);
        report.say("version-listed", &version.field, message);
    }
}

/// Variables with their defaults are what the class says.
pub(super) fn variable_values(topology: &Topology, read: &Variables, report: &mut Report) {
    const FIELD: &str = "spec.topology.variables";
    read.check(&read.defaulted(&topology.variables, FIELD), FIELD, report);
    read.check_overrides(&read.filled(&topology.control_plane.overrides), report);
    for worker in &topology.workers {
        read.check_overrides(&read.filled(&worker.overrides), report);
    }
}
