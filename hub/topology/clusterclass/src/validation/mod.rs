//! Owns: the rules that classes and clusters must keep, each a function with a name, of what is and of what changes.
//! Never: asks an API server. Checks that need one component's knowledge (an upgrade under way, an existing template)
//! are not here.

mod change;
mod class;
mod cluster;
mod cluster_change;
mod names;
mod patches;
mod quantity;
mod taints;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{
    model::{Class, Cluster, Estate, Finding, Key, Report},
    variables::Variables,
};

/// Validates classes and clusters, and, with `old`, the change from those to these. Objects in `old` that `new` lacks
/// count as deleted.
pub fn validate(new: &Estate, old: Option<&Estate>) -> Vec<Finding> {
    let mut findings = new.findings.clone();
    findings.extend(old.into_iter().flat_map(|old| old.findings.iter().cloned()));
    let mut variables = BTreeMap::new();
    for (key, class) in &new.classes {
        let before = old.and_then(|old| old.classes.get(key));
        let (found, read) = of_class(class, before, new);
        variables.insert(key.clone(), read);
        findings.extend(found);
    }
    for (key, before) in old.into_iter().flat_map(|old| &old.classes) {
        if !new.classes.contains_key(key) {
            findings.extend(of_deleted_class(before, new));
        }
    }
    for (key, cluster) in &new.clusters {
        let before = old.and_then(|old| Some((old.clusters.get(key)?, old)));
        findings.extend(of_cluster(cluster, before, new, |class| {
            variables.get(&key_of(class))
        }));
    }
    findings
}

fn key_of(class: &Class) -> Key {
    (class.namespace.clone(), class.name.clone())
}

/// Validates a class with its variables, and its change from `before`. Of the other objects only clusters count.
pub(super) fn of_class(class: &Class, before: Option<&Class>, now: &Estate) -> (Vec<Finding>, Variables) {
    let mut report = Report::new(
        &class.origin,
        &format!("ClusterClass {}/{}", class.namespace, class.name),
    );
    for rule in class::RULES {
        rule(class, &mut report);
    }
    patches::patches(class, &mut report);
    let read = Variables::read(class, &mut report);
    if let Some(before) = before {
        for rule in change::RULES {
            rule(before, class, now, &mut report);
        }
        change::variable_in_use(before, class, &read, now, &mut report);
    }
    (report.into_findings(), read)
}

/// Validates the deletion of a class.
pub(super) fn of_deleted_class(class: &Class, now: &Estate) -> Vec<Finding> {
    let mut report = Report::new(
        &class.origin,
        &format!("ClusterClass {}/{}", class.namespace, class.name),
    );
    change::class_in_use(&key_of(class), now, &mut report);
    report.into_findings()
}

/// Validates a cluster, and its change from the one before. Of the other objects only classes count; `variables` has
/// those of each.
pub(super) fn of_cluster<'a>(
    cluster: &Cluster,
    before: Option<(&Cluster, &Estate)>,
    now: &Estate,
    variables: impl Fn(&Class) -> Option<&'a Variables>,
) -> Vec<Finding> {
    let mut report = Report::new(
        &cluster.origin,
        &format!("Cluster {}/{}", cluster.namespace, cluster.name),
    );
    for rule in cluster::RULES {
        rule(cluster, &mut report);
    }
    let mut read = None;
    if let Some(topology) = &cluster.topology {
        for rule in cluster::TOPOLOGY_RULES {
            rule(cluster, topology, &mut report);
        }
        let class = now.class(topology);
        cluster::class_exists(topology, class.is_some(), &mut report);
        if let Some(class) = class {
            for rule in cluster::CLASS_RULES {
                rule(topology, class, &mut report);
            }
            read = variables(class);
            if let Some(read) = read {
                cluster::variable_values(topology, read, &mut report);
            }
        }
    }
    if let Some((before, old)) = before {
        cluster_change::check(before, cluster, old, now, &mut report);
        if let Some(read) = read {
            cluster_change::variable_change(before, cluster, read, &mut report);
        }
    }
    report.into_findings()
}
