//! Owns: the rules that classes and clusters must keep, each a function with a name, of what is and of what changes.
//! Never: asks an API server. What only one knows (whether an upgrade goes on, whether a template exists) is not here.

mod change;
mod class;
mod cluster;
mod cluster_change;
mod names;
mod patches;
mod quantity;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{
    model::{Estate, Finding, Report},
    variables::Variables,
};

/// What is wrong with classes and clusters, and, if there were others before, with the change from those to these.
/// What is in `old` and not in `new` is taken as deleted.
pub fn validate(new: &Estate, old: Option<&Estate>) -> Vec<Finding> {
    let mut findings = new.findings.clone();
    findings.extend(old.into_iter().flat_map(|old| old.findings.iter().cloned()));
    let mut variables = BTreeMap::new();
    for (key, class) in &new.classes {
        let mut report = Report::new(&class.origin, &format!("ClusterClass {}/{}", key.0, key.1));
        for rule in class::RULES {
            rule(class, &mut report);
        }
        patches::patches(class, &mut report);
        let read = Variables::read(class, &mut report);
        if let Some(before) = old.and_then(|old| old.classes.get(key)) {
            for rule in change::RULES {
                rule(before, class, new, &mut report);
            }
            change::variable_in_use(before, class, &read, new, &mut report);
        }
        variables.insert(key, read);
        findings.extend(report.into_findings());
    }
    for (key, before) in old.into_iter().flat_map(|old| &old.classes) {
        if !new.classes.contains_key(key) {
            let mut report = Report::new(&before.origin, &format!("ClusterClass {}/{}", key.0, key.1));
            change::class_in_use(key, new, &mut report);
            findings.extend(report.into_findings());
        }
    }
    for (key, cluster) in &new.clusters {
        let mut report = Report::new(&cluster.origin, &format!("Cluster {}/{}", key.0, key.1));
        for rule in cluster::RULES {
            rule(cluster, &mut report);
        }
        if let Some(topology) = &cluster.topology {
            for rule in cluster::TOPOLOGY_RULES {
                rule(cluster, topology, &mut report);
            }
            let class = new.class(topology);
            cluster::class_exists(topology, class.is_some(), &mut report);
            if let Some(class) = class {
                for rule in cluster::CLASS_RULES {
                    rule(topology, class, &mut report);
                }
                if let Some(read) = variables.get(&(class.namespace.clone(), class.name.clone())) {
                    cluster::variable_values(topology, read, &mut report);
                }
            }
        }
        if let Some((old, before)) = old.and_then(|old| Some((old, old.clusters.get(key)?))) {
            cluster_change::check(before, cluster, old, new, &mut report);
            let class = cluster.topology.as_ref().and_then(|topology| new.class(topology));
            let key = class.map(|class| (class.namespace.clone(), class.name.clone()));
            if let Some(read) = key.and_then(|key| variables.get(&key)) {
                cluster_change::variable_change(before, cluster, read, &mut report);
            }
        }
        findings.extend(report.into_findings());
    }
    findings
}
