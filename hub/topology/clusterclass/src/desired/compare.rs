//! Owns: which fields of an object are not as they should be. Only what we say counts, and what we said before and do not
//! say any more; what others have set beside it is theirs.

use serde_json::{Map, Value};

use super::change::Difference;

/// Most differences of one object that are reported.
pub(super) const MAX_DIFFERENCES: usize = 100;
/// Managers of fields whose own ones we take over: Cluster API's, and ours.
const MANAGERS: [&str; 2] = [UPSTREAM_MANAGER, MANAGER];
/// The manager of the fields that Cluster API's own topology controller writes.
pub const UPSTREAM_MANAGER: &str = "capi-topology";
/// The manager of those that we write. With upstream's name, each of us would take away what the other one said.
pub const MANAGER: &str = "tributary-topology";
/// The compared parts of an object.
const PARTS: [&[&str]; 3] = [&["metadata", "labels"], &["metadata", "annotations"], &["spec"]];

/// The origin of an existing object's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Read from an API server: our fields, and others'.
    OnServer,
    /// Planned, and nothing else.
    AsPlanned,
    /// Nothing is known of what is there.
    Unseen,
}

/// The differences of an object from the wanted one.
pub(super) fn compare(current: &Value, wanted: &Value, seen: Seen) -> Vec<Difference> {
    let mut found = Vec::new();
    for part in PARTS {
        let (old, new) = (at(current, part), at(wanted, part));
        differ(&part.join("."), old, new, seen, &mut found);
    }
    if seen == Seen::OnServer {
        for owned in owned(current) {
            for part in PARTS {
                let fields = part
                    .iter()
                    .try_fold(owned, |fields, name| fields.get(format!("f:{name}")));
                if let Some(fields) = fields {
                    gone(
                        &part.join("."),
                        fields,
                        at(current, part),
                        at(wanted, part),
                        &mut found,
                    );
                }
            }
        }
    }
    found.truncate(MAX_DIFFERENCES);
    found
}

fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |object, name| object.get(name))
}

fn differ(field: &str, old: Option<&Value>, new: Option<&Value>, seen: Seen, found: &mut Vec<Difference>) {
    if found.len() >= MAX_DIFFERENCES {
        return;
    }
    match (old, new.filter(|new| !new.is_null())) {
        (None, None) => {}
        (Some(_), None) if seen == Seen::OnServer => {}
        (old, Some(Value::Object(new))) if old.map_or(!new.is_empty(), Value::is_object) => {
            let none = Map::new();
            let old = old.and_then(Value::as_object).unwrap_or(&none);
            for (name, new) in new {
                differ(&below(field, name), old.get(name), Some(new), seen, found);
            }
            for (name, old) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
                differ(&below(field, name), Some(old), None, seen, found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                differ(&format!("{field}[{index}]"), Some(old), Some(new), seen, found);
            }
        }
        (Some(old), Some(new)) if old == new => {}
        (old, new) => found.push(Difference {
            field: field.to_owned(),
            old: old.cloned(),
            new: new.cloned(),
        }),
    }
}

/// Fields that a manager of ours has set.
fn owned(object: &Value) -> impl Iterator<Item = &Value> {
    let entries = at(object, &["metadata", "managedFields"]).and_then(Value::as_array);
    entries.into_iter().flatten().filter_map(|entry| {
        let manager = entry.get("manager")?.as_str()?;
        let applied = entry.get("operation")?.as_str()? == "Apply" && entry.get("subresource").is_none();
        (applied && MANAGERS.contains(&manager)).then(|| entry.get("fieldsV1"))?
    })
}

/// Fields that we had set and do not set any more.
fn gone(
    field: &str,
    owned: &Value,
    current: Option<&Value>,
    wanted: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    for (key, owned) in owned.as_object().into_iter().flatten() {
        let Some(name) = key.strip_prefix("f:") else {
            continue;
        };
        let (field, old) = (below(field, name), current.and_then(|one| one.get(name)));
        match (old, wanted.and_then(|one| one.get(name))) {
            (Some(old), None) => found.push(Difference {
                field,
                old: Some(old.clone()),
                new: None,
            }),
            (old, new) => gone(&field, owned, old, new, found),
        }
    }
}

/// A field's path; names that have dots stand in brackets.
fn below(field: &str, name: &str) -> String {
    if name.contains(['.', '/']) {
        format!("{field}[{name}]")
    } else {
        format!("{field}.{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(current: &Value, wanted: &Value, seen: Seen) -> Vec<String> {
        let shown = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
        compare(current, wanted, seen)
            .into_iter()
            .map(|one| format!("{}: {} {}", one.field, shown(one.old), shown(one.new)))
            .collect()
    }

    #[test]
    fn what_others_set_is_theirs() {
        let current = json!({
            "metadata": {"labels": {"a": "1", "theirs": "x"}, "resourceVersion": "5"},
            "spec": {"replicas": 3, "taints": [{"key": "k", "default": true}], "status": 1},
            "status": {"ready": true},
        });
        let wanted = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"taints": [{"key": "k"}]}});
        assert_eq!(told(&current, &wanted, Seen::OnServer), Vec::<String>::new());
        assert_eq!(
            told(&current, &wanted, Seen::AsPlanned),
            [
                "metadata.labels.theirs: \"x\" -",
                "spec.taints[0].default: true -",
                "spec.replicas: 3 -",
                "spec.status: 1 -",
            ]
        );
    }

    #[test]
    fn a_field_is_told_with_old_and_new() {
        let current = json!({"metadata": {}, "spec": {"a": {"b": 1}, "kind": "x", "list": [1, 2]}});
        let wanted = json!({
            "metadata": {"annotations": {"x.y/z": "1"}},
            "spec": {"a": {"b": 2, "c": null, "d": {}}, "kind": {"y": 1}, "list": [1]},
        });
        assert_eq!(
            told(&current, &wanted, Seen::OnServer),
            [
                "metadata.annotations[x.y/z]: - \"1\"",
                "spec.a.b: 1 2",
                "spec.a.d: - {}",
                "spec.kind: \"x\" {\"y\":1}",
                "spec.list: [1,2] [1]",
            ]
        );
    }

    #[test]
    fn what_we_set_and_do_not_any_more_is_told_where_a_server_knows_it() {
        let entry = |manager: &str| {
            json!({
                "manager": manager,
                "operation": "Apply",
                "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:old": {}}},
                    "f:spec": {"f:a": {"f:b": {}, "f:c": {}}, "f:never": {}},
                },
            })
        };
        let current = |manager: &str| {
            json!({
                "metadata": {"labels": {"old": "1"}, "managedFields": [entry(manager)]},
                "spec": {"a": {"b": 1, "c": 2}, "theirs": 3},
            })
        };
        let wanted = json!({"metadata": {}, "spec": {"a": {"b": 1}}});
        for manager in MANAGERS {
            assert_eq!(
                told(&current(manager), &wanted, Seen::OnServer),
                ["metadata.labels.old: \"1\" -", "spec.a.c: 2 -"],
            );
        }
        assert_eq!(
            told(&current("kubectl"), &wanted, Seen::OnServer),
            Vec::<String>::new()
        );
    }

    #[test]
    fn differences_have_a_bound() {
        let many: Map<String, Value> = (0..MAX_DIFFERENCES + 9)
            .map(|at| (at.to_string(), json!(at)))
            .collect();
        let found = compare(&json!({}), &json!({"spec": many}), Seen::OnServer);
        assert_eq!(found.len(), MAX_DIFFERENCES);
    }
}
