//! Owns: what it takes for the topology of a Cluster to go from one controller to the other: nothing replaced, made or deleted
//! by it, and the fields of the one in the other's name, or what it said before would stay for ever.
//! Never: a server.

use serde_json::{Value, json};

use crate::desired::{
    change::{Action, Plan},
    objects::text,
};

/// The managers of an object's fields with one of them renamed; none if it has no such fields.
pub fn renamed(object: &Value, from: &str, to: &str) -> Option<Vec<Value>> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let is = |entry: &Value, manager: &str| {
        text(entry, "/manager") == Some(manager) && text(entry, "/operation") == Some("Apply")
    };
    let subresource = |entry: &Value| text(entry, "/subresource").unwrap_or_default().to_owned();
    let named: Vec<&Value> = entries.iter().filter(|entry| is(entry, from)).collect();
    if named.is_empty() {
        return None;
    }
    let replaced =
        |entry: &Value| is(entry, to) && named.iter().any(|one| subresource(one) == subresource(entry));
    let kept = entries.iter().filter(|entry| !replaced(entry));
    let all = kept.map(|entry| {
        let mut entry = entry.clone();
        if is(&entry, from) {
            entry["manager"] = json!(to);
        }
        entry
    });
    Some(all.collect())
}

/// Why a Cluster is not handed over: places at which something would be made, replaced or deleted.
pub fn obstacles(plan: &Plan) -> Vec<&str> {
    let stops = |action: Action| matches!(action, Action::Create | Action::Rotate | Action::Delete);
    let changes = plan.changes.iter().filter(|change| stops(change.action));
    changes.map(|change| change.place.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::change::Change;

    #[test]
    fn fields_change_their_manager_and_nobody_elses_do() {
        let entry = |manager: &str, operation: &str, subresource: &str| json!({"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": {}});
        let object = json!({"metadata": {"managedFields": [
            entry("a", "Apply", ""),
            entry("a", "Update", ""),
            entry("a", "Apply", "status"),
            entry("b", "Apply", ""),
            entry("c", "Apply", ""),
        ]}});
        assert_eq!(
            renamed(&object, "a", "b").unwrap(),
            [
                entry("b", "Apply", ""),
                entry("a", "Update", ""),
                entry("b", "Apply", "status"),
                entry("c", "Apply", ""),
            ]
        );
        assert_eq!(renamed(&object, "x", "b"), None);
        assert_eq!(renamed(&json!({}), "a", "b"), None);
    }

    #[test]
    fn whoever_would_replace_something_takes_nothing_over() {
        let change = |action: Action| Change {
            place: action.name().to_owned(),
            action,
            kind: String::new(),
            name: String::new(),
            before: None,
            fields: Vec::new(),
            note: String::new(),
            object: None,
            machines: 0,
        };
        let actions = [
            Action::Create,
            Action::Update,
            Action::Rotate,
            Action::Delete,
            Action::Wait,
            Action::Keep,
        ];
        let plan = Plan {
            changes: actions.map(change).to_vec(),
            ..Plan::default()
        };
        assert_eq!(obstacles(&plan), ["create", "rotate", "delete"]);
    }
}
