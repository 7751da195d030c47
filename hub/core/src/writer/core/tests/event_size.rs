//! Tests of the largest event of the log, to the byte.

use wire::EVENT_ENVELOPE_BYTES_MAX;

use super::*;

/// The fact in more bytes than it takes: fields that nobody knows are kept as they came.
fn fact_of(bytes: usize) -> EncodedFact {
    let fact = property("region");
    let mut padded = fact.bytes.to_vec();
    // Field 15, length-delimited, of so many bytes that the length takes three or four.
    let rest = bytes - padded.len();
    let content = (1..=5)
        .map(|length| rest - 1 - length)
        .find(|content| varint(*content).len() + 1 + content == rest);
    let content = content.expect("some length of the length fits");
    padded.push(15 << 3 | 2);
    padded.extend(varint(content));
    padded.resize(bytes, 0);
    wire::decode_member_fact(padded.into()).expect("a fact")
}

fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn refusals(batch: &Batch) -> Vec<(u64, RefusalReason, String)> {
    let refused = batch.replies.iter().filter_map(|reply| match reply {
        Reply::Refused(_, refused) => Some((refused.sequence, refused.reason, refused.message.to_string())),
        _ => None,
    });
    refused.collect()
}

#[test]
fn what_is_too_large_for_an_event_is_refused_alone_and_in_every_way_alike() {
    let limits = Limits {
        event_bytes: 4_096,
        ..Limits::default()
    };
    let mut core = core().within(limits);
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    let most = limits.event_bytes - EVENT_ENVELOPE_BYTES_MAX;
    let taken = observe(&mut core, session, 1, fact_of(most));
    assert_eq!((taken.events.len(), refusals(&taken)), (1, vec![]));
    assert!(taken.events[0].1.len() <= limits.event_bytes);
    for sequence in [2, 3] {
        let batch = observe(&mut core, session, sequence, fact_of(most + 1));
        let [(of, reason, message)] = &refusals(&batch)[..] else {
            panic!("{:?}", batch.replies)
        };
        assert_eq!(
            (*of, *reason, batch.events.len()),
            (sequence, RefusalReason::Invalid, 0)
        );
        let words = "ClusterProperty region has 3585 bytes, and the event log takes at most 3584";
        assert!(message.starts_with(words), "{message}");
        let acknowledged =
            |reply: &Reply| matches!(reply, Reply::Acknowledged(_, upto) if upto.sequence == sequence);
        assert!(batch.replies.iter().any(acknowledged));
    }
    let next = observe(&mut core, session, 4, property("zone"));
    assert_eq!(
        (next.events.len(), refusals(&next)),
        (1, vec![]),
        "the session goes on"
    );
}

#[test]
fn what_is_recorded_already_is_no_news_however_large() {
    let mut core = core();
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    let fact = fact_of(4_000);
    observe(&mut core, session, 1, fact.clone());
    let mut core = core.within(Limits {
        event_bytes: 1_024,
        ..Limits::default()
    });
    let again = observe(&mut core, session, 2, fact);
    assert_eq!((again.events.len(), refusals(&again)), (0, vec![]));
}

#[test]
fn the_largest_fact_of_the_contract_is_refused_and_one_that_fits_its_envelope_is_taken() {
    let mut core = core();
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    let largest = model::fact::FACT_BYTES_MAX;
    let refused = observe(&mut core, session, 1, fact_of(largest));
    assert_eq!((refused.events.len(), refusals(&refused).len()), (0, 1));
    let taken = observe(&mut core, session, 2, fact_of(largest - EVENT_ENVELOPE_BYTES_MAX));
    assert_eq!((taken.events.len(), refusals(&taken).len()), (1, 0));
}
