//! Owns: health checks of machines: whether there is one, and what it says.

use serde_json::{Map, Value, json};

use super::{current::CORE, parts::about};
use crate::{
    model::{Cluster, HealthCheck, Metadata},
    patch::owned::{self, DEPLOYMENT_NAME, OWNED},
};

/// Default time for a node to come up, in seconds.
const STARTUP_SECONDS: i64 = 600;

/// The machines to look at.
#[derive(Debug, Clone, Copy)]
pub(super) enum Machines<'a> {
    /// The control plane's.
    ControlPlane,
    /// Those of a machine deployment, by its name in the topology.
    Deployment(&'a str),
}

/// The health check of an object with this name, if there is to be one. The topology's definition replaces the class's
/// completely.
pub(super) fn health_check(
    class: Option<&HealthCheck>,
    topology: Option<&HealthCheck>,
    (cluster, name): (&Cluster, &str),
    machines: Machines<'_>,
) -> Option<Value> {
    if topology.and_then(|check| check.enabled) == Some(false) {
        return None;
    }
    let mut parts = [topology, class].into_iter().flatten().map(parts);
    let (mut checks, remediation) =
        parts.find(|(checks, remediation)| !checks.is_empty() || !remediation.is_empty())?;
    checks
        .entry("nodeStartupTimeoutSeconds")
        .or_insert_with(|| json!(STARTUP_SECONDS));
    let selected = match machines {
        Machines::ControlPlane => json!({OWNED: "", "cluster.x-k8s.io/control-plane": ""}),
        Machines::Deployment(deployment) => json!({OWNED: "", DEPLOYMENT_NAME: deployment}),
    };
    let labelled = Metadata {
        labels: owned::labels(&cluster.name),
        ..Metadata::default()
    };
    let mut object = json!({
        "apiVersion": CORE,
        "kind": "MachineHealthCheck",
        "metadata": about(cluster, name, labelled),
        "spec": {"clusterName": cluster.name, "selector": {"matchLabels": selected}, "checks": checks},
    });
    if !remediation.is_empty() {
        object["spec"]["remediation"] = Value::Object(remediation);
    }
    Some(object)
}

/// Checks and remediation. The number of machines that are repaired at once is a setting of the machine deployment.
fn parts(check: &HealthCheck) -> (Map<String, Value>, Map<String, Value>) {
    let mut remediation = check.remediation.clone();
    remediation.remove("maxInFlight");
    (check.checks.clone(), remediation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(enabled: Option<bool>, checks: Value, remediation: Value) -> HealthCheck {
        HealthCheck {
            field: String::new(),
            enabled,
            defined: true,
            startup_seconds: None,
            quantities: Vec::new(),
            checks: checks.as_object().cloned().unwrap(),
            remediation: remediation.as_object().cloned().unwrap(),
        }
    }

    fn spec(
        class: Option<&HealthCheck>,
        topology: Option<&HealthCheck>,
        machines: Machines<'_>,
    ) -> Option<Value> {
        let cluster = super::super::names::a_cluster("u");
        health_check(class, topology, (&cluster, "foo-x"), machines).map(|one| one["spec"].clone())
    }

    #[test]
    fn the_topology_stands_for_all_that_the_class_says() {
        let class = check(
            None,
            json!({"nodeStartupTimeoutSeconds": 60}),
            json!({"maxInFlight": 1}),
        );
        let own = check(
            None,
            json!({}),
            json!({"triggerIf": {"unhealthyInRange": "[0-1]"}}),
        );
        assert_eq!(
            spec(Some(&class), None, Machines::Deployment("md")),
            Some(json!({
                "clusterName": "foo",
                "selector": {"matchLabels": {OWNED: "", DEPLOYMENT_NAME: "md"}},
                "checks": {"nodeStartupTimeoutSeconds": 60},
            }))
        );
        assert_eq!(
            spec(Some(&class), Some(&own), Machines::ControlPlane),
            Some(json!({
                "clusterName": "foo",
                "selector": {"matchLabels": {OWNED: "", "cluster.x-k8s.io/control-plane": ""}},
                "checks": {"nodeStartupTimeoutSeconds": 600},
                "remediation": {"triggerIf": {"unhealthyInRange": "[0-1]"}},
            }))
        );
    }

    #[test]
    fn there_is_none_where_nothing_is_defined_or_it_is_switched_off() {
        let class = check(None, json!({"nodeStartupTimeoutSeconds": 60}), json!({}));
        let off = check(Some(false), json!({}), json!({}));
        let on = check(Some(true), json!({}), json!({}));
        assert_eq!(spec(Some(&class), Some(&off), Machines::ControlPlane), None);
        assert!(spec(Some(&class), Some(&on), Machines::ControlPlane).is_some());
        assert_eq!(spec(None, Some(&on), Machines::ControlPlane), None);
        assert_eq!(spec(None, None, Machines::ControlPlane), None);
        let few = check(None, json!({}), json!({"maxInFlight": 1}));
        assert_eq!(spec(Some(&few), None, Machines::ControlPlane), None);
    }
}
