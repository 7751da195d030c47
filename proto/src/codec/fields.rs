//! Owns: how many parts an encoded message has, counted before it is decoded: its fields, and theirs.
//! Never: knows what a field means.

use prost::bytes::Buf;

/// Fields of one message of a member, with the fields of those. The largest that an agent sends has 20,000 namespaces.
pub(super) const MESSAGE_FIELDS_MAX: usize = 64 * 1024;

/// Returns true if a message has more fields than may be. What is no message has as many as are seen before its fault.
pub(super) fn are_too_many(message: &impl Buf) -> bool {
    // A message lies in one piece, and one that does not is short.
    let mut bytes = message.chunk();
    let mut count = 0;
    while let Some(content) = next(&mut bytes) {
        count += 1;
        let mut inner = content;
        while count <= MESSAGE_FIELDS_MAX && next(&mut inner).is_some() {
            count += 1;
        }
        if count > MESSAGE_FIELDS_MAX {
            return true;
        }
    }
    false
}

/// The content of the next field, if it has a length, else nothing of it.
fn next<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let key = varint(bytes)?;
    let length = match key & 7 {
        0 => {
            varint(bytes)?;
            0
        }
        1 => 8,
        2 => usize::try_from(varint(bytes)?).ok()?,
        5 => 4,
        // A group: its fields follow as if they were the message's.
        3 | 4 => 0,
        _ => return None,
    };
    let (content, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(if key & 7 == 2 { content } else { &[] })
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::v1::{self, agent_message::Message};

    fn encoded(message: Message) -> Vec<u8> {
        v1::AgentMessage {
            message: Some(message),
        }
        .encode_to_vec()
    }

    fn observations(count: usize) -> Vec<u8> {
        let observations = vec![v1::Observation::default(); count];
        encoded(Message::Observations(v1::Observations { observations }))
    }

    #[test]
    fn what_becomes_far_larger_than_it_is_is_refused_before_it_is_decoded() {
        assert!(are_too_many(&observations(2_000_000).as_slice()));
        // The same in many fields, which are merged.
        let parts = observations(30_000).repeat(3);
        assert!(are_too_many(&parts.as_slice()));
        let wanted = vec![v1::DesiredKey::default(); 100_000];
        let wanted = encoded(Message::ItemsWanted(v1::ItemsWanted { keys: wanted }));
        assert!(are_too_many(&wanted.as_slice()));
        assert!(are_too_many(&b"\x0b".repeat(100_000).as_slice()), "groups");
    }

    #[test]
    fn the_largest_messages_of_an_agent_pass() {
        let named = |count| {
            (0..count)
                .map(|number| format!("namespace-{number:05}"))
                .collect()
        };
        let interest = v1::Interest {
            namespaces: named(20_000),
            ..Default::default()
        };
        let hello = v1::Hello {
            sources_held: named(5_000),
            interest: Some(interest),
            ..Default::default()
        };
        let changed = v1::InterestChanged {
            added: named(20_000),
            removed: named(20_000),
            ..Default::default()
        };
        for message in [Message::Hello(hello), Message::InterestChanged(changed)] {
            assert!(!are_too_many(&encoded(message).as_slice()));
        }
        let fact = v1::Observation {
            observation: Some(v1::observation::Observation::Fact(vec![0; 1024 * 1024].into())),
            ..Default::default()
        };
        let observations = v1::Observations {
            observations: vec![fact; 3],
        };
        assert!(!are_too_many(
            &encoded(Message::Observations(observations)).as_slice()
        ));
        assert!(!are_too_many(&observations_of_a_window().as_slice()));
        assert!(
            !are_too_many(&b"\xff".repeat(100_000).as_slice()),
            "it is no message"
        );
    }

    fn observations_of_a_window() -> Vec<u8> {
        observations(8_192)
    }
}
