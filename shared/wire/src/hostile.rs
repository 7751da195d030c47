//! Everything that a peer can have decoded costs no more than its size: 4 MiB of the worst of each kind take a moment,
//! or are refused before they are read. Reading YAML, the one decoder whose time is not bounded by its input's size, is
//! not reached by a member at all.

use std::time::Duration;

use bytes::Bytes;
use prost::{
    Message as _,
    encoding::{WireType, encode_key, encode_varint},
};
use proto::v1::{self, agent_message::Message};

use super::*;
use model::{
    fact::FACT_BYTES_MAX,
    sync::{AgentMessage, MESSAGE_BYTES_MAX, ObservedItem, RefusalReason},
};

/// Far more than what is linear takes in any build on any machine, and far less than what is quadratic takes.
const MOMENT: Duration = Duration::from_secs(10);
/// Kinds of facts: all of members, one that is no fact of its own, some of the hub, and one that nobody knows.
const KINDS: [u32; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 16, 29, 52, 60];

/// Returns the processor time of this thread, which other tests and programs do not change.
fn processor_time() -> Duration {
    let figures = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux says it");
    let nanos = figures
        .split_whitespace()
        .next()
        .and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}

pub(super) fn in_a_moment<T>(what: &str, decode: impl FnOnce() -> T) -> T {
    let began = processor_time();
    let decoded = decode();
    let took = processor_time().saturating_sub(began);
    assert!(took < MOMENT, "{what} took {took:?}");
    decoded
}

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + 8);
    encode_key(number, WireType::LengthDelimited, &mut bytes);
    encode_varint(content.len() as u64, &mut bytes);
    bytes.extend_from_slice(content);
    bytes
}

/// Contents of so many bytes that decoders may find hard: the same field again and again, nesting, text.
fn contents(bytes: usize) -> Vec<Vec<u8>> {
    let repeated = |part: &[u8]| part.repeat(bytes / part.len());
    let mut contents: Vec<Vec<u8>> = (1..=4).map(|number| repeated(&field(number, &[]))).collect();
    contents.extend((1..=4).map(|number| repeated(&field(number, &field(1, b"a")))));
    contents.extend([b"{a: ".as_slice(), b"[", b"\x0a\xff\xff\x03", b"\x0b", b"\xff"].map(repeated));
    contents.extend([1, 2, 3, 4].map(|number| field(number, &repeated(b"{a: "))));
    contents
}

#[test]
fn facts_of_every_kind_are_decoded_or_refused_in_a_moment() {
    for number in KINDS {
        // The key and the length of the field have their place in the largest fact.
        for content in contents(FACT_BYTES_MAX - 64) {
            let fact = Bytes::from(field(number, &content));
            let _ = in_a_moment(&format!("a fact of kind {number}"), || decode_member_fact(fact));
        }
    }
    for content in contents(MESSAGE_BYTES_MAX) {
        let taken = in_a_moment("bytes", || decode_member_fact(content.into()));
        assert!(taken.is_err());
    }
}

#[test]
fn a_policy_of_a_member_is_refused_unread() {
    for document in ["{a: ", "[[[[", "- - "] {
        let document = document.repeat(FACT_BYTES_MAX / 4 / document.len());
        let applied = v1::PolicyApplied {
            operator: "x".into(),
            document,
        };
        let fact = v1::Fact {
            fact: Some(v1::fact::Fact::PolicyApplied(applied)),
        };
        let fact = Bytes::from(fact.encode_to_vec());
        let refused = in_a_moment("a policy", || decode_member_fact(fact)).unwrap_err();
        assert_eq!(refused.reason, RefusalReason::NotAMembersFact);
        assert!(
            refused
                .message
                .starts_with("policy_applied: only the hub decides"),
            "{refused}"
        );
    }
}

#[test]
fn messages_of_every_kind_are_decoded_or_refused_in_a_moment() {
    for number in 1..=9 {
        for content in contents(MESSAGE_BYTES_MAX - 64).into_iter().step_by(2) {
            let bytes = field(number, &content);
            in_a_moment(&format!("a message of kind {number}"), || {
                let Ok(message) = v1::AgentMessage::decode(bytes.as_slice()) else {
                    return;
                };
                let _ = agent_message_from_proto(message);
            });
        }
    }
}

#[test]
fn a_message_of_facts_that_only_the_hub_decides_is_refused_item_by_item() {
    let fact = v1::Fact {
        fact: Some(v1::fact::Fact::PolicyApplied(v1::PolicyApplied {
            operator: "x".into(),
            document: "{a: ".repeat(10_000),
        })),
    };
    let fact = Bytes::from(fact.encode_to_vec());
    let observations = (1..=MESSAGE_BYTES_MAX as u64 / fact.len() as u64).map(|sequence| v1::Observation {
        sequence,
        observation: Some(v1::observation::Observation::Fact(fact.clone())),
        changed_by: None,
    });
    let message = v1::AgentMessage {
        message: Some(Message::Observations(v1::Observations {
            observations: observations.collect(),
        })),
    };
    let decoded = in_a_moment("a message of policies", || agent_message_from_proto(message));
    let Ok(AgentMessage::Observations(observations)) = decoded else {
        panic!("observations are refused one by one")
    };
    for observation in observations {
        let ObservedItem::Invalid(refused) = observation.item else {
            panic!("no member applies policies")
        };
        assert_eq!(refused.reason, RefusalReason::NotAMembersFact);
    }
}
