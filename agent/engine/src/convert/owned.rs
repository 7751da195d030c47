//! Ownership of objects and of their fields by the agent, read from managedFields. Reads bookkeeping of the API server;
//! it never decides what to do about it.

use api::names::{AGENT_MANAGER, LABEL_MANAGED_BY};
use kube_core::Resource;
use model::Metadata;
use serde_json::{Value, json};

use crate::plan::{Found, Ours};

/// The fields that the agent's last apply stated and nobody has taken over since.
pub struct OwnedFields<'a>(Option<&'a Value>);

impl<'a> OwnedFields<'a> {
    /// Ownership of the object, but for its status.
    pub fn of<K: Resource>(object: &'a K) -> Self {
        Self::of_entry(object, None)
    }

    /// Ownership of the object's status.
    pub fn of_status<K: Resource>(object: &'a K) -> Self {
        Self::of_entry(object, Some("status"))
    }

    fn of_entry<K: Resource>(object: &'a K, subresource: Option<&str>) -> Self {
        let entries = object.meta().managed_fields.iter().flatten();
        let entry = entries
            .filter(|entry| entry.manager.as_deref() == Some(AGENT_MANAGER))
            .filter(|entry| entry.operation.as_deref() == Some("Apply"))
            .find(|entry| entry.subresource.as_deref() == subresource);
        Self(entry.and_then(|entry| Some(&entry.fields_v1.as_ref()?.0)))
    }

    /// Returns true if the field at this path is the agent's. Members of keyed lists are spelled `k:{…}`.
    pub fn has(&self, path: &[&str]) -> bool {
        self.at(path).is_some()
    }

    fn at(&self, path: &[&str]) -> Option<&'a Value> {
        path.iter().try_fold(self.0?, |fields, part| {
            if part.starts_with("k:") {
                return fields.get(*part);
            }
            fields.get(format!("f:{part}"))
        })
    }

    /// The entries of labels or annotations that are the agent's.
    pub(crate) fn metadata(
        &self,
        which: &str,
        map: Option<&std::collections::BTreeMap<String, String>>,
    ) -> Metadata {
        let entries = map.into_iter().flatten();
        entries
            .filter(|(key, _)| self.has(&["metadata", which, key]))
            .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
            .collect()
    }
}

/// The spelling of a member of a keyed list in managedFields.
pub(crate) fn member(key: &Value) -> String {
    format!("k:{key}")
}

/// The member with one string as key.
pub(crate) fn member_of(field: &str, value: &str) -> String {
    member(&json!({ field: value }))
}

/// Returns true if the object is the agent's: by label and by managedFields.
pub fn is_ours<K: Resource>(object: &K) -> bool {
    let meta = object.meta();
    let labels = meta.labels.as_ref();
    let labelled = labels.and_then(|labels| labels.get(LABEL_MANAGED_BY));
    let managers = meta.managed_fields.iter().flatten();
    labelled.is_some_and(|by| by == AGENT_MANAGER)
        && managers
            .filter(|entry| entry.operation.as_deref() == Some("Apply"))
            .any(|entry| entry.manager.as_deref() == Some(AGENT_MANAGER))
}

/// Classifies an existing object: `read` gives the content and whether all constant fields are intact.
pub(crate) fn found<K: Resource, T>(object: &K, read: impl FnOnce(&K) -> (T, bool)) -> Found<T> {
    if !is_ours(object) {
        return Found::Stranger;
    }
    let (content, intact) = read(object);
    let meta = object.meta();
    Found::Ours(Ours {
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        deleting: meta.deletion_timestamp.is_some(),
        intact,
        content,
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;

    use super::*;

    #[test]
    fn neither_the_label_nor_the_manager_alone_makes_an_object_ours() {
        for (label, manager, operation, ours) in [
            (AGENT_MANAGER, AGENT_MANAGER, "Apply", true),
            (AGENT_MANAGER, "kubectl", "Apply", false),
            (AGENT_MANAGER, AGENT_MANAGER, "Update", false),
            ("Helm", AGENT_MANAGER, "Apply", false),
        ] {
            let object: Service = serde_json::from_value(json!({
                "metadata": {
                    "labels": {LABEL_MANAGED_BY: label},
                    "managedFields": [{"manager": manager, "operation": operation}],
                },
            }))
            .expect("a Service");
            assert_eq!(is_ours(&object), ours, "{label} {manager} {operation}");
        }
    }
}
