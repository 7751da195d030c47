//! Owns: the ways in which a member floods, as messages.
//! Never: sends them.

use std::fmt;

use bytes::Bytes;
use proto::v1::{self, agent_message::Message, observation::Observation};
use shared::{
    model::{Fact, ServiceKey, SliceKey},
    wire,
};

use super::super::facts::{self, NUMBERS_MAX, SliceTemplate};
use cluster::member::Member;

/// Endpoints of the slices that are many bytes: the most that Kubernetes puts into one.
const ENDPOINTS: usize = 1_000;
/// Observations of one message.
const AT_ONCE: u32 = 64;
/// The same of those that are many bytes.
const LARGE_AT_ONCE: u32 = 4;
/// Bytes of an item that is no fact.
const INVALID_BYTES: usize = 400;
/// Namespace of the toggled exports.
const NAMESPACE: &str = "hostile";

/// The kind of a member's flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Slices of a thousand endpoints, each time another one changed.
    Bytes,
    /// A slice that is reported and taken back, again and again.
    Toggles,
    /// Items that are no facts.
    Invalid,
    /// Signs of life.
    Heartbeats,
    /// Items that are no facts, and what is answered is never read.
    Unread,
}

impl Kind {
    /// All of them, in the order of the table.
    pub(super) const ALL: [Self; 5] = [
        Self::Bytes,
        Self::Toggles,
        Self::Invalid,
        Self::Heartbeats,
        Self::Unread,
    ];

    /// True if it hears what the hub says.
    pub(super) fn reads(self) -> bool {
        self != Self::Unread
    }

    /// True if it keeps to the number of facts that may be unacknowledged, so that its session is not ended for it.
    pub(super) fn is_patient(self) -> bool {
        matches!(self, Self::Bytes | Self::Toggles)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Toggles => "toggles",
            Self::Invalid => "invalid items",
            Self::Heartbeats => "signs of life",
            Self::Unread => "unread answers",
        })
    }
}

/// Makes the messages of a flood.
pub(super) struct Source {
    kind: Kind,
    slice: SliceTemplate,
    removal: Bytes,
    number: u32,
}

impl Source {
    /// Of a kind.
    pub(super) fn new(kind: Kind) -> anyhow::Result<Self> {
        let service = service()?;
        let name = "hostile-00000-00000";
        let endpoints = if kind == Kind::Bytes { ENDPOINTS } else { 1 };
        let key = SliceKey {
            service: service.clone(),
            name: name.into(),
        };
        Ok(Self {
            kind,
            slice: SliceTemplate::new(&service, name, endpoints),
            removal: wire::encode_fact(&Fact::EndpointSliceRemoved(key)).bytes,
            number: 0,
        })
    }

    /// Facts to record before it begins: the export that it changes.
    pub(super) fn beginning(&self) -> anyhow::Result<Vec<Bytes>> {
        Ok(vec![facts::export(&service()?, 0, false)])
    }

    /// The next message of a member.
    pub(super) fn next(&mut self, member: &mut Member) -> v1::AgentMessage {
        let count = match self.kind {
            Kind::Heartbeats => return heartbeat(),
            Kind::Bytes => LARGE_AT_ONCE,
            _ => AT_ONCE,
        };
        let items: Vec<Observation> = (0..count).map(|_| self.item()).collect();
        member.numbered(items)
    }

    fn item(&mut self) -> Observation {
        self.number = (self.number + 1) % NUMBERS_MAX;
        Observation::Fact(match self.kind {
            Kind::Toggles if self.number.is_multiple_of(2) => self.removal.clone(),
            Kind::Bytes | Kind::Toggles => self.slice.numbered(self.number),
            _ => Bytes::from_static(&[0xff; INVALID_BYTES]),
        })
    }
}

fn service() -> anyhow::Result<ServiceKey> {
    facts::service(NAMESPACE, 0)
}

fn heartbeat() -> v1::AgentMessage {
    v1::AgentMessage {
        message: Some(Message::Heartbeat(v1::Heartbeat::default())),
    }
}
