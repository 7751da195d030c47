//! Owns: which templates a selector matches.

use serde_json::Value;

use super::{
    definition::Selector,
    target::{Role, Target},
};

/// Returns true if a definition with this selector is for this template: the type is exactly equal, and one of the
/// selected places is the template's.
pub(super) fn matches(selector: &Selector, target: &Target) -> bool {
    let is = |field: &str, wanted: &str| target.template.get(field).and_then(Value::as_str) == Some(wanted);
    if !is("apiVersion", &selector.api_version) || !is("kind", &selector.kind) {
        return false;
    }
    match &target.role {
        Role::InfrastructureCluster => selector.infrastructure_cluster,
        Role::ControlPlane | Role::ControlPlaneMachines => selector.control_plane,
        Role::Bootstrap(workers) | Role::Infrastructure(workers) => selector
            .classes(workers.kind)
            .iter()
            .any(|name| names(name, &workers.class)),
    }
}

/// Returns true if a name in a selector matches a class: it is equal, or its part before or behind `*` matches.
pub(super) fn names(name: &str, class: &str) -> bool {
    let end = name.strip_prefix('*').is_some_and(|end| class.ends_with(end));
    let start = name
        .strip_suffix('*')
        .is_some_and(|start| class.starts_with(start));
    name == class || end || start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::WorkerKind, patch::target::Workers};
    use serde_json::{Map, json};

    #[test]
    fn names_have_a_star_at_one_end() {
        for (name, class, meant) in [
            ("worker", "worker", true),
            ("worker", "worker-1", false),
            ("*", "anything", true),
            ("*-worker", "linux-worker", true),
            ("*-worker", "linux-worker-1", false),
            ("linux-*", "linux-worker", true),
            ("linux-*", "windows-worker", false),
            ("li*er", "linux-worker", false),
        ] {
            assert_eq!(names(name, class), meant, "{name} {class}");
        }
    }

    #[test]
    fn type_and_place_must_be_the_templates() {
        let selector = Selector {
            api_version: "g/v1".to_owned(),
            kind: "KTemplate".to_owned(),
            control_plane: true,
            infrastructure_cluster: false,
            machine_deployment_classes: vec!["linux-*".to_owned()],
            machine_pool_classes: vec!["*-pool".to_owned()],
        };
        let of = |kind: WorkerKind, class: &str| Workers {
            kind,
            class: class.to_owned(),
            name: "md".to_owned(),
        };
        let workers = |class: &str| of(WorkerKind::MachineDeployment, class);
        let pool = |class: &str| of(WorkerKind::MachinePool, class);
        let template = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind});
        let fits = |role: Role| {
            matches(
                &selector,
                &Target::new(role, &template("g/v1", "KTemplate"), Map::new()),
            )
        };
        assert!(fits(Role::ControlPlane));
        assert!(fits(Role::ControlPlaneMachines));
        assert!(fits(Role::Bootstrap(workers("linux-1"))));
        assert!(fits(Role::Infrastructure(workers("linux-1"))));
        assert!(!fits(Role::Infrastructure(workers("windows"))));
        assert!(!fits(Role::InfrastructureCluster));
        assert!(fits(Role::Bootstrap(pool("spot-pool"))));
        assert!(fits(Role::Infrastructure(pool("spot-pool"))));
        assert!(
            !fits(Role::Infrastructure(pool("linux-1"))),
            "each kind has names of its own"
        );
        assert!(!fits(Role::Infrastructure(workers("spot-pool"))));
        for (api_version, kind) in [("g/v2", "KTemplate"), ("g/v1", "Other")] {
            let target = Target::new(Role::ControlPlane, &template(api_version, kind), Map::new());
            assert!(!matches(&selector, &target), "{api_version} {kind}");
        }
    }
}
