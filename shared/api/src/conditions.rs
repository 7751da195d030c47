//! The conditions of our kinds: types, every reason, and the schema of a `conditions` list.
//! Says which words exist; which of them holds is decided by hub and agent.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// One condition; upstream's type, so that every Kubernetes library agrees on its form.
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Condition status: the condition holds.
pub const STATUS_TRUE: &str = "True";
/// Condition status: the condition does not hold.
pub const STATUS_FALSE: &str = "False";
/// Condition status: nobody can say.
pub const STATUS_UNKNOWN: &str = "Unknown";

/// Longest condition message the API server takes, in characters.
pub const MESSAGE_CHARS_MAX: usize = 32_768;
/// Longest condition reason the API server takes, in characters.
pub const REASON_CHARS_MAX: usize = 1024;
/// Separator of conflict reasons in one: the reason's pattern allows no space.
pub const REASON_SEPARATOR: &str = ",";

/// The `lastTransitionTime` of a condition that states none, or none that can be read. Old definitions (mcs-api v0.1.0)
/// let it be left out, and upgrades of definitions keep what is stored.
pub const UNKNOWN_TRANSITION: Time = Time(Timestamp::UNIX_EPOCH);

/// Reads a `conditions` list as far as possible: one condition that does not fit today's definitions must not make its
/// object unreadable, because then no object of its kind could be listed.
pub(super) fn lenient_conditions<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Condition>, D::Error> {
    let stored = Value::deserialize(from)?;
    let stored = stored.as_array().into_iter().flatten();
    Ok(stored.filter_map(lenient_condition).collect())
}

/// Reads the elements of a list that fit today's definitions; the others are left out, for the same reason.
pub(super) fn lenient_list<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    let elements = match Value::deserialize(from)? {
        Value::Array(elements) => elements,
        _ => Vec::new(),
    };
    Ok(elements
        .into_iter()
        .filter_map(|element| serde_json::from_value(element).ok())
        .collect())
}

/// Absent for one without a type, which nobody can look for.
fn lenient_condition(stored: &Value) -> Option<Condition> {
    let text = |field: &str| stored[field].as_str().unwrap_or_default().to_owned();
    let since = stored["lastTransitionTime"].as_str();
    let since = since.and_then(|since| since.parse().ok());
    Some(Condition {
        type_: Some(text("type")).filter(|kind| !kind.is_empty())?,
        status: text("status"),
        reason: text("reason"),
        message: text("message"),
        observed_generation: stored["observedGeneration"].as_i64(),
        last_transition_time: since.map_or(UNKNOWN_TRANSITION, Time),
    })
}

/// ServiceExport.
pub mod service_export {
    /// Type: the export and its Service can be exported. The agent's verdict.
    pub const VALID: &str = "Valid";
    /// Type: the export has reached the clusterset. The hub's verdict.
    pub const READY: &str = "Ready";
    /// Type: the constituent Services disagree. The hub's verdict, on every export of the service.
    pub const CONFLICT: &str = "Conflict";

    /// `Valid` is True.
    pub const REASON_VALID: &str = "Valid";
    /// `Valid` is False: no Service of that name.
    pub const REASON_NO_SERVICE: &str = "NoService";
    /// `Valid` is False: an ExternalName Service, or one that Tributary made.
    pub const REASON_INVALID_SERVICE_TYPE: &str = "InvalidServiceType";
    /// `Valid` is False: exported labels, annotations or the Service break a rule. Ours.
    pub const REASON_INVALID_EXPORT: &str = "InvalidExport";
    /// `Valid` is False: nothing is exported from that namespace. Ours.
    pub const REASON_NAMESPACE_DENIED: &str = "NamespaceDenied";

    /// `Ready` is True: pushed to the clusterset.
    pub const REASON_EXPORTED: &str = "Exported";
    /// `Ready` is True in implementations where importers pull.
    pub const REASON_READY: &str = "Ready";
    /// `Ready` is False or Unknown: not yet.
    pub const REASON_PENDING: &str = "Pending";
    /// `Ready` is False: it went wrong.
    pub const REASON_FAILED: &str = "Failed";

    /// `Conflict` is False.
    pub const REASON_NO_CONFLICTS: &str = "NoConflicts";
    /// The ports are not identical.
    pub const REASON_PORT_CONFLICT: &str = "PortConflict";
    /// Some are headless, some are not.
    pub const REASON_TYPE_CONFLICT: &str = "TypeConflict";
    /// The session affinities differ.
    pub const REASON_SESSION_AFFINITY_CONFLICT: &str = "SessionAffinityConflict";
    /// The configurations of session affinity differ.
    pub const REASON_SESSION_AFFINITY_CONFIG_CONFLICT: &str = "SessionAffinityConfigConflict";
    /// The exported labels differ.
    pub const REASON_LABELS_CONFLICT: &str = "LabelsConflict";
    /// The exported annotations differ.
    pub const REASON_ANNOTATIONS_CONFLICT: &str = "AnnotationsConflict";
    /// The internal traffic policies differ.
    pub const REASON_INTERNAL_TRAFFIC_POLICY_CONFLICT: &str = "InternalTrafficPolicyConflict";
    /// The traffic distributions differ.
    pub const REASON_TRAFFIC_DISTRIBUTION_CONFLICT: &str = "TrafficDistributionConflict";
    /// The sets of address families differ.
    pub const REASON_IP_FAMILY_CONFLICT: &str = "IPFamilyConflict";

    /// Every conflict reason, in the one order in which they are joined.
    pub const CONFLICT_REASONS: [&str; 9] = [
        REASON_PORT_CONFLICT,
        REASON_TYPE_CONFLICT,
        REASON_SESSION_AFFINITY_CONFLICT,
        REASON_SESSION_AFFINITY_CONFIG_CONFLICT,
        REASON_LABELS_CONFLICT,
        REASON_ANNOTATIONS_CONFLICT,
        REASON_INTERNAL_TRAFFIC_POLICY_CONFLICT,
        REASON_TRAFFIC_DISTRIBUTION_CONFLICT,
        REASON_IP_FAMILY_CONFLICT,
    ];
}

/// ServiceImport.
pub mod service_import {
    /// Type: the import can be used in this cluster. The agent's verdict.
    pub const READY: &str = "Ready";

    /// `Ready` is True.
    pub const REASON_READY: &str = "Ready";
    /// `Ready` is False or Unknown: not yet, or the derived Service cannot be made; the message says why.
    pub const REASON_PENDING: &str = "Pending";
    /// `Ready` is False: this cluster lacks the address family.
    pub const REASON_IP_FAMILY_NOT_SUPPORTED: &str = "IPFamilyNotSupported";
}

/// A `conditions` list as upstream's CRDs declare it: a map keyed by type, with every bound and pattern of
/// `metav1.Condition`. The library's own schema for the type carries no bounds.
pub(super) fn conditions_schema(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "description": "What is known about this object, one entry per type.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "One aspect of the object's state.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status last changed.",
                },
                "message": {
                    "type": "string",
                    "maxLength": MESSAGE_CHARS_MAX,
                    "description": "An explanation for people; may be empty.",
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "The metadata.generation that was judged.",
                },
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": REASON_CHARS_MAX,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    "description": "Why, in one word for programs; several conflict reasons are joined by commas.",
                },
                "status": {
                    "type": "string",
                    "enum": [STATUS_TRUE, STATUS_FALSE, STATUS_UNKNOWN],
                    "description": "Whether the condition holds.",
                },
                "type": {
                    "type": "string",
                    "maxLength": 316,
                    "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                    "description": "Which aspect this is.",
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ServiceExport, ServiceImport};

    #[test]
    fn all_conflicts_at_once_fit_into_one_reason() {
        let joined = service_export::CONFLICT_REASONS.join(REASON_SEPARATOR);
        assert!(joined.len() <= REASON_CHARS_MAX, "{} characters", joined.len());
        assert!(
            joined.chars().all(|c| c.is_ascii_alphanumeric() || c == ','),
            "{joined}"
        );
    }

    /// Conditions that a controller of mcs-api v0.1.0 may have left, and one that nobody would write.
    #[test]
    fn a_condition_of_an_old_definition_does_not_make_its_object_unreadable() {
        let conditions = json!([
            {"type": "Valid", "status": "True"},
            {"type": "Ready", "status": "True", "reason": "Exported", "message": "", "observedGeneration": 3,
                "lastTransitionTime": "2026-01-02T03:04:05Z"},
            {"type": "Conflict", "status": 7, "lastTransitionTime": "yesterday"},
            {"status": "True"},
            "nothing",
        ]);
        let export: ServiceExport = serde_json::from_value(
            json!({"metadata": {"name": "web"}, "status": {"conditions": conditions}}),
        )
        .unwrap();
        let read = export.status.unwrap().conditions;
        let kinds: Vec<&str> = read.iter().map(|one| &*one.type_).collect();
        assert_eq!(kinds, ["Valid", "Ready", "Conflict"]);
        assert_eq!(read[0].last_transition_time, UNKNOWN_TRANSITION);
        assert_eq!(
            (&*read[1].reason, read[1].observed_generation),
            ("Exported", Some(3))
        );
        assert_eq!(read[1].last_transition_time.0.as_second(), 1_767_323_045);
        assert_eq!(read[2].last_transition_time, UNKNOWN_TRANSITION);
        for odd in [json!(null), json!("x"), json!({})] {
            let import = json!({"metadata": {"name": "web"}, "spec": {"ports": [], "type": "Headless"},
                "status": {"conditions": odd}});
            let import: ServiceImport = serde_json::from_value(import).unwrap();
            assert!(import.status.unwrap().conditions.is_empty());
        }
    }
}
