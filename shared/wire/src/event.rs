//! Log entries ↔ bytes, and log entries as people read them.
//! The revision and the chain hash stand in the row, not in these bytes.

use bytes::Bytes;
use prost::Message as _;
use proto::v1;

use super::{
    changed_by,
    common::{cluster_from_proto, timestamp},
    fact::{decode_recorded_fact, fact_to_proto},
};
use crate::difference;
use model::{ChainHash, Event, FactHash, Revision, SessionId, UnixMillis};

/// Most bytes that an event has besides its fact's own.
pub const EVENT_ENVELOPE_BYTES_MAX: usize = 512;

/// Stored bytes that are no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {}: {problem}", revision.0)]
pub struct InvalidEvent {
    /// The row's revision.
    pub revision: Revision,
    /// The problem.
    pub problem: String,
}

/// The bytes of an event as they are stored. The fact's own bytes go in as they were sent.
pub fn encode_event(event: &Event) -> Vec<u8> {
    v1::StoredEvent {
        fact: event.fact.bytes.clone(),
        ..without_fact(event)
    }
    .encode_to_vec()
}

/// As [`encode_event`], with the difference to the fact that the event at `base` recorded; `None` if that gains little.
pub fn encode_event_over(event: &Event, base: Revision, base_fact: &[u8]) -> Option<Vec<u8>> {
    let difference = difference::difference(base_fact, &event.fact.bytes)?;
    let stored = v1::StoredEvent {
        fact_difference: difference.into(),
        base_revision: base.0,
        fact_hash: event.fact.hash.0.to_vec(),
        ..without_fact(event)
    };
    Some(stored.encode_to_vec())
}

fn without_fact(event: &Event) -> v1::StoredEvent {
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
        changed_by: event.changed_by.as_ref().map(changed_by::to_proto),
        ..v1::StoredEvent::default()
    }
}

/// An event's fact as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredFact {
    /// The encoded fact, as it was sent.
    Whole(Bytes),
    /// The difference to the fact that the event at this revision recorded.
    Over(Revision),
}

/// A stored event whose shape is good. Its fact may be stored as the difference to that of an earlier event.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEvent {
    revision: Revision,
    stored: v1::StoredEvent,
}

/// Reads stored bytes as far as they say something by themselves.
pub fn parse_event(revision: Revision, bytes: Bytes) -> Result<RecordedEvent, InvalidEvent> {
    let invalid = |problem: String| InvalidEvent { revision, problem };
    let stored = v1::StoredEvent::decode(bytes)
        .map_err(|error| invalid(format!("the bytes are no StoredEvent of tributary.v1: {error}")))?;
    let is_whole = stored.base_revision == 0;
    if is_whole && !(stored.fact_difference.is_empty() && stored.fact_hash.is_empty()) {
        return Err(invalid("its fact is a difference to no event".into()));
    }
    if !is_whole && !stored.fact.is_empty() {
        return Err(invalid("its fact is there whole and as a difference".into()));
    }
    if !is_whole && stored.base_revision >= revision.0 {
        let base = stored.base_revision;
        return Err(invalid(format!(
            "its fact is a difference to event {base}, which is no earlier one"
        )));
    }
    Ok(RecordedEvent { revision, stored })
}

/// Reads back an event that was stored with its whole fact.
pub fn decode_event(revision: Revision, bytes: Bytes) -> Result<Event, InvalidEvent> {
    let recorded = parse_event(revision, bytes)?;
    match recorded.fact() {
        StoredFact::Whole(fact) => recorded.into_event(fact),
        StoredFact::Over(base) => {
            let problem = format!("its fact is a difference to event {base}, and must be read with it");
            Err(InvalidEvent { revision, problem })
        }
    }
}

impl RecordedEvent {
    /// Its revision.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Time at which it was recorded.
    pub fn recorded_at(&self) -> UnixMillis {
        UnixMillis(self.stored.recorded_at_unix_millis)
    }

    /// Its fact, as far as it is here.
    pub fn fact(&self) -> StoredFact {
        match self.stored.base_revision {
            0 => StoredFact::Whole(self.stored.fact.clone()),
            base => StoredFact::Over(Revision(base)),
        }
    }

    /// The whole encoded fact, from the one of the event that it is [`StoredFact::Over`].
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`] unless that gives the very bytes that were recorded.
    pub fn restore(&self, base_fact: &[u8]) -> Result<Bytes, InvalidEvent> {
        let base = self.stored.base_revision;
        let invalid = |problem: String| InvalidEvent {
            revision: self.revision,
            problem: format!(
                "its fact is a difference to event {base}, and {problem}: one of them is damaged"
            ),
        };
        let fact = difference::restore(base_fact, &self.stored.fact_difference)
            .map_err(|broken| invalid(broken.to_string()))?;
        if FactHash::of(&fact).0[..] != self.stored.fact_hash[..] {
            return Err(invalid("leads to another fact than was recorded".into()));
        }
        Ok(fact.into())
    }

    /// The event with its whole encoded fact.
    pub fn into_event(self, fact: Bytes) -> Result<Event, InvalidEvent> {
        let Self { revision, stored } = self;
        let invalid = |problem: String| InvalidEvent { revision, problem };
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
            fact: decode_recorded_fact(fact).map_err(|error| invalid(error.message))?,
            changed_by: changed_by::from_proto(stored.changed_by),
        })
    }
}

/// An event as the inspection service shows it.
pub fn event_to_view(event: &Event, hash: ChainHash) -> v1::Event {
    v1::Event {
        revision: event.revision.0,
        recorded_at: Some(timestamp(event.recorded_at)),
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
        decided_by: event.fact.fact.operator().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{
        ChangedBy, ClusterId, EncodedFact, Fact, FactHash, changed_by::MANAGER_BYTES_MAX,
        fact::FACT_BYTES_MAX, position::CREATED_AT_SECONDS_MAX,
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

    #[test]
    fn a_stored_event_has_its_fact_whole_or_as_a_difference_to_an_earlier_one() {
        let stored = |fact: &[u8], difference: &[u8], base_revision, fact_hash: &[u8]| v1::StoredEvent {
            fact: fact.to_vec().into(),
            fact_difference: difference.to_vec().into(),
            base_revision,
            fact_hash: fact_hash.to_vec(),
            ..v1::StoredEvent::default()
        };
        for (stored, why) in [
            (stored(b"fact", b"difference", 0, &[]), "a difference to no event"),
            (stored(b"fact", b"", 0, &[0; 16]), "a difference to no event"),
            (
                stored(b"fact", b"difference", 1, &[0; 16]),
                "whole and as a difference",
            ),
            (stored(b"", b"difference", 5, &[0; 16]), "no earlier one"),
            (stored(b"", b"difference", 6, &[0; 16]), "no earlier one"),
        ] {
            let error = parse_event(Revision(5), stored.encode_to_vec().into()).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
        let no_difference = stored(b"", b"difference", 4, &[0; 16]).encode_to_vec();
        let error = parse_event(Revision(5), no_difference.into())
            .unwrap()
            .restore(b"base")
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("event 5: its fact is a difference to event 4"),
            "{error}"
        );
    }
}
