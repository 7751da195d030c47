//! Owns: what patches need of a ClusterClass, in both spellings of the API: its templates, the names of its variables,
//! and its patches.
//! Never: judges what is not about patches.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{definition::Patch, finding::Finding, read};

/// A template that a class names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The template's type.
    pub api_version: String,
    /// The template's type.
    pub kind: String,
    /// The template's name, in the class's namespace.
    pub name: String,
}

/// A class of machine deployments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineDeploymentClass {
    /// Its name.
    pub class: String,
    /// How its machines become nodes.
    pub bootstrap: Option<Reference>,
    /// Its machines.
    pub infrastructure: Option<Reference>,
    /// Labels and annotations that the class gives, as the document has them.
    pub metadata: Value,
}

/// A class as far as patches have to do with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Its namespace, if the document says one.
    pub namespace: Option<String>,
    /// The cluster's infrastructure.
    pub infrastructure: Option<Reference>,
    /// The control plane.
    pub control_plane: Option<Reference>,
    /// The control plane's machines, if the class has them.
    pub control_plane_machines: Option<Reference>,
    /// Labels and annotations that the class gives the control plane, as the document has them.
    pub control_plane_metadata: Value,
    /// Classes of machine deployments, in the document's order.
    pub machine_deployments: Vec<MachineDeploymentClass>,
    /// The variables that it defines.
    pub variables: BTreeSet<String>,
    /// The patches, in the document's order.
    pub patches: Vec<Patch>,
}

/// Reads a document of kind ClusterClass; the findings are about the form of its patches.
pub fn read(document: &Value) -> (Class, Vec<Finding>) {
    let (patches, findings) = read::patches(document.pointer("/spec/patches"));
    let list = |place: &str| {
        let list = document.pointer(place).and_then(Value::as_array);
        list.map(Vec::as_slice).unwrap_or_default()
    };
    let variables = list("/spec/variables").iter();
    let class = Class {
        name: text(document, "/metadata/name").unwrap_or_default(),
        namespace: text(document, "/metadata/namespace"),
        infrastructure: reference(document.pointer("/spec/infrastructure")),
        control_plane: reference(document.pointer("/spec/controlPlane")),
        control_plane_machines: reference(document.pointer("/spec/controlPlane/machineInfrastructure")),
        control_plane_metadata: value(document, "/spec/controlPlane/metadata"),
        machine_deployments: list("/spec/workers/machineDeployments")
            .iter()
            .filter_map(machine_deployment)
            .collect(),
        variables: variables.filter_map(|one| text(one, "/name")).collect(),
        patches,
    };
    (class, findings)
}

fn machine_deployment(document: &Value) -> Option<MachineDeploymentClass> {
    let field = |name: &str| {
        let old = format!("/template/{name}");
        reference(document.get(name)).or_else(|| reference(document.pointer(&old)))
    };
    let metadata = match value(document, "/metadata") {
        Value::Null => value(document, "/template/metadata"),
        metadata => metadata,
    };
    Some(MachineDeploymentClass {
        class: text(document, "/class")?,
        bootstrap: field("bootstrap"),
        infrastructure: field("infrastructure"),
        metadata,
    })
}

/// `templateRef`, or `ref` as version v1beta1 has it.
fn reference(holder: Option<&Value>) -> Option<Reference> {
    let holder = holder?;
    let reference = holder.get("templateRef").or_else(|| holder.get("ref"))?;
    Some(Reference {
        api_version: text(reference, "/apiVersion")?,
        kind: text(reference, "/kind")?,
        name: text(reference, "/name")?,
    })
}

fn value(document: &Value, place: &str) -> Value {
    document.pointer(place).cloned().unwrap_or_default()
}

fn text(document: &Value, place: &str) -> Option<String> {
    document.pointer(place).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_spellings_say_the_same() {
        let reference = |kind: &str| json!({"apiVersion": "g/v1", "kind": kind, "name": "n"});
        let new = json!({
            "metadata": {"name": "c", "namespace": "ns"},
            "spec": {
                "infrastructure": {"templateRef": reference("I")},
                "controlPlane": {
                    "templateRef": reference("C"),
                    "machineInfrastructure": {"templateRef": reference("M")},
                },
                "workers": {"machineDeployments": [{
                    "class": "w",
                    "metadata": {"labels": {"a": "b"}},
                    "bootstrap": {"templateRef": reference("B")},
                    "infrastructure": {"templateRef": reference("M")},
                }]},
                "variables": [{"name": "v"}],
            },
        });
        let old = json!({
            "metadata": {"name": "c", "namespace": "ns"},
            "spec": {
                "infrastructure": {"ref": reference("I")},
                "controlPlane": {"ref": reference("C"), "machineInfrastructure": {"ref": reference("M")}},
                "workers": {"machineDeployments": [{
                    "class": "w",
                    "template": {
                        "metadata": {"labels": {"a": "b"}},
                        "bootstrap": {"ref": reference("B")},
                        "infrastructure": {"ref": reference("M")},
                    },
                }]},
                "variables": [{"name": "v"}],
            },
        });
        let (read_new, findings) = read(&new);
        assert_eq!(findings, []);
        assert_eq!(read(&old).0, read_new);
        let kind = |reference: &Option<Reference>| reference.as_ref().map(|reference| reference.kind.clone());
        assert_eq!(kind(&read_new.control_plane_machines).as_deref(), Some("M"));
        assert_eq!(
            kind(&read_new.machine_deployments[0].bootstrap).as_deref(),
            Some("B")
        );
        assert!(read_new.variables.contains("v"));
    }
}
