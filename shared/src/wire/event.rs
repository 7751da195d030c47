//! Log entries ↔ bytes, and log entries as people read them.
//! The revision and the chain hash stand in the row, not in these bytes.

use bytes::Bytes;
use prost::Message as _;
use proto::v1;

use super::{
    changed_by,
    common::cluster_from_proto,
    fact::{decode_recorded_fact, fact_to_proto},
};
use crate::model::{ChainHash, Event, Revision, SessionId, UnixMillis};

/// Most bytes that an event has besides its fact's own.
pub const EVENT_ENVELOPE_BYTES_MAX: usize = 512;

/// Stored bytes that are no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {}: {problem}", revision.0)]
pub struct InvalidEvent {
    /// The row's revision.
    pub revision: Revision,
    /// What is wrong.
    pub problem: String,
}

/// The bytes of an event as they are stored. The fact's own bytes go in as they were sent.
pub fn encode_event(event: &Event) -> Vec<u8> {
    v1::StoredEvent {
        recorded_at_unix_millis: event.recorded_at.0,
        cluster: event
            .cluster
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        incarnation: event.incarnation.0,
        session: event.session.0,
        member_sequence: event.member_sequence,
        fact: event.fact.bytes.clone(),
        changed_by: event.changed_by.as_ref().map(changed_by::to_proto),
    }
    .encode_to_vec()
}

/// Reads stored bytes back.
pub fn decode_event(revision: Revision, bytes: Bytes) -> Result<Event, InvalidEvent> {
    let invalid = |problem: String| InvalidEvent { revision, problem };
    let stored = v1::StoredEvent::decode(bytes)
        .map_err(|error| invalid(format!("the bytes are no StoredEvent of tributary.v1: {error}")))?;
    let cluster = match stored.cluster.as_str() {
        "" => None,
        cluster => {
            Some(cluster_from_proto("cluster", cluster).map_err(|problem| invalid(problem.to_string()))?)
        }
    };
    Ok(Event {
        revision,
        recorded_at: UnixMillis(stored.recorded_at_unix_millis),
        cluster,
        incarnation: Revision(stored.incarnation),
        session: SessionId(stored.session),
        member_sequence: stored.member_sequence,
        fact: decode_recorded_fact(stored.fact).map_err(|error| invalid(error.message))?,
        changed_by: changed_by::from_proto(stored.changed_by),
    })
}

/// An event as the inspection service shows it.
pub fn event_to_view(event: &Event, hash: ChainHash) -> v1::Event {
    v1::Event {
        revision: event.revision.0,
        recorded_at: Some(super::view::timestamp(event.recorded_at)),
        cluster: event
            .cluster
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        incarnation: event.incarnation.0,
        session: event.session.0,
        member_sequence: event.member_sequence,
        kind: event.fact.fact.kind().to_owned(),
        fact: Some(fact_to_proto(&event.fact.fact)),
        hash: hash.to_string(),
        changed_by: event.changed_by.as_ref().map(changed_by::to_proto),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        ChangedBy, ClusterId, EncodedFact, Fact, FactHash, changed_by::MANAGER_BYTES_MAX,
        fact::FACT_BYTES_MAX, validate::CREATED_AT_SECONDS_MAX,
    };

    #[test]
    fn what_goes_with_a_fact_fits_what_is_reserved_for_it() {
        let bytes = Bytes::from(vec![0; FACT_BYTES_MAX]);
        let longest = "m".repeat(MANAGER_BYTES_MAX);
        let last = UnixMillis(CREATED_AT_SECONDS_MAX as u64 * 1_000);
        let event = Event {
            revision: Revision(u64::MAX),
            recorded_at: UnixMillis(u64::MAX),
            cluster: ClusterId::new(&"c".repeat(63)).ok(),
            incarnation: Revision(u64::MAX),
            session: SessionId(u64::MAX),
            member_sequence: u64::MAX,
            fact: EncodedFact {
                fact: Fact::MemberLive,
                hash: FactHash::of(&bytes),
                bytes,
            },
            changed_by: ChangedBy::new(&longest, last),
        };
        assert!(event.cluster.is_some() && event.changed_by.is_some());
        let envelope = encode_event(&event).len() - FACT_BYTES_MAX;
        assert!(envelope <= EVENT_ENVELOPE_BYTES_MAX, "{envelope}");
    }
}
