//! Owns: what patches are told of a cluster whose objects have names and versions: its variables with their defaults, and
//! `builtin` to the last field.

use serde_json::json;

use super::{blueprint::Blueprint, named::Named, upgrade::Step};
use crate::{
    model::{self, Topology},
    patch::cluster::{self, Cluster},
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
    filled.topology = Some(defaulted(blueprint, topology));
    let mut told = cluster::read(&filled, blueprint.class)?;
    let mut plane = json!({"name": named.control_plane, "version": step.plane.version});
    if let Some(machines) = &named.machines {
        plane["machineTemplate"] = json!({"infrastructureRef": {"name": machines}});
    }
    told.know_control_plane(&plane);
    for (worker, part) in named.workers.iter().zip(&step.workers) {
        if let Ok(part) = part {
            let about = json!({
                "name": worker.deployment,
                "version": part.version,
                "bootstrap": {"configRef": {"name": worker.bootstrap}},
                "infrastructureRef": {"name": worker.machines},
            });
            told.know_workers(&worker.name, &about);
        }
    }
    Ok(told)
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
