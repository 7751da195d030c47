//! The edge between the model and protobuf: the only place that names both.
//! It converts and refuses; it decides nothing, sends nothing and reads no clock.
//!
//! * [`fact`]: facts, strictly as members report them and leniently as the log replays them.
//! * [`event`]: log entries as they are stored and as people read them.
//! * [`arrival`]: in which clusters exports arrived.
//! * [`desired`]: derived objects, encoded once for all members, and the differences between two versions of one.
//! * [`policy`]: the policy of a clusterset, from the document that says it.
//! * [`sync`]: the messages of a session.
//! * [`view`]: model values as the inspection services show them.

pub mod arrival;
pub mod desired;
pub mod event;
pub mod fact;
pub mod policy;
pub mod sync;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod view;

mod changed_by;
mod common;
pub mod difference;
mod ended;
mod endpoint;
mod export;
mod fact_kind;
mod health;
mod invalid_fact;
mod item_difference;
mod item_key;
mod member;
mod property;
mod slice;
mod sync_agent;
mod sync_hub;
mod token;

pub use desired::{InvalidDesired, decode_desired, decode_told, encode_desired};
pub use ended::{MEMBERSHIP_ENDED_TRAILER, decode_membership_ended, encode_membership_ended};
pub use event::{
    EVENT_ENVELOPE_BYTES_MAX, InvalidEvent, RecordedEvent, StoredFact, decode_event, encode_event,
    encode_event_over, event_to_view, parse_event,
};
pub use fact::{decode_member_fact, decode_recorded_fact, encode_fact};
pub use invalid_fact::InvalidFact;
pub use item_difference::{NotRestored, Restored, encode_difference, restore};
pub use member::{acceptance_from_proto, acceptance_to_proto};
pub use policy::{
    DEFAULT_POLICY, InvalidPolicy, POLICY_API_VERSION, POLICY_KIND, claim_from_proto, claim_to_proto,
    read_policy, read_recorded_policy,
};
pub use sync::{
    InvalidMessage, agent_message_from_proto, agent_message_kind, agent_message_to_proto,
    hub_message_from_proto, hub_message_to_proto,
};

#[cfg(test)]
mod frozen;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod neighbours;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod round_trip;
