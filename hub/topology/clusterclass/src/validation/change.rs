//! Owns: the rules that a change of a ClusterClass keeps, of itself and of the clusters that use it.

use std::collections::BTreeSet;

use super::super::{
    model::{Class, Cluster, Definition, Estate, Key, Reference, Report, Topology, Variable, WorkerKind},
    variables::Variables,
};

/// A rule of a class before, the class now, and the clusters now.
type Rule = fn(&Class, &Class, &Estate, &mut Report);

/// Every rule of a changed class; those of variables are beside them.
pub(super) const RULES: &[Rule] = &[
    template_kind_kept,
    worker_class_in_use,
    health_check_in_use,
    version_in_use,
];

fn key(class: &Class) -> Key {
    (class.namespace.clone(), class.name.clone())
}

fn shown(cluster: &Cluster) -> String {
    format!("cluster {}/{}", cluster.namespace, cluster.name)
}

/// The incompatible changes of a class: group and kind of templates, except bootstrap ones.
pub(super) fn incompatible(old: &Class, new: &Class) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut compare = |old: &Reference, new: &Reference| {
        if old.group_kind() != new.group_kind() {
            let ((group, kind), (group_now, kind_now)) = (old.group_kind(), new.group_kind());
            let message = format!("group and kind must stay {group} {kind}, not {group_now} {kind_now}");
            found.push((new.field.clone(), message));
        }
    };
    compare(&old.infrastructure, &new.infrastructure);
    compare(&old.control_plane.template, &new.control_plane.template);
    if let (Some(old), Some(new)) = (&old.control_plane.machines, &new.control_plane.machines) {
        compare(old, new);
    }
    for worker in &old.workers {
        if let Some(now) = new.worker(worker.kind, &worker.class) {
            compare(&worker.machines, &now.machines);
        }
    }
    if old.control_plane.machines.is_some() != new.control_plane.machines.is_some() {
        let message = "must neither be added nor removed".to_owned();
        found.push(("spec.controlPlane.machineInfrastructure".to_owned(), message));
    }
    found
}

/// Group and kind of templates stay.
fn template_kind_kept(old: &Class, new: &Class, _: &Estate, report: &mut Report) {
    for (field, message) in incompatible(old, new) {
        report.say("template-kind-kept", field, message);
    }
}

/// A class of workers that a cluster uses is not removed.
fn worker_class_in_use(old: &Class, new: &Class, estate: &Estate, report: &mut Report) {
    for (cluster, topology) in estate.users(&key(new)) {
        let used: BTreeSet<(WorkerKind, &str)> = topology
            .workers
            .iter()
            .map(|worker| (worker.kind, worker.class.as_str()))
            .collect();
        for (kind, class) in used {
            if old.worker(kind, class).is_some() && new.worker(kind, class).is_none() {
                let message = format!("class {class} is used by {} and must stay", shown(cluster));
                let field = format!("spec.workers.{}", kind.list());
                report.say("worker-class-in-use", field, message);
            }
        }
    }
}

/// A health check that a cluster enables, and does not define, is not removed.
fn health_check_in_use(old: &Class, new: &Class, estate: &Estate, report: &mut Report) {
    const RULE: &str = "health-check-in-use";
    for (cluster, topology) in estate.users(&key(new)) {
        let relies = |check: &Option<super::super::model::HealthCheck>| {
            check
                .as_ref()
                .is_some_and(|check| check.enabled == Some(true) && !check.defined)
        };
        let message = format!("the health check is enabled by {} and must stay", shown(cluster));
        let removed = old.control_plane.health_check.is_some() && new.control_plane.health_check.is_none();
        if removed && relies(&topology.control_plane.health_check) {
            report.say(RULE, "spec.controlPlane", message.clone());
        }
        for worker in topology
            .workers
            .iter()
            .filter(|worker| relies(&worker.health_check))
        {
            let (kind, class) = (worker.kind, &worker.class);
            if let (Some(before), Some(now)) = (old.worker(kind, class), new.worker(kind, class))
                && before.health_check.is_some()
                && now.health_check.is_none()
            {
                report.say(RULE, &now.field, message.clone());
            }
        }
    }
}

/// A version that a cluster has stays in the list.
fn version_in_use(_: &Class, new: &Class, estate: &Estate, report: &mut Report) {
    for (cluster, topology) in estate.users(&key(new)) {
        let version = &topology.version.value;
        if !new.versions.is_empty() && !new.versions.iter().any(|listed| listed.value == *version) {
            let message = format!("version {version} is used by {} and must stay", shown(cluster));
            report.say("version-in-use", "spec.kubernetesVersions", message);
        }
    }
}

/// A class that a cluster uses is not deleted.
pub(super) fn class_in_use(key: &Key, estate: &Estate, report: &mut Report) {
    for (cluster, _) in estate.users(key) {
        let message = format!("is used by {} and must not be deleted", shown(cluster));
        report.say("class-in-use", "metadata.name", message);
    }
}

fn values(topology: &Topology) -> impl Iterator<Item = &Variable> {
    let workers = topology.workers.iter().flat_map(|worker| &worker.overrides);
    topology
        .variables
        .iter()
        .chain(&topology.control_plane.overrides)
        .chain(workers)
}

/// Variables in use are not removed; values that clusters have fit what changed; what is newly required is there.
pub(super) fn variable_in_use(
    old: &Class,
    new: &Class,
    read: &Variables,
    estate: &Estate,
    report: &mut Report,
) {
    const RULE: &str = "variable-in-use";
    let find = |class: &'_ Class, name: &str| -> Option<Definition> {
        let found = class.variables.iter().find(|definition| definition.name == name);
        found.cloned()
    };
    for (cluster, topology) in estate.users(&key(new)) {
        let used: BTreeSet<&str> = values(topology).map(|variable| variable.name.as_str()).collect();
        for name in used {
            if find(old, name).is_some() && !new.may_have(name) {
                let message = format!("variable {name} is used by {} and must stay", shown(cluster));
                report.say(RULE, "spec.variables", message);
            }
        }
        for variable in values(topology) {
            let Some(now) = find(new, &variable.name) else {
                continue;
            };
            if find(old, &variable.name).is_some_and(|before| before.schema.value == now.schema.value) {
                continue;
            }
            for filled in read.filled(std::slice::from_ref(variable)) {
                for (field, message) in read.problems(&filled) {
                    let message = format!("the value of {} does not fit: {field} {message}", shown(cluster));
                    report.say(RULE, &now.schema.field, message);
                }
            }
        }
        for now in new.variables.iter().filter(|now| read.must_be_given(&now.name)) {
            let before = find(old, &now.name).is_some_and(|before| before.required);
            if !before
                && !topology
                    .variables
                    .iter()
                    .any(|variable| variable.name == now.name)
            {
                let message = format!("is newly required, and {} has no value of it", shown(cluster));
                report.say(RULE, format!("{}.required", now.field), message);
            }
        }
    }
}
