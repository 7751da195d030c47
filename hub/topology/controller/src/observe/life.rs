//! Owns: where a Cluster is in its life, as far as a membership follows from it.
//! Never: knows whether it is a member.

use serde_json::Value;
use shared::{
    api::names::{ANNOTATION_ENROLLED, ANNOTATION_ENROLMENT, ANNOTATION_ENROLMENT_SEAL, FINALIZER_MEMBER},
    model::UnixMillis,
};

/// The stage of a Cluster's life.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Life {
    /// Its identity.
    pub uid: String,
    /// It has a topology.
    pub stamped: bool,
    /// Its control plane answers.
    pub initialized: bool,
    /// Somebody asked for its deletion then, by the API server's clock.
    pub deleted_at: Option<UnixMillis>,
    /// It is paused as a whole, `spec.paused`.
    pub paused: bool,
    /// The hub's record of its enrolment.
    pub enrolled: Option<String>,
    /// The claimed proof that it is the member that it names.
    pub seal: Option<String>,
    /// Its owner wants none.
    pub off: bool,
    /// It does not go before the hub lets it.
    pub held: bool,
}

impl Life {
    /// Reads a Cluster as an API server shows it, in either version.
    pub(super) fn read(document: &Value) -> Self {
        let metadata = &document["metadata"];
        let annotation = |name: &str| metadata["annotations"][name].as_str();
        let mut finalizers = metadata["finalizers"].as_array().into_iter().flatten();
        Self {
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
            stamped: document["spec"]["topology"].is_object(),
            initialized: initialized(&document["status"]),
            deleted_at: metadata["deletionTimestamp"].as_str().map(at),
            paused: document["spec"]["paused"] == true,
            enrolled: annotation(ANNOTATION_ENROLLED).map(str::to_owned),
            seal: annotation(ANNOTATION_ENROLMENT_SEAL).map(str::to_owned),
            off: annotation(ANNOTATION_ENROLMENT) == Some("off"),
            held: finalizers.any(|one| one == FINALIZER_MEMBER),
        }
    }
}

/// v1beta2 has a field of its own for it; both versions have a condition.
fn initialized(status: &Value) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let is_true = |one: &Value| one["type"] == "ControlPlaneInitialized" && one["status"] == "True";
    status["initialization"]["controlPlaneInitialized"] == true || conditions.any(is_true)
}

/// A time that cannot be read is long ago: what was asked for is not put off for that.
fn at(text: &str) -> UnixMillis {
    let read = text.parse::<jiff::Timestamp>();
    let millis = read.map_or(0, jiff::Timestamp::as_millisecond);
    UnixMillis(u64::try_from(millis).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_versions_say_when_a_control_plane_answers() {
        let says = |status: Value| Life::read(&json!({ "status": status })).initialized;
        assert!(says(json!({"initialization": {"controlPlaneInitialized": true}})));
        let condition =
            |status: &str| json!({"conditions": [{"type": "ControlPlaneInitialized", "status": status}]});
        assert!(says(condition("True")));
        assert!(!says(condition("False")));
        assert!(!says(json!({"controlPlaneReady": true})));
    }

    #[test]
    fn a_life_is_read_from_its_object() {
        let life = Life::read(&json!({
            "metadata": {
                "uid": "u",
                "deletionTimestamp": "1970-01-01T00:00:02Z",
                "annotations": {
                    "tributary.dev/enrolled": "t",
                    "tributary.dev/enrolment-seal": "s",
                    "tributary.dev/enrolment": "off",
                },
                "finalizers": ["other", "tributary.dev/member"],
            },
            "spec": {"topology": {}, "paused": true},
        }));
        let expected = Life {
            uid: "u".into(),
            stamped: true,
            initialized: false,
            deleted_at: Some(UnixMillis(2_000)),
            paused: true,
            enrolled: Some("t".into()),
            seal: Some("s".into()),
            off: true,
            held: true,
        };
        assert_eq!(life, expected);
        assert_eq!(Life::read(&json!({})), Life::default());
    }
}
