//! Kubernetes Events: messages for people, on their ServiceExport or on an unmanaged object. One Event per object and
//! text. One that is refused is given up; who lost one to a bad moment may ask again.

use api::{
    names::AGENT_MANAGER,
    server::{Api, Client},
};
use jiff::Timestamp;
use kube_core::{ApiResource, DynamicObject, params::PostParams};
use serde_json::{Value, json};
use tracing::debug;

/// Longest note that the API server takes, in bytes.
const NOTE_BYTES_MAX: usize = 1_024;
/// The reason of an API server that has an object of that name.
const ALREADY_EXISTS: &str = "AlreadyExists";
/// Longest reason that the API server takes, in bytes.
const REASON_BYTES_MAX: usize = 128;

/// The content of an Event, and its object.
pub(crate) struct Note<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: Option<&'a str>,
    pub(crate) reason: &'a str,
    pub(crate) text: &'a str,
}

/// Writes the Event; the same one again is already there. False when it was not written and may be another time.
pub(crate) async fn write(client: &Client, note: &Note<'_>) -> bool {
    let resource = ApiResource::from_gvk(&kube_core::GroupVersionKind::gvk("events.k8s.io", "v1", "Event"));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), note.namespace, &resource);
    let event = serde_json::from_value(event_json(note, Timestamp::now()));
    let Ok(event) = event else {
        return true;
    };
    match api.create(&PostParams::default(), &event).await {
        Ok(_) => true,
        Err(api::server::Error::Api(status)) if status.reason == ALREADY_EXISTS => true,
        Err(error) => {
            debug!(%error, reason = note.reason, "Event not written");
            let lasting = |code: u16| (400..500).contains(&code) && !matches!(code, 409 | 429);
            matches!(error, api::server::Error::Api(status) if lasting(status.code))
        }
    }
}

fn event_json(note: &Note<'_>, now: Timestamp) -> Value {
    let mut hasher = blake3::Hasher::new();
    for part in [note.kind, note.uid.unwrap_or_default(), note.reason, note.text] {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    let hash = hasher.finalize().to_hex();
    let mut regarding = json!({
        "apiVersion": note.api_version, "kind": note.kind, "namespace": note.namespace, "name": note.name,
    });
    if let Some(uid) = note.uid {
        regarding["uid"] = json!(uid);
    }
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"namespace": note.namespace, "name": format!("{}.{}", note.name, &hash[..16])},
        "eventTime": micros(now),
        "type": "Warning", "action": "Sync",
        "reason": cut(note.reason, REASON_BYTES_MAX), "note": cut(note.text, NOTE_BYTES_MAX),
        "regarding": regarding,
        "reportingController": AGENT_MANAGER, "reportingInstance": AGENT_MANAGER,
    })
}

/// MicroTime wants six digits.
fn micros(now: Timestamp) -> String {
    format!("{now:.6}")
}

fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_keeps_its_name_while_it_says_the_same() {
        let note = |text: &'static str| Note {
            namespace: "shop",
            api_version: "multicluster.x-k8s.io/v1beta1",
            kind: "ServiceExport",
            name: "cart",
            uid: Some("u"),
            reason: "PortConflict",
            text,
        };
        let name = |text, second| {
            let now = Timestamp::from_second(second).unwrap();
            event_json(&note(text), now)["metadata"]["name"].clone()
        };
        assert_eq!(name("a", 1), name("a", 2));
        assert_ne!(name("a", 1), name("b", 1));
        let event = event_json(&note("a"), Timestamp::from_second(1).unwrap());
        assert_eq!(event["eventTime"], "1970-01-01T00:00:01.000000Z");
    }

    #[test]
    fn a_long_note_is_cut_between_characters() {
        assert_eq!(cut("aüb", 2), "a");
        assert_eq!(cut("ab", 5), "ab");
    }
}
