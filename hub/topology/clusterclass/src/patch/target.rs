//! Owns: templates that patches may change, and the place in a cluster that each is for.

use serde_json::{Map, Value};

use crate::model::WorkerKind;

/// A machine deployment or a machine pool of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workers {
    /// Machine deployment or machine pool.
    pub kind: WorkerKind,
    /// Its class.
    pub class: String,
    /// Its name in the cluster's topology; that of the class where no cluster is known.
    pub name: String,
}

/// The field that will refer to what a template becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// The cluster's infrastructure.
    InfrastructureCluster,
    /// The control plane.
    ControlPlane,
    /// The control plane's machines.
    ControlPlaneMachines,
    /// The template by which machines of a deployment or a pool become nodes.
    Bootstrap(Workers),
    /// The machines of a deployment, or a pool.
    Infrastructure(Workers),
}

impl Role {
    /// Its name in findings and on the command line.
    pub fn name(&self) -> String {
        match self {
            Self::InfrastructureCluster => "infrastructure-cluster".to_owned(),
            Self::ControlPlane => "control-plane".to_owned(),
            Self::ControlPlaneMachines => "control-plane-machines".to_owned(),
            Self::Bootstrap(workers) => format!("{}/{}/bootstrap", workers.kind.place(), workers.name),
            Self::Infrastructure(workers) => {
                format!("{}/{}/infrastructure", workers.kind.place(), workers.name)
            }
        }
    }
}

/// A template for one place of one cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The place.
    pub role: Role,
    /// The template as an API server has it, without what the server alone knows.
    pub template: Value,
    /// The variables of this place: overrides, and its part of `builtin`.
    pub variables: Map<String, Value>,
}

impl Target {
    /// A template for a place.
    pub fn new(role: Role, template: &Value, variables: Map<String, Value>) -> Self {
        let mut template = super::numbers::kept(template.clone());
        if let Some(Value::Object(metadata)) = template.get_mut("metadata") {
            metadata.remove("managedFields");
            if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
                annotations.retain(|name, _| !is_bookkeeping(name));
                if annotations.is_empty() {
                    metadata.remove("annotations");
                }
            }
        }
        Self {
            role,
            template,
            variables,
        }
    }
}

/// Returns true if an annotation only describes the making of the object; patches do not see it.
pub(super) fn is_bookkeeping(annotation: &str) -> bool {
    [
        "kubectl.kubernetes.io/last-applied-configuration",
        "cluster.x-k8s.io/conversion-data",
    ]
    .contains(&annotation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn patches_do_not_see_what_tools_keep() {
        let template = json!({
            "metadata": {
                "managedFields": [],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
            },
            "spec": {"replicas": 1.0},
        });
        let target = Target::new(Role::ControlPlane, &template, Map::new());
        assert_eq!(target.template, json!({"metadata": {}, "spec": {"replicas": 1}}));
    }
}
