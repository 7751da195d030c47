//! Differences as the link feeds them: what is restored, what is asked for, and what the cursor says meanwhile.

use std::collections::BTreeSet;

use model::sync::{DesiredKey, ITEMS_WANTED_MAX, ItemDifference, ItemHash, Told};
use wire::{decode_told, encode_desired, encode_difference};

use super::*;
use crate::plan::{News, Touched};

/// A slice of thirty endpoints, the last of which has this address.
fn large(revision: u64, address: &str) -> DesiredItem {
    let mut endpoints: Vec<Endpoint> = (0..30)
        .map(|number| endpoint(&format!("10.0.7.{number}")))
        .collect();
    endpoints.push(endpoint(address));
    let slice = ImportedSlice {
        endpoints: endpoints.into(),
        ..slice("east", "cart-1", address)
    };
    item(revision, DesiredChange::Slice(Arc::new(slice)))
}

fn slice_key() -> DesiredKey {
    large(0, "10.0.8.1").change.key()
}

fn difference(base: &DesiredItem, to: &DesiredItem) -> Told {
    let bytes = encode_difference(&encode_desired(base), &encode_desired(to), to);
    let told = decode_told(bytes.expect("it pays")).expect("an item");
    assert!(matches!(told, Told::Difference(_)));
    told
}

/// Someone who was told everything up to revision 5, the first version of the slice at 3.
fn holder() -> Desired {
    let mut desired = told(&[source("east", true)], vec![]);
    desired.items(1, [large(3, "10.0.8.3")]);
    desired.up_to(&up_to(1, 1, 5));
    desired.take_news();
    desired
}

fn revision(desired: &Desired) -> u64 {
    let slices: Vec<u64> = desired.slices(&key()).map(|slice| slice.revision.0).collect();
    assert!(slices.len() < 2);
    slices.first().copied().unwrap_or(0)
}

fn touched() -> Touched {
    Touched::Services([key()].into())
}

fn asked() -> News {
    News {
        wanted: [slice_key()].into(),
        ..News::default()
    }
}

#[test]
fn what_the_difference_leads_to_is_held_and_planned() {
    let (mut desired, new) = (holder(), large(6, "10.0.8.6"));
    let difference = difference(&large(3, "10.0.8.3"), &new);
    assert_eq!(desired.items(1, [difference.clone()]), touched());
    assert_eq!((revision(&desired), desired.take_news().restored), (6, 1));
    let held: Vec<_> = desired.slices(&key()).map(|slice| slice.value.clone()).collect();
    assert_eq!(DesiredChange::Slice(held[0].clone()), new.change);
    desired.up_to(&up_to(1, 1, 6));
    assert_eq!(desired.cursor(), Some(up_to(1, 1, 6).cursor));
    assert_eq!(
        desired.items(1, [difference]),
        touched(),
        "told again, it is the same"
    );
    assert_eq!(desired.take_news(), News::default());
}

/// An agent that resumed at the position would never receive the objects that could not be restored.
#[test]
fn no_position_is_believed_until_what_could_not_be_restored_was_told_whole() {
    let mut desired = holder();
    let before = desired.cursor();
    assert_eq!(before, Some(up_to(1, 1, 5).cursor));
    let foreign = difference(&large(4, "10.0.8.4"), &large(6, "10.0.8.6"));
    assert_eq!(desired.items(1, [foreign]), Touched::Services(BTreeSet::new()));
    assert_eq!((revision(&desired), desired.take_news()), (3, asked()));
    desired.up_to(&up_to(1, 1, 6));
    assert_eq!(desired.cursor(), before);
    desired.items(1, [large(6, "10.0.8.6")]);
    assert_eq!((revision(&desired), desired.cursor()), (6, before));
    desired.up_to(&up_to(1, 1, 6));
    assert_eq!(desired.cursor(), Some(up_to(1, 1, 6).cursor));
}

/// It resumes before the revision that it could not restore, so that this is sent again.
#[test]
fn a_session_that_ends_meanwhile_resumes_before_it() {
    let mut desired = holder();
    desired.items(1, [difference(&large(4, "10.0.8.4"), &large(6, "10.0.8.6"))]);
    desired.up_to(&up_to(1, 1, 6));
    desired.session_ended();
    assert_eq!(desired.cursor(), Some(up_to(1, 1, 5).cursor));
    desired.interest(&interest(1, &["shop"]));
    desired.welcome(&welcome(1, true));
    assert_eq!(
        desired.take_news(),
        News::default(),
        "nothing is asked for in the new one"
    );
    desired.items(1, [difference(&large(4, "10.0.8.4"), &large(6, "10.0.8.6"))]);
    assert_eq!(
        desired.take_news(),
        asked(),
        "unless it is told in the same way again"
    );
    desired.items(1, [large(6, "10.0.8.6")]);
    desired.up_to(&up_to(1, 1, 6));
    assert_eq!(desired.cursor(), Some(up_to(1, 1, 6).cursor));
}

#[test]
fn what_is_held_as_of_a_position_and_is_not_what_the_hub_thinks_makes_the_position_worthless() {
    let mut desired = holder();
    let past = difference(&large(2, "10.0.8.2"), &large(4, "10.0.8.4"));
    desired.items(1, [past]);
    assert_eq!((desired.take_news(), desired.cursor()), (asked(), None));
    desired.items(1, [large(4, "10.0.8.4")]);
    desired.up_to(&up_to(1, 1, 6));
    assert_eq!(desired.cursor(), Some(up_to(1, 1, 6).cursor));
}

#[test]
fn a_lost_a_newer_and_a_second_base_are_asked_for_once() {
    let (old, new) = (large(3, "10.0.8.3"), large(6, "10.0.8.6"));
    let mut newer = holder();
    newer.items(1, [large(9, "10.0.8.9")]);
    let mut without = holder();
    without.items(1, [item(4, DesiredChange::Removed(slice_key()))]);
    for desired in [&mut newer, &mut without] {
        let before = revision(desired);
        desired.items(1, [difference(&old, &new)]);
        assert_eq!(desired.take_news(), asked());
        desired.items(1, [difference(&new, &large(7, "10.0.8.7"))]);
        assert_eq!(desired.take_news(), News::default(), "it is asked for already");
        assert_eq!(revision(desired), before, "no other object was made");
    }
}

/// A difference that comes late is none of what was asked for, wherever it leads.
#[test]
fn what_is_older_than_what_was_lost_answers_nothing() {
    let (mut desired, older, newer) = (holder(), large(6, "10.0.8.6"), large(7, "10.0.8.7"));
    desired.items(1, [difference(&older, &newer)]);
    assert_eq!(
        desired.items(1, [difference(&large(3, "10.0.8.3"), &older)]),
        touched()
    );
    assert_eq!((revision(&desired), desired.wants(&slice_key())), (6, true));
    assert_eq!(desired.take_news().wanted, asked().wanted);
    desired.up_to(&up_to(1, 1, 7));
    assert_eq!(
        desired.cursor(),
        Some(up_to(1, 1, 5).cursor),
        "it would never be told again"
    );
    desired.items(1, [newer]);
    assert_eq!((revision(&desired), desired.wants(&slice_key())), (7, false));
}

#[test]
fn a_removal_and_what_cannot_be_read_answer_too() {
    let unreadable = Told::Unreadable {
        key: slice_key(),
        why: "of a newer hub".into(),
    };
    for answer in [item(6, DesiredChange::Removed(slice_key())).into(), unreadable] {
        let mut desired = holder();
        desired.items(1, [difference(&large(4, "10.0.8.4"), &large(6, "10.0.8.6"))]);
        assert!(desired.wants(&slice_key()));
        desired.items(1, [answer]);
        assert!(!desired.wants(&slice_key()));
        desired.up_to(&up_to(1, 1, 6));
        assert_eq!(desired.cursor(), Some(up_to(1, 1, 6).cursor));
    }
}

#[test]
fn nothing_is_asked_for_of_a_namespace_that_went() {
    let mut desired = holder();
    let foreign = difference(&large(4, "10.0.8.4"), &large(6, "10.0.8.6"));
    desired.items(1, [foreign.clone()]);
    desired.namespace_removed("shop");
    assert_eq!(desired.take_news(), News::default());
    desired.items(1, [foreign]);
    assert_eq!(desired.take_news(), News::default(), "it was on its way");
    desired.up_to(&up_to(1, 1, 6));
    assert_eq!(desired.cursor(), Some(up_to(1, 1, 6).cursor));
}

/// At the end of a complete snapshot, a missing object counts as absent and is deleted.
#[test]
fn a_difference_before_everything_was_told_ends_the_session_and_all_that_come_later_are_whole() {
    let told = difference(&large(3, "10.0.8.3"), &large(6, "10.0.8.6"));
    let mut staged = holder();
    staged.snapshot_begin(epoch(1));
    let mut added = holder();
    added.namespace_removed("shop");
    added.namespace_added(2, "shop");
    let mut fresh = Desired::default();
    fresh.interest(&interest(1, &["shop"]));
    fresh.welcome(&welcome(1, false));
    for desired in [&mut staged, &mut added, &mut fresh] {
        assert!(desired.takes_differences());
        desired.items(2, [told.clone()]);
        assert!(desired.take_news().refused);
        assert_eq!((desired.cursor(), desired.takes_differences()), (None, false));
        desired.session_ended();
        desired.welcome(&welcome(1, false));
        assert!(!desired.takes_differences(), "until this agent starts again");
    }
}

#[test]
fn more_than_may_be_asked_for_ends_the_session() {
    let mut desired = holder();
    let lost = |number: usize| {
        Told::Difference(ItemDifference {
            revision: Revision(6),
            key: DesiredKey::Import(ServiceKey::new("shop", &format!("s{number}")).unwrap()),
            base: ItemHash([1; 16]),
            difference: Default::default(),
            hash: ItemHash([2; 16]),
        })
    };
    desired.items(1, (0..ITEMS_WANTED_MAX).map(lost));
    let news = desired.take_news();
    assert_eq!((news.wanted.len(), news.refused), (ITEMS_WANTED_MAX, false));
    desired.items(1, [lost(0)]);
    assert!(!desired.take_news().refused, "it is among them");
    desired.items(1, [lost(ITEMS_WANTED_MAX)]);
    assert!(desired.take_news().refused);
    assert_eq!((desired.cursor(), desired.takes_differences()), (None, false));
}
