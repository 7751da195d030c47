//! Owns: what a dry run says: whether an API server would change anything, and of a template, whether its content.
//! Never: asks a server.

use serde_json::{Map, Value, json};

use super::{
    change::{Action, Plan},
    compare::{Seen, compare},
};

/// The annotation by which webhooks of providers know a dry run of a topology: of these alone they do not ask that a
/// template's content stays. It is never written.
const DRY_RUN: &str = "topology.cluster.x-k8s.io/dry-run";

/// The changes that a request would make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// Labels, annotations or owners.
    pub about: bool,
    /// The content.
    pub content: bool,
}

impl Changed {
    /// Returns true if it would change anything.
    pub fn any(self) -> bool {
        self.about || self.content
    }
}

/// The content of a dry run: this content, for the object of this name.
pub fn asked(content: &Value, name: &str) -> Value {
    let mut asked = content.clone();
    asked["metadata"]["name"] = json!(name);
    let about = &mut asked["metadata"];
    if !about["annotations"].is_object() {
        about["annotations"] = Value::Object(Map::new());
    }
    about["annotations"][DRY_RUN] = json!("");
    asked
}

/// The parts of an answer that an object lacks.
pub fn changed(current: &Value, answered: &Value) -> Changed {
    let about = |object: &Value| {
        let mut about: Vec<Value> = ["labels", "annotations", "ownerReferences"]
            .map(|part| object["metadata"][part].clone())
            .to_vec();
        if let Some(annotations) = about[1].as_object_mut() {
            annotations.remove(DRY_RUN);
        }
        about.retain(|part| !part.as_object().is_some_and(Map::is_empty));
        about.retain(|part| !part.is_null());
        about
    };
    Changed {
        about: about(current) != about(answered),
        content: current["spec"] != answered["spec"],
    }
}

/// Returns true if a server says of this field of an object that it may not change. Webhooks of providers write that it is
/// immutable, as the API server does of its own fields; a rule of a CustomResourceDefinition without a message is cited.
pub fn says_immutable(field: &str, message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let of_content = field == "spec" || field.starts_with("spec.");
    of_content && (message.contains("immutable") || message.contains("failed rule: self == oldself"))
}

/// Takes in what a server answers to the dry run of a change: an update or a rotation that changes nothing is none, and the
/// fields of others are those that the server would change, with the values that it would store.
pub fn answered(plan: &mut Plan, at: usize, there: &Value, answer: &Value) {
    let Some(change) = plan.changes.get_mut(at) else {
        return;
    };
    let mut answer = answer.clone();
    if let Some(about) = answer["metadata"].as_object_mut() {
        let annotations = about.get_mut("annotations").and_then(Value::as_object_mut);
        let is_left_empty = annotations.is_some_and(|all| all.remove(DRY_RUN).is_some() && all.is_empty());
        if is_left_empty {
            about.remove("annotations");
        }
    }
    // Owners are no matter of a preview, as where none is asked.
    let fields = compare(there, &answer, Seen::AsPlanned);
    let content = fields.iter().any(|one| one.field.starts_with("spec"));
    match change.action {
        Action::Update if fields.is_empty() => change.action = Action::Keep,
        Action::Rotate if !content => unrotate(plan, at, !fields.is_empty()),
        Action::Update | Action::Rotate => {}
        _ => return,
    }
    let change = &mut plan.changes[at];
    if change.action == Action::Keep {
        change.fields.clear();
    } else {
        change.fields = fields;
    }
    if change.action != Action::Rotate && !change.replaces() {
        change.machines = 0;
    }
}

/// Takes a rotation back: the template at this place of the change keeps its name, and so do references to it. `about` says
/// whether its labels or annotations change.
pub fn unrotate(plan: &mut Plan, at: usize, about: bool) {
    let Some(change) = plan.changes.get_mut(at) else {
        return;
    };
    let (Some(before), Some(object)) = (change.before.take(), change.object.as_mut()) else {
        return;
    };
    object["metadata"]["name"] = json!(before);
    let (kind, new) = (
        change.kind.clone(),
        std::mem::replace(&mut change.name, before.clone()),
    );
    change.action = if about { Action::Update } else { Action::Keep };
    for change in &mut plan.changes {
        if let Some(object) = &mut change.object {
            refer(object, &kind, (&new, &before));
        }
    }
}

/// Every place with a kind and a name.
fn refer(value: &mut Value, kind: &str, (new, before): (&str, &str)) {
    match value {
        Value::Object(fields) => {
            let is = |name: &str, text: &str| fields.get(name).and_then(Value::as_str) == Some(text);
            if is("kind", kind) && is("name", new) {
                fields.insert("name".to_owned(), json!(before));
            }
            fields
                .values_mut()
                .for_each(|value| refer(value, kind, (new, before)));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer(item, kind, (new, before))),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::change::{Change, Difference};

    #[test]
    fn a_dry_run_is_known_as_one_and_leaves_nothing_behind() {
        let content = json!({"metadata": {"name": "new"}, "spec": {"a": 1}});
        let asked = asked(&content, "old");
        assert_eq!(
            asked,
            json!({"metadata": {"name": "old", "annotations": {DRY_RUN: ""}}, "spec": {"a": 1}})
        );
        let none = Changed {
            about: false,
            content: false,
        };
        assert_eq!(changed(&json!({"metadata": {}, "spec": {"a": 1}}), &asked), none);
        let other = json!({"metadata": {"annotations": {"x": "y"}}, "spec": {"a": 2}});
        let all = Changed {
            about: true,
            content: true,
        };
        assert_eq!(changed(&other, &asked), all);
        let labelled = json!({"metadata": {"labels": {"x": "y"}}, "spec": {"a": 1}});
        assert!(changed(&labelled, &asked).about && !changed(&labelled, &asked).content);
    }

    #[test]
    fn a_rotation_that_is_not_needed_keeps_the_name_everywhere() {
        let change = |action: Action, name: &str, object: Value| Change {
            place: String::new(),
            action,
            kind: object["kind"].as_str().unwrap().to_owned(),
            name: name.to_owned(),
            before: (action == Action::Rotate).then(|| "old".to_owned()),
            fields: Vec::new(),
            note: String::new(),
            object: Some(object),
            machines: 0,
        };
        let reference =
            |name: &str| json!([{"kind": "HostTemplate", "name": name}, {"kind": "Other", "name": "new"}]);
        let plan = |action: Action, name: &str| Plan {
            changes: vec![
                change(
                    action,
                    name,
                    json!({"kind": "HostTemplate", "metadata": {"name": name}}),
                ),
                change(
                    Action::Update,
                    "md",
                    json!({"kind": "MachineDeployment", "spec": reference(name)}),
                ),
            ],
            ..Plan::default()
        };
        let mut rotated = plan(Action::Rotate, "new");
        unrotate(&mut rotated, 0, false);
        assert_eq!(rotated, plan(Action::Keep, "old"));
        let mut rotated = plan(Action::Rotate, "new");
        unrotate(&mut rotated, 0, true);
        assert_eq!(rotated, plan(Action::Update, "old"));
        unrotate(&mut rotated, 1, true);
        unrotate(&mut rotated, 9, true);
        assert_eq!(rotated, plan(Action::Update, "old"), "what is no rotation stays");
    }

    #[test]
    fn what_a_server_would_store_is_what_changes() {
        let object = |image: &str, replicas: u64| json!({"kind": "MachineDeployment", "metadata": {}, "spec": {"image": image, "replicas": replicas}});
        let there = object("debian-13", 2);
        let plan = |action: Action| Plan {
            changes: vec![Change {
                place: "machine-deployment/md".to_owned(),
                action,
                kind: "MachineDeployment".to_owned(),
                name: "new".to_owned(),
                before: (action == Action::Rotate).then(|| "old".to_owned()),
                fields: vec![Difference {
                    field: "spec.image".to_owned(),
                    old: Some(json!("debian-13")),
                    new: Some(json!("Debian-13")),
                }],
                note: String::new(),
                object: Some(object("Debian-13", 3)),
                machines: 2,
            }],
            ..Plan::default()
        };
        let of = |action: Action, answer: &Value| {
            let mut plan = plan(action);
            answered(&mut plan, 0, &there, answer);
            let change = plan.changes.remove(0);
            let fields: Vec<String> = change.fields.iter().map(|one| one.field.clone()).collect();
            (change.action, change.name, fields, change.machines)
        };
        let new = || "new".to_owned();
        // The server writes it in small letters, which it has already.
        assert_eq!(of(Action::Update, &there), (Action::Keep, new(), Vec::new(), 0));
        assert_eq!(
            of(Action::Rotate, &there),
            (Action::Keep, "old".to_owned(), Vec::new(), 0)
        );
        let mut owned = there.clone();
        owned["metadata"]["ownerReferences"] = json!([{"uid": "u"}]);
        assert_eq!(of(Action::Update, &owned).0, Action::Keep, "owners do not count");
        let scaled = object("debian-13", 3);
        let replicas = vec!["spec.replicas".to_owned()];
        assert_eq!(of(Action::Update, &scaled), (Action::Update, new(), replicas, 0));
        let image = vec!["spec.image".to_owned()];
        let other = object("debian-14", 2);
        assert_eq!(
            of(Action::Update, &other),
            (Action::Update, new(), image.clone(), 2)
        );
        assert_eq!(of(Action::Rotate, &other), (Action::Rotate, new(), image, 2));
        assert_eq!(of(Action::Create, &other).0, Action::Create);
    }
}
