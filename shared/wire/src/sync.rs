//! The messages of a session ↔ protobuf, in both directions.
//! A bad fact is an item to refuse, never an error; a message that breaks the protocol's shape ends the session.

use proto::v1;

use super::{sync_agent, sync_hub};
use model::{
    sync::{AgentMessage, AgentMessageKind, HubMessage},
    validate::InvalidValue,
};

/// A message that breaks the protocol: the session ends with these words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the message breaks the protocol: {0}; if both sides are not of neighbouring releases, update the older one"
)]
pub struct InvalidMessage(pub String);

impl From<InvalidValue> for InvalidMessage {
    fn from(problem: InvalidValue) -> Self {
        Self(problem.to_string())
    }
}

/// Encodes a message of the agent.
///
/// An [`ObservedItem::Invalid`](model::sync::ObservedItem::Invalid) exists on the hub's side only and
/// has no bytes to send: it goes out without content, and the hub refuses it as an unknown kind.
pub fn agent_message_to_proto(message: AgentMessage) -> v1::AgentMessage {
    sync_agent::to_proto(message)
}

/// The kind of a message that the hub receives. It costs nothing, whatever is in the message: the hub asks for it
/// before it decodes.
pub fn agent_message_kind(message: &v1::AgentMessage) -> AgentMessageKind {
    sync_agent::kind(message)
}

/// Decodes a message to the hub. Facts are decoded and judged here, one by one.
pub fn agent_message_from_proto(message: v1::AgentMessage) -> Result<AgentMessage, InvalidMessage> {
    sync_agent::from_proto(message).map_err(InvalidMessage::from)
}

/// Encodes a message of the hub.
pub fn hub_message_to_proto(message: HubMessage) -> v1::HubMessage {
    sync_hub::to_proto(message)
}

/// Decodes a message to the agent. Derived objects stay encoded: [`decode_desired`](super::decode_desired).
pub fn hub_message_from_proto(message: v1::HubMessage) -> Result<HubMessage, InvalidMessage> {
    sync_hub::from_proto(message).map_err(InvalidMessage::from)
}
