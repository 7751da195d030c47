//! Owns: what is recorded of topologies that the hub keeps itself: what it is about to write, what came of it, and what it
//! has decided; and the bytes of that in their log (docs/adr/0063).
//! Never: a clock; who records says when.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::model::UnixMillis;

use super::said::Said;

use crate::desired::{
    change::{Action, Defaulted},
    objects::{group_kind, text},
};

/// The version of the bytes of events and rows. Others are refused.
const FORMAT: u32 = 1;

/// A Cluster by namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClusterName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for ClusterName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

/// An object of a Cluster, in whatever version of its API; it is in the Cluster's namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectName {
    /// The group of its API.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl ObjectName {
    /// An object's name.
    pub fn of(object: &Value) -> Self {
        let (group, kind) = group_kind(object);
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            name: text(object, "/metadata/name").unwrap_or_default().to_owned(),
        }
    }
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {}", self.kind, self.name)
    }
}

/// An event, or the intent of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// An object is about to be written, or deleted. Nothing is written that was not recorded before.
    Intended {
        /// The object's Cluster.
        cluster: ClusterName,
        /// The Cluster's identity: another one of its name has nothing to do with it.
        uid: String,
        /// The object.
        object: ObjectName,
        /// Its place in the Cluster.
        place: String,
        /// The action on it.
        action: Intent,
        /// The template that it takes the place of.
        before: Option<String>,
        /// Why: the first fields that differ, old and new.
        reasons: Vec<String>,
        /// The content written; none for a deletion.
        content: Option<Value>,
    },
    /// It was written, or is gone.
    Applied {
        /// The object's Cluster.
        cluster: ClusterName,
        /// The object.
        object: ObjectName,
    },
    /// The API server refused it, for this reason; reported once as long as the reason stays.
    Refused {
        /// The object's Cluster.
        cluster: ClusterName,
        /// The object.
        object: ObjectName,
        /// The server's words.
        why: String,
    },
    /// Variables are about to be written into the Cluster, with the defaults that its class has now.
    Defaulted {
        /// The Cluster.
        cluster: ClusterName,
        /// Its identity.
        uid: String,
        /// The values written.
        defaults: Vec<Defaulted>,
        /// The Cluster's values about its machines that come from it.
        said: Said,
    },
    /// An object that was written was deleted by somebody else.
    Lost {
        /// The Cluster.
        cluster: ClusterName,
        /// The object.
        object: ObjectName,
    },
    /// Machines of the Cluster are replaced from now on, as one of the wave.
    RolloutBegan {
        /// The Cluster.
        cluster: ClusterName,
    },
    /// Its rollout waits for others.
    RolloutHeld {
        /// The Cluster.
        cluster: ClusterName,
        /// The reason.
        why: String,
    },
    /// All is as it should be, machines too.
    Settled {
        /// The Cluster.
        cluster: ClusterName,
        /// The generation that it had then.
        generation: i64,
        /// Its values about its machines then.
        said: Said,
    },
    /// The Cluster is gone, or has no topology any more.
    Forgotten {
        /// The Cluster.
        cluster: ClusterName,
    },
    /// The name of this log's owner in the Lease of the topologies' keeper, at every start.
    Named {
        /// The name.
        holder: String,
    },
    /// Another controller keeps topologies: from now on nothing is written.
    FellBack {
        /// The sign that was seen.
        why: String,
    },
}

/// An intended action on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Intent {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is made to take another's place.
    Rotate,
    /// It is deleted.
    Delete,
    /// It is as it should be, and is written once more so that it is known to be ours.
    Claim,
}

impl Intent {
    /// The word that events and logs use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Rotate => "rotate",
            Self::Delete => "delete",
            Self::Claim => "claim",
        }
    }

    /// The intent of a plan's action.
    pub fn of(action: Action) -> Self {
        match action {
            Action::Create => Self::Create,
            Action::Update => Self::Update,
            Action::Rotate => Self::Rotate,
            Action::Delete => Self::Delete,
            Action::Keep | Action::Wait => Self::Claim,
        }
    }
}

/// An event and when it was recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    format: u32,
    /// Time in milliseconds since 1970.
    at: u64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

impl Recorded {
    /// Records an event with its time.
    pub fn new(event: Event, at: UnixMillis) -> Self {
        Self {
            format: FORMAT,
            at: at.0,
            event,
        }
    }

    /// Time of the event.
    pub fn at(&self) -> UnixMillis {
        UnixMillis(self.at)
    }

    /// Its bytes in the log: JSON, one line.
    ///
    /// # Errors
    ///
    /// None that a value of this type has.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(self).map_err(|error| error.to_string())
    }

    /// The event of these bytes.
    ///
    /// # Errors
    ///
    /// One line: they are none, or another build's.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let head: Head = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if head.format != FORMAT {
            return Err(format!(
                "its format is {}, and this build knows {FORMAT} only: use the build that wrote it, or a newer one",
                head.format
            ));
        }
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    pub(super) fn intended() -> Event {
        Event::Intended {
            cluster: ClusterName {
                namespace: "ns".to_owned(),
                name: "c".to_owned(),
            },
            uid: "u".to_owned(),
            object: ObjectName {
                group: "g".to_owned(),
                kind: "K".to_owned(),
                name: "c-x".to_owned(),
            },
            place: "control-plane".to_owned(),
            action: Intent::Create,
            before: None,
            reasons: vec!["spec.a: 1 -> 2".to_owned()],
            content: Some(json!({"spec": {"b": 1, "a": 2}})),
        }
    }

    #[test]
    fn bytes_are_frozen_and_read_back() {
        let recorded = Recorded::new(intended(), UnixMillis(7));
        let bytes = recorded.encode().unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert_eq!(
            text,
            r#"{"format":1,"at":7,"event":"intended","cluster":{"namespace":"ns","name":"c"},"uid":"u","object":{"group":"g","kind":"K","name":"c-x"},"place":"control-plane","action":"create","before":null,"reasons":["spec.a: 1 -> 2"],"content":{"spec":{"a":2,"b":1}}}"#
        );
        assert_eq!(Recorded::decode(&bytes), Ok(recorded));
    }

    #[test]
    fn what_another_build_wrote_is_refused() {
        let later = br#"{"format":2,"at":7,"event":"sung"}"#;
        assert!(Recorded::decode(later).unwrap_err().contains("format is 2"));
        assert!(Recorded::decode(br#"{"format":1,"at":7,"event":"sung"}"#).is_err());
        assert!(Recorded::decode(b"x").is_err());
    }
}
