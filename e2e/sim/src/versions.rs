//! Objects in the version that is asked for: apiVersion, and the fields of Events, which have two sets of names.
//! Pure functions; the store keeps every object in one version.

use serde_json::{Value, json};

use super::kinds::Kind;

/// The object in the requested version.
pub(super) fn presented(kind: &Kind, version: &str, object: &Value) -> Value {
    in_version(kind, version, object.clone())
}

/// Returns true if an object is sent in the requested version just as it is kept.
pub(super) fn is_kept_as(kind: &Kind, version: &str, object: &Value) -> bool {
    let is_core_event = kind.group.is_empty() && object["kind"] == "Event";
    !is_core_event && object["apiVersion"] == kind.api_version(version)
}

pub(super) fn in_version(kind: &Kind, version: &str, mut object: Value) -> Value {
    convert_event(&mut object, &kind.group, false);
    object["apiVersion"] = json!(kind.api_version(version));
    object
}

/// An Event's fields in events.k8s.io/v1, under which the store keeps it, and in core v1.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Moves an Event's fields between the version that is kept and core v1, if `group` is that of core; others stay.
pub(super) fn convert_event(object: &mut Value, group: &str, to_store: bool) {
    let event = |map: &&mut serde_json::Map<String, Value>| map.get("kind") == Some(&json!("Event"));
    let Some(map) = object.as_object_mut().filter(event).filter(|_| group.is_empty()) else {
        return;
    };
    for (new, core) in EVENT_FIELDS {
        let (from, to) = if to_store { (core, new) } else { (new, core) };
        if let Some(value) = map.remove(*from) {
            map.insert((*to).to_owned(), value);
        }
    }
}
