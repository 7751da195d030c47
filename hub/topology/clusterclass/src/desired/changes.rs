//! Owns: what becomes of an object, from what it is and what it should be.

use serde_json::{Value, json};

use super::{
    change::{Action, Change, Difference},
    compare::{Seen, compare},
    current::{CORE, Current, Workers},
    names::{Names, Of},
    objects::{group, group_kind, label, refers_to, text},
    parts::set,
};
use crate::{
    model::{Cluster, WorkerKind},
    patch::owned::{self, OWNED},
};

/// The annotation of a Cluster with the version that an upgrade has reached.
pub(super) const UPGRADE_STEP: &str = "topology.internal.cluster.x-k8s.io/upgrade-step";

/// A place in a cluster, and what is known of what is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'p, 'a> {
    name: &'p str,
    current: &'p Current<'a>,
}

impl<'p, 'a> Place<'p, 'a> {
    /// A place by its name.
    pub(super) fn of(name: &'p str, current: &'p Current<'a>) -> Self {
        Self { name, current }
    }

    fn differences(self, current: &Value, wanted: &Value) -> Vec<Difference> {
        compare(current, wanted, self.current.seen)
    }
}

/// An object that keeps its name.
pub(super) fn object(place: Place<'_, '_>, current: Option<&Value>, wanted: Value) -> Change {
    let fields = current.map(|current| place.differences(current, &wanted));
    let action = match &fields {
        None => Action::Create,
        Some(fields) if fields.is_empty() => Action::Keep,
        Some(_) => Action::Update,
    };
    change(place.name, action, fields.unwrap_or_default(), wanted)
}

/// A template: one whose content changes gives its place to another of its own name.
pub(super) fn template(
    place: Place<'_, '_>,
    cluster: &Cluster,
    workers: Of<'_>,
    current: Option<&Value>,
    mut wanted: Value,
) -> Change {
    let content = |fields: &[Difference]| fields.iter().any(|one| one.field.starts_with("spec"));
    let other_kind = current.is_some_and(|current| group_kind(current) != group_kind(&wanted));
    let fields = current.map(|current| place.differences(current, &wanted));
    let Some(fields) = fields.filter(|fields| other_kind || content(fields)) else {
        return object(place, current, wanted);
    };
    let before = text(&wanted, "/metadata/name").unwrap_or_default().to_owned();
    let spec = wanted.get("spec").map(Value::to_string).unwrap_or_default();
    let name = Names::of(cluster).template(place.name, workers, &before, &spec);
    set(&mut wanted, &["metadata", "name"], json!(name));
    Change {
        before: Some(before),
        ..change(place.name, Action::Rotate, fields, wanted)
    }
}

/// A health check that is to be there, or not.
pub(super) fn health(place: Place<'_, '_>, name: &str, wanted: Option<Value>) -> Option<Change> {
    let current = place.current;
    let namespace = text(current.cluster, "/metadata/namespace").unwrap_or("default");
    let there = current
        .objects
        .get(group(CORE), "MachineHealthCheck", namespace, name);
    match (there, wanted) {
        (there, Some(wanted)) => Some(object(place, there, wanted)),
        (Some(there), None) if label(there, OWNED).is_some() => Some(delete(place.name, there)),
        (_, None) => None,
    }
}

/// The Cluster itself: what it refers to, its labels, and how far an upgrade is.
pub(super) fn cluster(
    cluster: &Cluster,
    current: &Current<'_>,
    references: [(&'static str, Value); 2],
    step: &str,
) -> Change {
    let mut wanted = json!({
        "apiVersion": CORE,
        "kind": "Cluster",
        "metadata": {
            "name": cluster.name,
            "namespace": cluster.namespace,
            "labels": owned::labels(&cluster.name),
            // Empty rather than gone: who has lost its ownership could not take it away.
            "annotations": {UPGRADE_STEP: step},
        },
        "spec": {},
    });
    let mut there = json!({"metadata": {}, "spec": {}});
    for part in ["labels", "annotations"] {
        if let Some(said) = current.cluster.pointer(&format!("/metadata/{part}")) {
            there["metadata"][part] = said.clone();
        }
    }
    for (name, reference) in references {
        if let Some(reference) = current.cluster.pointer(&format!("/spec/{name}")) {
            there["spec"][name] = newer(reference);
        }
        wanted["spec"][name] = reference;
    }
    let fields = compare(&there, &wanted, Seen::OnServer);
    let action = if fields.is_empty() {
        Action::Keep
    } else {
        Action::Update
    };
    change("cluster", action, fields, wanted)
}

/// A reference in either spelling as v1beta2 writes it.
fn newer(reference: &Value) -> Value {
    let (group, kind) = refers_to(reference);
    json!({"apiGroup": group, "kind": kind, "name": text(reference, "/name").unwrap_or_default()})
}

/// A machine deployment that the topology does not have any more, with what goes with it; or a machine pool, whose objects
/// go with it by themselves.
pub(super) fn gone(kind: WorkerKind, name: &str, gone: &Workers<'_>, current: &Current<'_>) -> Vec<Change> {
    let at = format!("{}/{name}", kind.place());
    let own = text(gone.object, "/metadata/name").unwrap_or_default();
    let place = format!("{at}/health-check");
    let mut changes = Vec::new();
    if kind == WorkerKind::MachineDeployment {
        changes.extend(health(Place::of(&place, current), own, None));
    }
    let machines = gone.object.pointer("/spec/replicas").and_then(Value::as_u64);
    changes.push(Change {
        machines: machines.unwrap_or(0),
        ..delete(&at, gone.object)
    });
    if kind == WorkerKind::MachinePool {
        return changes;
    }
    let templates = [("bootstrap", gone.bootstrap), ("infrastructure", gone.machines)];
    for (which, template) in templates {
        changes.extend(template.map(|template| Change {
            note: "once no machine is of it".to_owned(),
            ..delete(&format!("{at}/{which}"), template)
        }));
    }
    changes
}

/// An object left alone until an upgrade is further.
pub(super) fn wait(place: &str, object: &Value, why: &str) -> Change {
    Change {
        object: None,
        note: why.to_owned(),
        ..change(place, Action::Wait, Vec::new(), object.clone())
    }
}

/// A machine deployment or pool that is made later.
pub(super) fn later(kind: WorkerKind, place: &str, name: &str, why: &str) -> Change {
    let object = json!({"kind": kind.kind(), "metadata": {"name": name}});
    wait(place, &object, why)
}

fn delete(place: &str, object: &Value) -> Change {
    Change {
        object: None,
        ..change(place, Action::Delete, Vec::new(), object.clone())
    }
}

fn change(place: &str, action: Action, fields: Vec<Difference>, object: Value) -> Change {
    let of = |place: &str| text(&object, place).unwrap_or_default().to_owned();
    Change {
        place: place.to_owned(),
        action,
        kind: of("/kind"),
        name: of("/metadata/name"),
        before: None,
        fields,
        note: String::new(),
        machines: 0,
        object: Some(object),
    }
}

impl Change {
    /// Counts the machines that are replaced, at most: those with a reference to another template, another version or
    /// another configuration. `replicas` alone is the number that is created.
    pub(super) fn with_machines(mut self) -> Self {
        if self.action == Action::Update && self.replaces() {
            self.machines = self.replicas().unwrap_or(1);
        }
        self
    }

    /// Returns true if one of the fields has machines replaced.
    pub(super) fn replaces(&self) -> bool {
        self.fields.iter().any(|one| {
            one.field.starts_with("spec.") && !IN_PLACE.iter().any(|path| one.field.starts_with(path))
        })
    }

    /// Returns the number of machines that the object is to have, if it says so.
    pub(super) fn replicas(&self) -> Option<u64> {
        let object = self.object.as_ref()?;
        object.pointer("/spec/replicas")?.as_u64()
    }
}

/// Fields that machines take over without being replaced.
const IN_PLACE: &[&str] = &[
    "spec.replicas",
    "spec.rollout",
    "spec.remediation",
    "spec.deletion",
    "spec.machineTemplate.metadata",
    "spec.machineTemplate.nodeD",
    "spec.machineTemplate.nodeV",
    "spec.machineTemplate.readinessGates",
    "spec.machineTemplate.spec.deletion",
    "spec.machineTemplate.spec.readinessGates",
    "spec.machineTemplate.spec.taints",
    "spec.template.metadata",
    "spec.template.spec.deletion",
    "spec.template.spec.minReadySeconds",
    "spec.template.spec.readinessGates",
    "spec.template.spec.taints",
];
