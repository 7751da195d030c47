//! Owns: which kinds of objects a cluster keeps while it lives: those of its infrastructure, its control plane and its
//! machines. Another kind would take the place of objects whose machines run.
//! Never: judges bootstrap templates of machine deployments; these may be of another kind.

use serde_json::Value;

use super::{
    current::Current,
    objects::{group_kind, refers_to},
};
use crate::model::{Class, Reference, Report, Topology, WorkerKind};

/// Tells if what a Cluster refers to is of another group or kind than its class has.
pub(super) fn references(class: &Class, document: &Value, report: &mut Report) {
    let wanted = [
        ("infrastructureRef", &class.infrastructure),
        ("controlPlaneRef", &class.control_plane.template),
    ];
    for (name, wanted) in wanted {
        let reference = document.pointer(&format!("/spec/{name}"));
        if let Some(reference) = reference.filter(|one| one.is_object()) {
            let field = format!("spec.{name}");
            kept(refers_to(reference), object_of(wanted), &field, report);
        }
    }
}

/// Tells if templates of machines, or the objects of a machine pool, are of another group or kind than the class has.
pub(super) fn templates(class: &Class, topology: &Topology, current: &Current<'_>, report: &mut Report) {
    let mut compare = |there: Option<&Value>, wanted: (&str, &str), field: &str| {
        if let Some(there) = there {
            kept(group_kind(there), wanted, field, report);
        }
    };
    if let Some(plane) = &class.control_plane.machines {
        compare(current.machines, plane.group_kind(), "spec.topology.controlPlane");
    }
    for worker in &topology.workers {
        let there = current.worker(worker.kind, &worker.name);
        let (Some(there), Some(class)) = (there, class.worker(worker.kind, &worker.class)) else {
            continue;
        };
        match worker.kind {
            WorkerKind::MachineDeployment => {
                compare(there.machines, class.machines.group_kind(), &worker.field);
            }
            WorkerKind::MachinePool => {
                compare(there.machines, object_of(&class.machines), &worker.field);
                compare(there.bootstrap, object_of(&class.bootstrap), &worker.field);
            }
        }
    }
}

/// Group and kind of the objects of a template.
fn object_of(template: &Reference) -> (&str, &str) {
    let (group, kind) = template.group_kind();
    (group, kind.strip_suffix("Template").unwrap_or(kind))
}

fn kept(there: (&str, &str), wanted: (&str, &str), field: &str, report: &mut Report) {
    if there != wanted {
        let shown = |(group, kind): (&str, &str)| format!("{kind} of {group}");
        let message = format!(
            "cannot be changed from {} to {} while the Cluster lives: name templates of the former kind in the class, or use \
             a class that does",
            shown(there),
            shown(wanted)
        );
        report.say("kind-kept", field, message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::Estate;

    const CLASS: &str = r#"
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: k, namespace: ns}
spec:
  infrastructure: {templateRef: {apiVersion: i.x/v1, kind: CloudTemplate, name: t}}
  controlPlane: {templateRef: {apiVersion: c.x/v1, kind: PlaneTemplate, name: t}}
"#;

    fn told(document: &Value) -> Vec<String> {
        let mut estate = Estate::default();
        estate.add("k.yaml", CLASS);
        let class = estate.classes.values().next().expect("a class");
        let mut report = Report::new("k.yaml", "Cluster ns/c");
        references(class, document, &mut report);
        report.into_findings().into_iter().map(|one| one.field).collect()
    }

    #[test]
    fn group_and_kind_of_what_a_cluster_refers_to_stay() {
        let cluster = |infrastructure: Value, plane: Value| json!({"spec": {"infrastructureRef": infrastructure, "controlPlaneRef": plane}});
        let cloud = json!({"apiGroup": "i.x", "kind": "Cloud", "name": "a"});
        let plane = json!({"apiVersion": "c.x/v1beta1", "kind": "Plane", "name": "b"});
        assert_eq!(told(&cluster(cloud.clone(), plane.clone())), Vec::<String>::new());
        let other_kind = json!({"apiGroup": "i.x", "kind": "Sky", "name": "a"});
        assert_eq!(told(&cluster(other_kind, plane)), ["spec.infrastructureRef"]);
        let other_group = json!({"apiVersion": "d.x/v1", "kind": "Plane", "name": "b"});
        assert_eq!(told(&cluster(cloud, other_group)), ["spec.controlPlaneRef"]);
        assert_eq!(
            told(&json!({"spec": {}})),
            Vec::<String>::new(),
            "nothing is there yet"
        );
        assert_eq!(told(&Value::Null), Vec::<String>::new());
    }
}
