//! The desired state as the link feeds it: snapshots, interest, cursors.

use std::collections::BTreeSet;

use model::sync::DesiredKey;

use super::*;
use crate::plan::{Settling, Touched};

fn wanted() -> DesiredChange {
    DesiredChange::Import(Arc::new(import(&[port("http", 80)], &["east"])))
}

#[test]
fn a_snapshot_replaces_everything_when_it_is_complete_and_not_before() {
    let mut desired = told(&[source("east", true)], vec![wanted()]);
    desired.welcome(&welcome(2, false));
    desired.snapshot_begin(epoch(2));
    assert!(desired.import(&key()).is_some() && !desired.is_complete("shop"));
    assert_eq!(desired.items(1, [item(1, wanted())]), Touched::none());
    desired.items(1, [item(2, DesiredChange::Removed(DesiredKey::Import(key())))]);
    assert!(desired.import(&key()).is_some());
    assert_eq!(desired.snapshot_complete(&up_to(2, 1, 2)), Touched::All);
    assert!(desired.import(&key()).is_none() && desired.is_complete("shop"));
    assert_eq!(desired.cursor().map(|cursor| cursor.epoch), Some(epoch(2)));
}

#[test]
fn no_cursor_is_taken_over_while_a_snapshot_is_under_way() {
    let mut desired = told(&[source("east", true)], vec![wanted()]);
    let before = desired.cursor();
    desired.welcome(&welcome(2, false));
    desired.snapshot_begin(epoch(2));
    desired.up_to(&up_to(2, 1, 3));
    desired.session_ended();
    assert_eq!(desired.cursor(), before, "what was staged is gone");
    desired.welcome(&welcome(1, true));
    desired.up_to(&up_to(1, 1, 6));
    assert_eq!(desired.cursor(), Some(up_to(1, 1, 6).cursor));
}

#[test]
fn a_session_that_resumes_makes_the_old_snapshot_complete_again() {
    let mut desired = told(&[source("east", true)], vec![wanted()]);
    desired.welcome(&welcome(2, false));
    desired.snapshot_begin(epoch(2));
    desired.session_ended();
    assert!(!desired.is_complete("shop"));
    desired.welcome(&welcome(1, true));
    assert!(desired.is_complete("shop"));
    desired.welcome(&welcome(3, true));
    assert!(
        !desired.is_complete("shop"),
        "a cursor of another epoch cannot be resumed"
    );
}

#[test]
fn what_was_computed_before_a_namespace_went_and_came_back_is_dropped() {
    let mut desired = told(&[source("east", true)], vec![wanted()]);
    desired.namespace_removed("shop");
    assert!(desired.import(&key()).is_none() && !desired.is_complete("shop"));
    assert_eq!(
        desired.items(1, [item(6, wanted())]),
        Touched::Services(Default::default())
    );
    desired.namespace_added(3, "shop");
    desired.items(1, [item(6, wanted())]);
    desired.namespace_complete(1, ["shop".into()]);
    assert!(desired.import(&key()).is_none() && !desired.is_complete("shop"));
    assert_eq!(desired.cursor(), None, "a resume would never tell the rest");
    desired.items(3, [item(7, wanted())]);
    desired.namespace_complete(3, ["shop".into()]);
    assert!(desired.import(&key()).is_some() && desired.is_complete("shop"));
    assert!(desired.cursor().is_some());
}

#[test]
fn the_word_on_an_own_export_stands_whatever_becomes_of_the_interest() {
    let stands = |desired: &Desired| desired.export_status(&key()).is_some();
    let mut desired = told(&[source("east", true)], vec![]);
    desired.namespace_removed("shop");
    desired.items(
        1,
        [item(6, DesiredChange::ExportStatus(Arc::new(status("uid", 1))))],
    );
    assert!(
        stands(&desired),
        "the hub tells it once, before the namespace is known"
    );
    desired.namespace_added(3, "shop");
    desired.namespace_complete(3, ["shop".into()]);
    assert!(stands(&desired), "and does not repeat it with the namespace");
    desired.namespace_removed("shop");
    desired.interest(&interest(4, &[]));
    assert!(stands(&desired), "a resume does not repeat it either");
    desired.items(
        4,
        [item(7, DesiredChange::Removed(DesiredKey::ExportStatus(key())))],
    );
    assert!(!stands(&desired));
}

#[test]
fn a_namespace_that_came_during_a_snapshot_is_complete_only_with_its_own_marker() {
    let mut desired = Desired::default();
    desired.interest(&interest(1, &["shop"]));
    desired.welcome(&welcome(1, false));
    desired.snapshot_begin(epoch(1));
    desired.namespace_added(2, "bank");
    desired.snapshot_complete(&up_to(1, 1, 1));
    assert!(desired.is_complete("shop") && !desired.is_complete("bank"));
    desired.namespace_complete(2, ["bank".into()]);
    assert!(desired.is_complete("bank"));
}

#[test]
fn a_complete_namespace_concerns_its_own_services_alone() {
    let mut desired = told(&[source("east", true)], vec![wanted()]);
    desired.namespace_added(2, "bank");
    let complete =
        |desired: &mut Desired, generation| desired.namespace_complete(generation, ["bank".into()]);
    assert_eq!(
        complete(&mut desired, 1),
        Touched::Namespaces(BTreeSet::new()),
        "an older telling"
    );
    assert_eq!(
        complete(&mut desired, 2),
        Touched::Namespaces(BTreeSet::from(["bank".into()]))
    );
    desired.snapshot_begin(epoch(1));
    assert_eq!(
        complete(&mut desired, 2),
        Touched::none(),
        "the snapshot concerns all"
    );
}

#[test]
fn a_welcome_forgets_what_was_said_of_sources() {
    let mut desired = told(&[source("east", true), source("west", true)], vec![]);
    assert!(desired.sources().is_settled(&cluster("west")));
    desired.welcome(&welcome(1, true));
    assert!(!desired.sources().is_settled(&cluster("west")));
    desired.sources_changed(&[source("east", true)]);
    assert!(desired.sources().is_settled(&cluster("east")));
    assert!(!desired.sources().is_settled(&cluster("west")));
}

/// The log of the hub that speaks may be an old copy, and the cluster back since.
#[test]
fn an_end_counts_from_a_hub_that_saw_it_and_until_something_comes_from_there() {
    let west = |state, ended| Source {
        state,
        ended,
        ..source("west", false)
    };
    let is_settled = |desired: &Desired| desired.sources().is_settled(&cluster("west"));
    let mut desired = told(&[source("east", true), west(SourceState::Evicted, false)], vec![]);
    assert!(!is_settled(&desired), "an end of before");
    desired.sources_changed(&[west(SourceState::Evicted, true)]);
    assert!(is_settled(&desired));

    desired.up_to(&up_to(1, 1, 5));
    let mut resumed = desired.clone();
    resumed.welcome(&welcome(1, true));
    assert!(!is_settled(&resumed), "it is not named yet");
    resumed.sources_changed(&[west(SourceState::Evicted, false)]);
    assert!(
        is_settled(&resumed),
        "this hub goes on with the history it ended in"
    );

    let mut anew = desired.clone();
    anew.welcome(&welcome(1, false));
    anew.sources_changed(&[west(SourceState::Evicted, false)]);
    assert!(!is_settled(&anew), "this hub may have another history");

    let mut back = resumed.clone();
    back.sources_changed(&[west(SourceState::Live, false)]);
    back.welcome(&welcome(1, true));
    back.sources_changed(&[west(SourceState::Evicted, false)]);
    assert!(!is_settled(&back), "it was a member in between");

    // Sources are sent after the objects recorded with them.
    let came = DesiredChange::Slice(Arc::new(slice("west", "b", "10.2.0.1")));
    resumed.items(1, [item(6, came.clone())]);
    assert!(!is_settled(&resumed));
    desired.items(1, [item(6, came)]);
    desired.welcome(&welcome(1, true));
    desired.sources_changed(&[west(SourceState::Evicted, false)]);
    assert!(!is_settled(&desired));
}

#[test]
fn a_source_concerns_somebody_when_its_settledness_changes_and_then_alone() {
    let settling = |clusters: &[&str], all| {
        let clusters = clusters.iter().map(|name| cluster(name)).collect();
        Touched::Sources(Settling { clusters, all })
    };
    let state = |name: &str, state, listed| Source {
        state,
        ended: state == SourceState::Left,
        ..source(name, listed)
    };
    let mut desired = Desired::default();
    let first = [source("east", true), source("west", false)];
    assert_eq!(desired.sources_changed(&first), settling(&["east"], false));
    assert_eq!(desired.sources_changed(&first), Touched::none());
    // Plans do not depend on whether a cluster answers.
    for live in [SourceState::Suspect, SourceState::Lost, SourceState::Live] {
        assert_eq!(
            desired.sources_changed(&[state("east", live, true)]),
            Touched::none()
        );
        assert_eq!(
            desired.sources_changed(&[state("west", live, false)]),
            Touched::none()
        );
    }
    assert_eq!(
        desired.sources_changed(&[source("west", true)]),
        settling(&["west"], true)
    );
    let gone = state("west", SourceState::Left, false);
    assert_eq!(
        desired.sources_changed(&[gone]),
        Touched::none(),
        "it stays settled"
    );
    assert_eq!(
        desired.sources_changed(&[source("new", false)]),
        settling(&[], true)
    );
}

#[test]
fn slices_are_found_by_their_service_alone() {
    let mut other = slice("east", "z", "10.9.0.1");
    other.key.service = ServiceKey::new("shop", "cart-2").unwrap();
    let changes = [slice("0", "a", "10.1.0.1"), slice("zz", "b", "10.1.0.2"), other]
        .map(|slice| DesiredChange::Slice(Arc::new(slice)));
    let desired = told(&[], changes.to_vec());
    assert_eq!(desired.slices(&key()).count(), 2);
    assert_eq!(desired.services().len(), 2);
}

#[test]
fn removals_are_recorded_one_by_one() {
    let slices = [slice("east", "a", "10.1.0.1"), slice("east", "b", "10.1.0.2")];
    let mut desired = told(&[], both(import(&[port("http", 80)], &["east"]), &slices));
    for (revision, slice) in (6..).zip(&slices) {
        let removed = DesiredChange::Removed(DesiredKey::Slice(slice.key.clone()));
        desired.items(1, [item(revision, removed)]);
    }
    assert_eq!(desired.removed_slices(&key()).count(), 2);
}

#[test]
fn an_interest_that_stays_keeps_what_is_held() {
    let mut desired = told(&[source("east", true)], vec![wanted()]);
    assert_eq!(desired.complete_epoch(), Some(epoch(1)));
    desired.interest(&interest(2, &["shop", "bank"]));
    assert!(desired.import(&key()).is_some() && desired.is_complete("shop"));
    assert_eq!(desired.cursor(), None, "of bank nothing was heard");
    desired.interest(&Interest {
        generation: 3,
        namespaces: Namespaces::All,
    });
    assert!(desired.import(&key()).is_some());
    desired.interest(&interest(4, &["bank"]));
    assert!(desired.import(&key()).is_none());
    assert_eq!(Desired::default().complete_epoch(), None);
}

#[test]
fn the_cursor_moves_but_not_during_a_snapshot() {
    let mut desired = told(&[source("east", true)], vec![wanted()]);
    desired.up_to(&up_to(1, 1, 8));
    assert_eq!(desired.cursor(), Some(up_to(1, 1, 8).cursor));
    desired.snapshot_begin(epoch(1));
    desired.up_to(&up_to(1, 1, 9));
    assert_eq!(desired.cursor(), Some(up_to(1, 1, 8).cursor));
}

#[test]
fn a_cursor_of_another_epoch_than_what_is_held_is_not_taken_over() {
    let mut desired = told(&[source("east", true)], vec![wanted()]);
    let before = desired.cursor();
    desired.up_to(&up_to(2, 1, 9));
    assert_eq!(desired.cursor(), before);
}
