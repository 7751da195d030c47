//! Owns: the rules that a change of a Cluster keeps.

use super::{
    super::{
        model::{Class, Cluster, Estate, Report, Topology, Variable, Version, WorkerTopology},
        variables::Variables,
    },
    change::incompatible,
};

const UNSAFE_VERSION: &str = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check";
const UNSAFE_CLASS: &str = "unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check";

/// Tells what a Cluster may not become.
pub(super) fn check(old: &Cluster, new: &Cluster, before: &Estate, now: &Estate, report: &mut Report) {
    references_kept(old, new, report);
    topology_kept(old, new, report);
    if let (Some(was), Some(is)) = (&old.topology, &new.topology) {
        if !new.metadata.annotations.contains_key(UNSAFE_VERSION) {
            version_change(was, is, now, report);
        }
        class_change(was, is, before, now, report);
    }
}

/// A reference that was there stays.
fn references_kept(old: &Cluster, new: &Cluster, report: &mut Report) {
    for name in old
        .references
        .iter()
        .filter(|name| !new.references.contains(name))
    {
        report.say("references-kept", format!("spec.{name}"), "must not be removed");
    }
}

/// A topology is there from the start to the end.
fn topology_kept(old: &Cluster, new: &Cluster, report: &mut Report) {
    const RULE: &str = "topology-kept";
    match (&old.topology, &new.topology) {
        (Some(_), None) => report.say(RULE, "spec.topology", "must not be removed"),
        (None, Some(_)) if !new.metadata.annotations.contains_key(UNSAFE_CLASS) => {
            report.say(
                RULE,
                "spec.topology",
                "must not be added to a Cluster that has none",
            );
        }
        _ => {}
    }
}

/// A version never goes back, and at most one minor ahead unless the class lists the steps, or an extension plans them.
fn version_change(old: &Topology, new: &Topology, now: &Estate, report: &mut Report) {
    const RULE: &str = "version-change";
    let (Some(was), Some(is)) = (
        Version::read(&old.version.value),
        Version::read(&new.version.value),
    ) else {
        return;
    };
    let steps = |class: &Class| !class.versions.is_empty() || class.upgrade_plan.is_some();
    let listed = now.class(new).is_some_and(steps);
    if is.order(&was).is_lt() {
        let message = format!(
            "must not go back, from {} to {}",
            old.version.value, new.version.value
        );
        report.say(RULE, &new.version.field, message);
    } else if !listed && (is.numbers[0] != was.numbers[0] || is.numbers[1] > was.numbers[1] + 1) {
        let message = format!(
            "must go one minor version at a time, from {} to {}",
            old.version.value, new.version.value
        );
        report.say(RULE, &new.version.field, message);
    }
}

/// Another class is compatible with the one before.
fn class_change(old: &Topology, new: &Topology, before: &Estate, now: &Estate, report: &mut Report) {
    let same = old.class.value == new.class.value && old.class_namespace == new.class_namespace;
    let was = now.class(old).or_else(|| before.class(old));
    if let (false, Some(was), Some(is)) = (same, was, now.class(new)) {
        for (field, message) in incompatible(was, is) {
            let message = format!("class {} is not compatible: {field}: {message}", is.name);
            report.say("class-change", &new.class.field, message);
        }
    }
}

/// Values change as the rules of their definitions let them; a machine deployment or pool is the one of its name.
pub(super) fn variable_change(old: &Cluster, new: &Cluster, read: &Variables, report: &mut Report) {
    let (Some(was), Some(is)) = (&old.topology, &new.topology) else {
        return;
    };
    const FIELD: &str = "spec.topology.variables";
    let defaulted = |topology: &Topology| read.defaulted(&topology.variables, FIELD);
    read.check_change(&defaulted(was), &defaulted(is), report);
    let mut overrides = |was: &[Variable], is: &[Variable]| {
        read.check_change(&read.filled(was), &read.filled(is), report);
    };
    overrides(&was.control_plane.overrides, &is.control_plane.overrides);
    for worker in &is.workers {
        let is = |before: &&WorkerTopology| before.kind == worker.kind && before.name == worker.name;
        if let Some(before) = was.workers.iter().find(is) {
            overrides(&before.overrides, &worker.overrides);
        }
    }
}
