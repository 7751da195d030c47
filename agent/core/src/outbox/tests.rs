//! Tests of the queue session by session: what waits, what is sent, what the hub refuses.

use bytes::Bytes;
use model::{Fact, ServiceKey};

use super::*;

fn key(name: &str) -> FactKey {
    FactKey::Export(ServiceKey::new("shop", name).unwrap())
}

/// Facts here are told apart by their bytes alone.
fn fact(text: &str) -> EncodedFact {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    let hash = FactHash::of(&bytes);
    EncodedFact {
        fact: Fact::MemberLive,
        bytes,
        hash,
    }
}

fn removal(_: &FactKey) -> EncodedFact {
    fact("removed")
}

fn texts(batch: &[Observation]) -> Vec<String> {
    let text = |observation: &Observation| match &observation.item {
        ObservedItem::Fact(fact) => String::from_utf8(fact.bytes.to_vec()).unwrap(),
        ObservedItem::ListingCompleted(_) => "listed".into(),
        ObservedItem::Invalid(_) => unreachable!("agents send none"),
    };
    batch.iter().map(text).collect()
}

fn listed(facts: &[(&str, &str)]) -> Outbox {
    let mut outbox = Outbox::new(removal);
    for (name, text) in facts {
        outbox.set(key(name), Some(fact(text)));
    }
    outbox.complete(ListingGroup::Exports);
    outbox.begin_session();
    outbox
}

#[test]
fn a_listing_waits_until_its_group_is_complete() {
    let mut outbox = Outbox::new(removal);
    outbox.set(key("a"), Some(fact("a1")));
    outbox.begin_session();
    assert_eq!(outbox.digest(ListingGroup::Exports), None);
    outbox.welcome(true, false);
    outbox.set(key("b"), Some(fact("b1")));
    assert!(outbox.next_batch(1_000, 10).is_empty());
    outbox.complete(ListingGroup::Exports);
    assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["a1", "b1", "listed"]);
}

#[test]
fn only_the_latest_value_of_a_waiting_key_is_sent() {
    let mut outbox = listed(&[("a", "a1")]);
    outbox.welcome(false, false);
    for text in ["a2", "a3"] {
        outbox.set(key("a"), Some(fact(text)));
    }
    outbox.set(key("b"), Some(fact("b1")));
    outbox.set(key("b"), None);
    assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["a3", "removed"]);
}

#[test]
fn a_change_after_sending_is_sent_again_and_the_window_holds() {
    let mut outbox = listed(&[("a", "a1"), ("b", "b1")]);
    outbox.welcome(true, false);
    assert_eq!(texts(&outbox.next_batch(1_000, 2)), ["a1", "b1"]);
    outbox.set(key("a"), Some(fact("a2")));
    assert!(outbox.next_batch(1_000, 2).is_empty());
    outbox.acknowledge(2);
    assert_eq!(texts(&outbox.next_batch(1_000, 2)), ["listed", "a2"]);
}

/// Two facts were sent, and the hub refuses the first; beside it the digest of before.
fn with_a_refused(reason: RefusalReason) -> (Outbox, Option<FactsDigest>) {
    let mut outbox = listed(&[("a", "a1"), ("b", "b1")]);
    let before = outbox.digest(ListingGroup::Exports);
    outbox.welcome(true, false);
    outbox.next_batch(1_000, 10);
    assert_eq!(outbox.refuse(&refused(1, reason)), Some(key("a")));
    (outbox, before)
}

fn refused(sequence: u64, reason: RefusalReason) -> Refused {
    Refused {
        sequence,
        reason,
        message: "no".into(),
    }
}

#[test]
fn a_refused_fact_is_withdrawn_and_left_out_of_the_digest() {
    let (mut outbox, before) = with_a_refused(RefusalReason::Invalid);
    assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["removed"]);
    assert!(outbox.refusal(&key("a")).is_some());
    assert_ne!(outbox.digest(ListingGroup::Exports), before);
    outbox.set(key("a"), Some(fact("a2")));
    assert!(outbox.refusal(&key("a")).is_none());
    assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["a2"]);
}

#[test]
fn what_the_hub_has_no_room_for_is_not_withdrawn_and_said_once_more_when_it_asks() {
    let (mut outbox, before) = with_a_refused(RefusalReason::NoRoom);
    assert!(outbox.refusal(&key("a")).is_some());
    assert!(
        outbox.next_batch(1_000, 10).is_empty(),
        "what the hub holds stands"
    );
    assert_eq!(outbox.digest(ListingGroup::Exports), before);
    outbox.report_again();
    assert!(outbox.refusal(&key("a")).is_none());
    assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["a1"]);
    assert_eq!(outbox.refuse(&refused(4, RefusalReason::NoRoom)), Some(key("a")));
    outbox.set(key("a"), None);
    outbox.report_again();
    assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["removed"]);
    // The next session compares or lists: nothing is held back by it yet.
    outbox.begin_session();
    outbox.welcome(false, false);
    assert!(outbox.refusal(&key("a")).is_none());
}

#[test]
fn a_listing_asks_anew_for_its_own_group_only() {
    let mut outbox = listed(&[("a", "a1")]);
    outbox.complete(ListingGroup::Properties);
    outbox.welcome(true, false);
    outbox.next_batch(1_000, 10);
    let refused = Refused {
        sequence: 1,
        reason: RefusalReason::Invalid,
        message: "bad".into(),
    };
    outbox.refuse(&refused);
    outbox.welcome(false, true);
    assert!(outbox.refusal(&key("a")).is_some(), "exports were not asked for");
    outbox.welcome(true, false);
    assert!(outbox.refusal(&key("a")).is_none(), "the hub judges anew");
}

#[test]
fn a_batch_ends_with_the_fact_that_reaches_the_bound() {
    let mut outbox = listed(&[("a", "a1"), ("b", "b1"), ("c", "c1"), ("d", "d1")]);
    outbox.welcome(true, false);
    assert_eq!(texts(&outbox.next_batch(2, 10)), ["a1"]);
    assert_eq!(texts(&outbox.next_batch(3, 10)), ["b1", "c1"]);
    assert_eq!(texts(&outbox.next_batch(1, 10)), ["d1"]);
}

#[test]
fn it_says_what_it_knows_and_how_much_waits() {
    let mut outbox = Outbox::new(removal);
    outbox.set(key("a"), Some(fact("a1")));
    assert!(!outbox.is_complete(ListingGroup::Exports));
    outbox.complete(ListingGroup::Exports);
    assert!(outbox.is_complete(ListingGroup::Exports) && !outbox.is_complete(ListingGroup::Properties));
    assert_eq!(outbox.keys(ListingGroup::Exports), [key("a")].into());
    assert!(outbox.keys(ListingGroup::Properties).is_empty());
    outbox.begin_session();
    outbox.welcome(true, false);
    assert_eq!(outbox.depth(), (2, 0));
    outbox.next_batch(1, 10);
    assert_eq!(outbox.depth(), (1, 1));
    outbox.next_batch(1, 10);
    assert_eq!(outbox.depth(), (0, 2));
}

#[test]
fn a_new_session_starts_from_nothing_but_the_facts() {
    let mut outbox = listed(&[("a", "a1")]);
    outbox.welcome(true, false);
    outbox.next_batch(1_000, 1);
    outbox.end_session();
    outbox.set(key("b"), Some(fact("b1")));
    outbox.begin_session();
    outbox.welcome(true, false);
    assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["a1", "b1", "listed"]);
}

/// An outbox whose facts `a` and `b` are stated, in a session, with `b` refused as one too many.
fn with_one_too_many() -> Outbox {
    let mut outbox = Outbox::new(removal);
    for name in ["a", "b"] {
        outbox.set(key(name), Some(fact(name)));
    }
    outbox.complete(ListingGroup::Exports);
    outbox.begin_session();
    outbox.welcome(true, false);
    let sent = outbox.next_batch(1_000, 10).len() as u64;
    let refused = Refused {
        sequence: 2,
        reason: RefusalReason::TooMany,
        message: "too many".into(),
    };
    assert_eq!(outbox.refuse(&refused), Some(key("b")));
    outbox.next_batch(1_000, 10);
    assert!(outbox.acknowledge(sent + 1).is_empty());
    outbox
}

#[test]
fn what_the_hub_had_no_place_for_is_stated_again_when_another_fact_goes() {
    let mut outbox = with_one_too_many();
    let before = outbox.digest(ListingGroup::Exports);
    outbox.set(key("a"), None);
    let sent = outbox.next_batch(1_000, 10);
    assert_eq!(sent.len(), 2, "the removal, and what there is room for now");
    let last = sent.last().expect("two").sequence;
    assert_eq!(
        outbox.acknowledge(last),
        [key("b")],
        "people hear that it is taken"
    );
    assert_eq!(outbox.refusal(&key("b")), None);
    assert_ne!(outbox.digest(ListingGroup::Exports), before);
}

#[test]
fn what_went_while_no_hub_listened_makes_room_in_the_next_session() {
    let mut outbox = with_one_too_many();
    outbox.end_session();
    let refused_left_out = outbox.digest(ListingGroup::Exports);
    outbox.set(key("a"), None);
    let mut only = Outbox::new(removal);
    only.set(key("b"), Some(fact("b")));
    only.complete(ListingGroup::Exports);
    let digest = outbox.digest(ListingGroup::Exports);
    assert_eq!(
        digest,
        only.digest(ListingGroup::Exports),
        "the hub has to ask for it"
    );
    assert_ne!(digest, refused_left_out);
}

#[test]
fn a_hub_of_another_version_is_asked_again() {
    let mut outbox = with_one_too_many();
    outbox.hub_is("1");
    outbox.begin_session();
    outbox.hub_is("1");
    outbox.welcome(false, false);
    assert!(outbox.next_batch(1_000, 10).is_empty());
    outbox.begin_session();
    outbox.hub_is("2");
    outbox.welcome(false, false);
    assert_eq!(outbox.next_batch(1_000, 10).len(), 1);
}

/// A hub of the release before refuses a health that it does not know.
#[test]
fn a_health_that_was_refused_and_comes_again_is_stated_again() {
    let mut outbox = Outbox::new(removal);
    outbox.set(FactKey::Health, Some(fact("healthy")));
    outbox.complete(ListingGroup::Properties);
    outbox.begin_session();
    outbox.welcome(false, false);
    outbox.set(FactKey::Health, Some(fact("new")));
    outbox.next_batch(1_000, 10);
    let refused = Refused {
        sequence: 1,
        reason: RefusalReason::Invalid,
        message: "verdict.reason".into(),
    };
    outbox.refuse(&refused);
    for health in ["healthy", "new"] {
        outbox.set(FactKey::Health, Some(fact(health)));
        assert_eq!(texts(&outbox.next_batch(1_000, 10)), [health]);
    }
}

/// The definition of ClusterProperty is gone, and the control plane is not well.
#[test]
fn health_is_stated_though_the_properties_cannot_be_listed() {
    let mut outbox = Outbox::new(removal);
    outbox.begin_session();
    outbox.welcome(false, true);
    outbox.set(FactKey::Health, Some(fact("sick")));
    assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["sick"]);
}
