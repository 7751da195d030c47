//! Owns: what a dry run says: whether an API server would change anything, and of a template, whether its content.
//! Never: asks a server.

use serde_json::{Map, Value, json};

use crate::desired::change::{Action, Plan};

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
    use crate::desired::change::Change;

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
}
