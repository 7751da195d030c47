//! Owns: the values for patches of a cluster whose objects have names and versions: its variables with their defaults,
//! and `builtin` to the last field; and which of these defaults the Cluster does not have yet.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    blueprint::Blueprint,
    change::{Defaulted, Difference, Plan},
    changes::UPGRADE_STEP,
    named::Named,
    objects::text,
    parts::said_by,
    upgrade::Step,
};
use crate::{
    model::{self, Estate, Metadata, Topology, Variable, WorkerKind, WorkerTopology},
    patch::{
        cluster::{self, Cluster, metadata},
        owned,
    },
};

/// The variables of a cluster, in which what the class has defaults for is filled in.
///
/// # Errors
///
/// One line: the field and what would do.
pub(super) fn told(
    blueprint: &Blueprint<'_>,
    cluster: &model::Cluster,
    topology: &Topology,
    named: &Named,
    step: &Step,
) -> Result<Cluster, String> {
    let mut filled = cluster.clone();
    // For the future Cluster: a plan made right after must give the same.
    filled.metadata.labels.extend(owned::labels(&cluster.name));
    filled
        .metadata
        .annotations
        .retain(|name, step| name != UPGRADE_STEP || !step.is_empty());
    filled.topology = Some(defaulted(blueprint, topology));
    let mut told = cluster::read(&filled, blueprint.class)?;
    let mut plane = json!({
        "name": named.control_plane,
        "version": step.plane.version,
        "metadata": of_control_plane(blueprint, cluster, topology),
    });
    if let Some(machines) = &named.machines {
        plane["machineTemplate"] = json!({"infrastructureRef": {"name": machines}});
    }
    told.know_control_plane(&plane);
    for (worker, part) in named.workers.iter().zip(&step.workers) {
        if let Ok(part) = part {
            let about = json!({
                "name": worker.object,
                "version": part.version,
                "bootstrap": {"configRef": {"name": worker.bootstrap}},
                "infrastructureRef": {"name": worker.machines},
            });
            told.know_workers(worker.kind, &worker.name, &about);
        }
    }
    Ok(told)
}

/// Labels and annotations that the control plane will have: those of its template below those of class and topology.
fn of_control_plane(blueprint: &Blueprint<'_>, cluster: &model::Cluster, topology: &Topology) -> Value {
    let class = &blueprint.class.control_plane;
    let template = blueprint.template(&class.template);
    let mut all = template.map_or_else(Metadata::default, |one| said_by(one, "/spec/template/metadata"));
    let said = owned::of_control_plane(cluster, &class.metadata, &topology.control_plane.metadata);
    all.labels.extend(said.labels);
    all.annotations.extend(said.annotations);
    all.annotations.extend(owned::cloned_from(&class.template));
    metadata(all)
}

fn defaulted(blueprint: &Blueprint<'_>, topology: &Topology) -> Topology {
    let mut topology = topology.clone();
    let variables = &blueprint.variables;
    topology.variables = variables.defaulted(&topology.variables, "spec.topology.variables");
    let plane = &mut topology.control_plane.overrides;
    *plane = variables.filled(plane);
    for worker in &mut topology.workers {
        worker.overrides = variables.filled(&worker.overrides);
    }
    let version = super::versions::wanted(&topology);
    topology.version.value = version;
    topology
}

/// The defaults that a Cluster is yet to be given, and the fields that this changes.
pub(super) fn missing(
    blueprint: &Blueprint<'_>,
    topology: &Topology,
    document: &Value,
) -> (Vec<Defaulted>, Vec<Difference>) {
    let filled = defaulted(blueprint, topology);
    let mut lists = vec![("/spec/topology/variables".to_owned(), filled.variables)];
    let plane = filled.control_plane.overrides;
    lists.push((
        "/spec/topology/controlPlane/variables/overrides".to_owned(),
        plane,
    ));
    for kind in WorkerKind::ALL {
        let list = format!("/spec/topology/workers/{}", kind.list());
        let workers = document.pointer(&list).and_then(Value::as_array);
        for (at, worker) in workers.into_iter().flatten().enumerate() {
            let is =
                |one: &&WorkerTopology| one.kind == kind && Some(one.name.as_str()) == text(worker, "/name");
            if let Some(one) = filled.workers.iter().find(is) {
                let pointer = format!("{list}/{at}/variables/overrides");
                lists.push((pointer, one.overrides.clone()));
            }
        }
    }
    let (mut defaults, mut fields) = (Vec::new(), Vec::new());
    for (pointer, wanted) in lists {
        let there = document.pointer(&pointer).and_then(Value::as_array);
        let mut values = there.cloned().unwrap_or_default();
        let before = fields.len();
        for variable in &wanted {
            fields.extend(fill(&pointer, &mut values, variable));
        }
        if fields.len() > before {
            defaults.push(Defaulted {
                pointer,
                values: Value::Array(values),
            });
        }
    }
    (defaults, fields)
}

/// Gives a list the value of a variable, if it has another one.
fn fill(pointer: &str, values: &mut Vec<Value>, variable: &Variable) -> Option<Difference> {
    let there = values
        .iter_mut()
        .find(|one| text(one, "/name") == Some(&variable.name));
    let old = match there {
        Some(there) if there.get("value") == Some(&variable.value) => return None,
        Some(there) => {
            let old = there.get("value").cloned();
            there["value"] = variable.value.clone();
            old
        }
        None => {
            values.push(json!({"name": variable.name, "value": variable.value}));
            None
        }
    };
    let list = pointer.trim_start_matches('/').replace('/', ".");
    Some(Difference {
        field: format!("{list}[{}]", variable.name),
        old,
        new: Some(variable.value.clone()),
    })
}

/// Gives the Clusters of an estate the values that the classes before gave them: what a Cluster was given stays its own,
/// whatever default its class has now.
pub(super) fn keep(new: &mut Estate, old: &Estate, before: &[Plan]) {
    for plan in before {
        let key = (plan.namespace.clone(), plan.name.clone());
        let was = old.clusters.get(&key).and_then(|one| one.topology.as_ref());
        let is = new.clusters.get_mut(&key).and_then(|one| one.topology.as_mut());
        let (Some(was), Some(is)) = (was, is) else {
            continue;
        };
        let class = (is.class_namespace.clone(), is.class.value.clone());
        let class = new.classes.get(&class);
        keep_values(&plan.sources.variables, was, is, |name| {
            class.is_some_and(|class| class.defines(name))
        });
    }
}

fn keep_values(
    values: &BTreeMap<String, Value>,
    was: &Topology,
    is: &mut Topology,
    defines: impl Fn(&str) -> bool,
) {
    for (name, value) in values {
        let before = was.variables.iter().find(|one| one.name == *name);
        let now = is.variables.iter_mut().find(|one| one.name == *name);
        match (before, now) {
            (None, None) if defines(name) => is.variables.push(Variable {
                field: format!("spec.topology.variables[{name}]"),
                name: name.clone(),
                value: value.clone(),
            }),
            (Some(before), Some(now)) if before.value == now.value => now.value = value.clone(),
            _ => {}
        }
    }
}
