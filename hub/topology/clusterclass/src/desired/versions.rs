//! Owns: the versions of a cluster and the changes under way, as input of the upgrade.

use serde_json::Value;

use super::{
    compare::Seen,
    current::{Current, Workers},
    objects::text,
    upgrade::{Plane, State, Worker},
};
use crate::{
    model::{Class, Cluster, Report, Topology, Version, WorkerTopology},
    patch::owned::{DEFER_UPGRADE, HOLD_UPGRADES},
};

/// The annotation of a Cluster with the most machine deployments, and the most machine pools, that are upgraded at once.
const CONCURRENCY: &str = "topology.cluster.x-k8s.io/upgrade-concurrency";

/// The versions of a cluster, present and wanted; reports unreadable ones.
pub(super) fn state(
    class: &Class,
    cluster: &Cluster,
    topology: &Topology,
    current: &Current<'_>,
    report: &mut Report,
) -> State {
    let said = cluster.metadata.annotations.get(CONCURRENCY);
    let workers = topology.workers.iter();
    State {
        wanted: wanted(topology),
        listed: class
            .versions
            .iter()
            .map(|version| version.value.clone())
            .collect(),
        concurrency: said.and_then(|said| said.parse().ok()).unwrap_or(1),
        plane: current
            .control_plane
            .map(|object| plane(object, current.seen, report)),
        workers: workers
            .map(|one| worker(one, current.worker(one.kind, &one.name)))
            .collect(),
    }
}

/// The version that is wanted, as it is written to objects.
pub(super) fn wanted(topology: &Topology) -> String {
    let version = &topology.version.value;
    if version.starts_with('v') {
        version.clone()
    } else {
        format!("v{version}")
    }
}

fn plane(object: &Value, seen: Seen, report: &mut Report) -> Plane {
    let version = text(object, "/spec/version").unwrap_or_default().to_owned();
    if version.is_empty() {
        let message = "the control plane has no version: only control planes with versions are managed";
        report.say("control-plane-version", "spec.version", message);
    }
    if seen == Seen::AsPlanned {
        // Planned objects count as done: an edit is previewed, not an upgrade under way.
        return Plane {
            version,
            ..Plane::default()
        };
    }
    let reported = reported(object);
    Plane {
        provisioning: reported.is_empty(),
        upgrading: reported.iter().any(|one| behind(one, &version, object)),
        version,
    }
}

/// The versions that a control plane says it has: all of its machines', or else the oldest one's.
fn reported(object: &Value) -> Vec<&str> {
    let all = object.pointer("/status/versions").and_then(Value::as_array);
    let all = all.into_iter().flatten();
    let all: Vec<&str> = all
        .filter_map(|one| one.as_str().or_else(|| one.get("version")?.as_str()))
        .collect();
    if all.is_empty() {
        return text(object, "/status/version").into_iter().collect();
    }
    all
}

/// Returns true if an existing version is not the wanted one. A control plane that states one version only may be ahead
/// of it; of two versions that differ in their build, neither is known to be newer.
fn behind(reported: &str, version: &str, object: &Value) -> bool {
    let (Some(one), Some(other)) = (Version::read(reported), Version::read(version)) else {
        return reported != version;
    };
    let builds = |text: &str| text.split_once('+').map(|(_, build)| build.to_owned());
    let only_one = object.pointer("/status/versions").is_none();
    match one.order(&other) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => !only_one && builds(reported) != builds(version),
        std::cmp::Ordering::Greater => false,
    }
}

fn worker(one: &WorkerTopology, there: Option<&Workers<'_>>) -> Worker {
    let has = |name: &str| one.metadata.annotations.contains_key(name);
    let version = there.and_then(|one| text(one.object, "/spec/template/spec/version"));
    Worker {
        kind: one.kind,
        name: one.name.clone(),
        version: version.map(str::to_owned),
        upgrading: there.is_some_and(|one| one.upgrading),
        holds: has(HOLD_UPGRADES),
        defers: has(DEFER_UPGRADE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(object: &Value, seen: Seen) -> (String, bool, bool) {
        let mut report = Report::new("f", "o");
        let plane = plane(object, seen, &mut report);
        assert_eq!(report.count(), usize::from(plane.version.is_empty()));
        (plane.version, plane.provisioning, plane.upgrading)
    }

    #[test]
    fn a_control_plane_says_whether_it_is_on_its_way() {
        for (status, provisioning, upgrading) in [
            (json!({}), true, false),
            (json!({"version": "v1.31.0"}), false, false),
            (json!({"version": "v1.30.0"}), false, true),
            (json!({"version": "v1.32.0"}), false, false),
            (json!({"version": "v1.31.0+a"}), false, false),
            (json!({"versions": ["v1.30.0", "v1.31.0"]}), false, true),
            (json!({"versions": [{"version": "v1.31.0"}]}), false, false),
            (json!({"versions": [{"version": "v1.31.0+a"}]}), false, true),
        ] {
            let object = json!({"spec": {"version": "v1.31.0"}, "status": status});
            let expected = ("v1.31.0".to_owned(), provisioning, upgrading);
            assert_eq!(read(&object, Seen::OnServer), expected, "{object}");
            let done = ("v1.31.0".to_owned(), false, false);
            assert_eq!(
                read(&object, Seen::AsPlanned),
                done,
                "what was planned is taken for done"
            );
        }
        assert_eq!(read(&json!({}), Seen::OnServer).0, "");
    }
}
