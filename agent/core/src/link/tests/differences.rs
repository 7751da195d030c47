//! Tests of objects requested whole, and of when a session with differences ends.

use model::{ImportedSliceKey, sync::ItemDifference};

use super::*;

/// A difference from what nobody holds, of the slice of this name.
fn lost(name: &str) -> Bytes {
    name.to_owned().into()
}

fn key(name: &str) -> DesiredKey {
    DesiredKey::Slice(ImportedSliceKey {
        service: service(),
        source_cluster: ClusterId::new("east").expect("valid"),
        source_slice: name.into(),
    })
}

fn decode_lost(name: Bytes) -> Option<Told> {
    Some(Told::Difference(ItemDifference {
        revision: Revision(4),
        key: key(std::str::from_utf8(&name).expect("a name")),
        base: model::sync::ItemHash([1; 16]),
        difference: Bytes::new(),
        hash: model::sync::ItemHash([2; 16]),
    }))
}

/// A session whose snapshot is complete.
fn complete() -> SessionByHand {
    let mut hand = SessionByHand::open();
    for message in [
        HubMessage::SnapshotBegin {
            epoch: epoch(5),
            interest_generation: 1,
        },
        HubMessage::SnapshotComplete(up_to(3)),
    ] {
        hand.hear(message).expect("in order");
    }
    hand
}

fn hear_lost(hand: &mut SessionByHand, names: &[&str]) -> Result<Reaction, Violation> {
    let message = HubMessage::Desired {
        interest_generation: 1,
        items: names.iter().map(|name| lost(name)).collect(),
    };
    let (outbox, desired) = (&mut hand.outbox, &mut hand.desired);
    hand.session
        .on_message(message, outbox, desired, decode_lost, START)
}

#[test]
fn what_could_not_be_restored_is_asked_for_once_and_in_one_message() {
    let mut hand = complete();
    let reaction = hear_lost(&mut hand, &["a", "b", "a"]).expect("in order");
    assert_eq!((reaction.wanted, reaction.restored), (2, 0));
    hear_lost(&mut hand, &["b"]).expect("in order");
    let asked = AgentMessage::ItemsWanted([key("a"), key("b")].into());
    assert_eq!(hand.say(START), std::slice::from_ref(&asked));
    hear_lost(&mut hand, &["a"]).expect("in order");
    assert_eq!(hand.say(START), [], "the answer is on its way");
    let sent = wire::agent_message_to_proto(asked.clone());
    assert_eq!(wire::agent_message_from_proto(sent), Ok(asked));
}

#[test]
fn what_was_told_before_it_was_asked_for_is_not() {
    let mut hand = complete();
    hear_lost(&mut hand, &["a", "b"]).expect("in order");
    let removed = |_: Bytes| -> Option<Told> {
        let item = DesiredItem {
            revision: Revision(5),
            change: DesiredChange::Removed(key("a")),
        };
        Some(item.into())
    };
    let message = HubMessage::Desired {
        interest_generation: 1,
        items: vec![Bytes::new()],
    };
    let (outbox, desired) = (&mut hand.outbox, &mut hand.desired);
    let heard = hand.session.on_message(message, outbox, desired, removed, START);
    heard.expect("in order");
    assert_eq!(hand.say(START), [AgentMessage::ItemsWanted([key("b")].into())]);
}

/// The hub would have to send them all in the same way again.
#[test]
fn a_difference_out_of_place_ends_the_session_and_the_next_hello_takes_none() {
    let mut hand = SessionByHand::open();
    let heard = hear_lost(&mut hand, &["a"]);
    assert_eq!(heard.err(), Some(Violation::Unrestorable));
    assert!(!hand.desired.takes_differences());
    let introduction = Introduction {
        agent_version: "1".into(),
        cluster_fingerprint: "uid".into(),
        instance: "one".into(),
        lease_transitions: 3,
    };
    let (_, hello) = Session::begin(Beginning {
        introduction: &introduction,
        known_epoch: None,
        interest: Interest::default(),
        sources_held: BTreeSet::new(),
        outbox: &mut hand.outbox,
        desired: &mut hand.desired,
        now: START,
        clock: CLOCK,
    });
    assert_eq!(hello.features & FEATURE_DIFFERENCES, 0);
    assert_eq!(hello.cursor, None);
}
