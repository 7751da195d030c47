//! The last writer of an object, read from its managedFields on arrival; the rest of them is dropped. It is for people:
//! no fact and no plan depends on it.

use api::names::AGENT_MANAGER;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use model::{ChangedBy, UnixMillis};

/// The last writer of the part of an object that a fact is read from. Writes to subresources (status, scale) do not
/// count, nor do the agent's own. `None` if nobody else is noted, or the name or time is invalid.
pub(crate) fn changed_by(meta: &ObjectMeta) -> Option<ChangedBy> {
    let entries = meta.managed_fields.iter().flatten();
    let last = entries
        .filter(|entry| concerns_facts(entry))
        .filter_map(|entry| Some((entry.time.as_ref()?, entry.manager.as_deref()?)))
        .max_by_key(|(at, _)| at.0);
    let (at, manager) = last?;
    let seconds = u64::try_from(at.0.as_second()).ok()?;
    ChangedBy::new(manager, UnixMillis(seconds * 1_000))
}

fn concerns_facts(entry: &ManagedFieldsEntry) -> bool {
    entry.subresource.as_deref().unwrap_or_default().is_empty()
        && entry.manager.as_deref() != Some(AGENT_MANAGER)
}

/// The later of two; the first where both wrote in the same second.
pub(crate) fn later(first: Option<&ChangedBy>, second: Option<&ChangedBy>) -> Option<ChangedBy> {
    let both = second.into_iter().chain(first);
    both.max_by_key(|by| by.at()).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entry(manager: &str, at: &str) -> Value {
        json!({"manager": manager, "operation": "Update", "time": at, "fieldsType": "FieldsV1", "fieldsV1": {}})
    }

    fn read(entries: &Value) -> Option<(String, u64)> {
        let meta: ObjectMeta = serde_json::from_value(json!({"managedFields": entries})).expect("metadata");
        changed_by(&meta).map(|by| (by.manager().to_owned(), by.at().0))
    }

    #[test]
    fn the_last_who_wrote_is_told_wherever_the_entry_stands() {
        let (first, last) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
        let told = Some(("kubectl-edit".to_owned(), 1_767_225_601_000));
        let (helm, edit) = (entry("helm", first), entry("kubectl-edit", last));
        assert_eq!(read(&json!([helm, edit])), told);
        assert_eq!(read(&json!([edit, helm])), told);
    }

    #[test]
    fn status_writers_and_the_agent_did_not_change_what_is_exported() {
        let (first, last) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z");
        let mut status = entry("cloud-controller", last);
        status["subresource"] = "status".into();
        let entries = json!([entry("helm", first), status, entry(AGENT_MANAGER, last)]);
        let told = Some(("helm".to_owned(), 1_767_225_600_000));
        assert_eq!(read(&entries), told);
    }

    #[test]
    fn what_cannot_be_carried_is_left_out() {
        let mut timeless = entry("helm", "2026-01-01T00:00:00Z");
        timeless["time"] = Value::Null;
        for entries in [
            Value::Null,
            json!([]),
            json!([timeless]),
            json!([entry(&"m".repeat(129), "2026-01-01T00:00:00Z")]),
            json!([entry("a\u{1b}[2J", "2026-01-01T00:00:00Z")]),
            json!([entry("helm", "1969-12-31T23:59:59Z")]),
        ] {
            assert_eq!(read(&entries), None, "{entries}");
        }
    }

    #[test]
    fn of_two_objects_the_later_writer_counts() {
        let by = |manager: &str, at: u64| ChangedBy::new(manager, UnixMillis(at));
        let (a, b) = (by("a", 1_000), by("b", 2_000));
        assert_eq!(later(a.as_ref(), b.as_ref()), b);
        assert_eq!(later(b.as_ref(), a.as_ref()), b);
        assert_eq!(later(a.as_ref(), None), a);
        let same = by("c", 1_000);
        assert_eq!(later(a.as_ref(), same.as_ref()), a);
        assert_eq!(later(None, None), None);
    }
}
