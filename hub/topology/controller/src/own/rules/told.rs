//! Owns: what Kubernetes' Events say of what was done to the objects of a Cluster, in upstream's reasons.
//! Never: writes one.

use serde_json::Value;

use super::{event::Intent, steps::Step};
use crate::desired::objects::text;

/// Longest note of an Event, in bytes: the API server takes no longer one.
const NOTE_MAX: usize = 1_024;

/// The report of a finished request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Upstream's reason.
    pub reason: &'static str,
    /// The action, in a word.
    pub action: &'static str,
    /// The action, its object and its reason.
    pub note: String,
    /// The Cluster.
    pub regarding: Reference,
    /// The object.
    pub related: Reference,
}

/// An object that an Event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The version of its API.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its identity, if it is known.
    pub uid: Option<String>,
}

/// The report of a request for this Cluster; none if nothing changed.
pub fn told(cluster: &Value, step: &Step) -> Option<Told> {
    let (reason, action, done) = match step.intent {
        Intent::Create => ("TopologyCreate", "Create", "Created"),
        Intent::Rotate => ("TopologyCreate", "Rotate", "Created"),
        Intent::Update => ("TopologyUpdate", "Update", "Updated"),
        Intent::Delete => ("TopologyDelete", "Delete", "Deleted"),
        Intent::Claim => return None,
    };
    let of = |place: &str| text(cluster, place).unwrap_or_default().to_owned();
    let regarding = Reference {
        api_version: of("/apiVersion"),
        kind: of("/kind"),
        namespace: of("/metadata/namespace"),
        name: of("/metadata/name"),
        uid: text(cluster, "/metadata/uid").map(str::to_owned),
    };
    let related = Reference {
        api_version: step.api_version.clone(),
        kind: step.object.kind.clone(),
        namespace: regarding.namespace.clone(),
        name: step.object.name.clone(),
        uid: step.uid.clone(),
    };
    let mut note = format!("{done} {} {}", step.object.kind, step.object.name);
    if let Some(before) = &step.before {
        note.push_str(&format!(" in the place of {before}"));
    }
    if !step.reasons.is_empty() {
        note.push_str(&format!(": {}", step.reasons.join("; ")));
    }
    note.truncate(note.floor_char_boundary(NOTE_MAX));
    Some(Told {
        reason,
        action,
        note,
        regarding,
        related,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::event::ObjectName, *};

    fn step(intent: Intent) -> Step {
        Step {
            place: "md-0".to_owned(),
            intent,
            object: ObjectName {
                group: "cluster.x-k8s.io".to_owned(),
                kind: "MachineDeployment".to_owned(),
                name: "shop-md-0".to_owned(),
            },
            api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
            before: None,
            reasons: Vec::new(),
            content: None,
            uid: Some("u1".to_owned()),
        }
    }

    fn cluster() -> Value {
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"namespace": "ns", "name": "shop", "uid": "u0"},
        })
    }

    #[test]
    fn each_request_has_upstreams_reason_and_one_that_changes_nothing_has_none() {
        let said = |intent| told(&cluster(), &step(intent)).map(|told| (told.reason, told.note));
        let note = |done: &str| format!("{done} MachineDeployment shop-md-0");
        assert_eq!(said(Intent::Create), Some(("TopologyCreate", note("Created"))));
        assert_eq!(said(Intent::Update), Some(("TopologyUpdate", note("Updated"))));
        assert_eq!(said(Intent::Delete), Some(("TopologyDelete", note("Deleted"))));
        assert_eq!(said(Intent::Claim), None);
    }

    #[test]
    fn an_event_is_about_the_cluster_and_the_object_and_says_why_within_what_a_server_takes() {
        let rotated = Step {
            before: Some("shop-md-0-old".to_owned()),
            reasons: vec!["spec.image: ä".to_owned(), "ü".repeat(NOTE_MAX)],
            ..step(Intent::Rotate)
        };
        let told = told(&cluster(), &rotated).expect("something is said");
        assert_eq!(told.regarding.uid.as_deref(), Some("u0"));
        assert_eq!(
            (told.regarding.kind.as_str(), told.regarding.name.as_str()),
            ("Cluster", "shop")
        );
        assert_eq!(
            (told.related.name.as_str(), told.related.namespace.as_str()),
            ("shop-md-0", "ns")
        );
        let begins = "Created MachineDeployment shop-md-0 in the place of shop-md-0-old: spec.image: ä; üü";
        assert!(told.note.starts_with(begins), "{}", told.note);
        assert!((NOTE_MAX - 1..=NOTE_MAX).contains(&told.note.len()));
    }
}
