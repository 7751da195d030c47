//! The position up to which the sent objects are applied.

use std::collections::BTreeSet;

use model::Cursor;

use super::*;
use crate::plan::{
    end,
    progress::{End, POSITIONS_WAITING_MAX, Progress, Reach},
};

fn service(name: &str) -> ServiceKey {
    ServiceKey::new("shop", name).unwrap()
}

fn at(revision: u64) -> Cursor {
    up_to(1, 1, revision).cursor
}

fn sent(progress: &mut Progress, names: &[&str], revision: u64) -> bool {
    let services: BTreeSet<ServiceKey> = names.iter().map(|name| service(name)).collect();
    progress.received(&services, Some(at(revision)))
}

fn reach(progress: &Progress, now: u64) -> Reach {
    progress.reach(Some(epoch(1)), now)
}

#[track_caller]
fn stands_up_to(progress: &Progress, revision: Option<u64>) {
    assert_eq!(reach(progress, 0).applied.cursor, revision.map(at));
}

#[test]
fn a_position_is_reached_when_everything_before_it_stands() {
    let mut progress = Progress::default();
    sent(&mut progress, &["cart", "till"], 5);
    sent(&mut progress, &[], 6);
    stands_up_to(&progress, None);
    let began = progress.began();
    assert!(!progress.ended(&service("cart"), began, End::Stands, 0));
    assert!(!progress.ended(&service("till"), began, End::Open, 0));
    stands_up_to(&progress, None);
    assert!(progress.ended(&service("till"), began, End::Stands, 0));
    stands_up_to(&progress, Some(6));
    assert!(
        !sent(&mut progress, &[], 7),
        "nothing was sent: it can be told any time"
    );
    stands_up_to(&progress, Some(7));
}

#[test]
fn work_that_began_before_something_was_sent_does_not_stand_for_it() {
    let mut progress = Progress::default();
    sent(&mut progress, &["cart"], 5);
    let began = progress.began();
    sent(&mut progress, &["cart"], 6);
    progress.ended(&service("cart"), began, End::Stands, 0);
    stands_up_to(&progress, Some(5));
    progress.ended(&service("cart"), progress.began(), End::Stands, 0);
    stands_up_to(&progress, Some(6));
}

#[test]
fn a_service_that_never_rests_holds_no_earlier_position_back() {
    let mut progress = Progress::default();
    for revision in 1..1_000 {
        sent(&mut progress, &["cart"], revision);
        let began = progress.began();
        sent(&mut progress, &["cart"], 10_000 + revision);
        progress.ended(&service("cart"), began, End::Stands, 0);
        stands_up_to(&progress, Some(revision));
    }
}

#[test]
fn what_is_parked_is_counted_with_its_age_and_holds_nothing_back() {
    let mut progress = Progress::default();
    sent(&mut progress, &["cart", "till"], 5);
    assert!(progress.ended(&service("cart"), progress.began(), End::Parked, 100));
    assert!(progress.ended(&service("till"), progress.began(), End::Parked, 300));
    assert!(
        !progress.ended(&service("cart"), progress.began(), End::Parked, 900),
        "it still is"
    );
    stands_up_to(&progress, Some(5));
    let applied = reach(&progress, 1_000).applied;
    assert_eq!((applied.parked, applied.oldest_parked_age_millis), (2, 900));
    sent(&mut progress, &["cart"], 6);
    stands_up_to(&progress, Some(6));
    assert!(progress.ended(&service("cart"), progress.began(), End::Stands, 1_000));
    let applied = reach(&progress, 1_000).applied;
    assert_eq!((applied.parked, applied.oldest_parked_age_millis), (1, 700));
    assert!(progress.ended(&service("till"), progress.began(), End::Stands, 1_000));
    assert_eq!(reach(&progress, 2_000).applied.oldest_parked_age_millis, 0);
}

#[test]
fn what_was_sent_while_a_parked_service_was_worked_on_is_waited_for() {
    let mut progress = Progress::default();
    sent(&mut progress, &["cart"], 5);
    progress.ended(&service("cart"), progress.began(), End::Parked, 0);
    let began = progress.began();
    progress.received(&BTreeSet::from([service("cart")]), None);
    progress.ended(&service("cart"), began, End::Stands, 0);
    sent(&mut progress, &[], 6);
    stands_up_to(&progress, Some(5));
    progress.ended(&service("cart"), progress.began(), End::Stands, 0);
    stands_up_to(&progress, Some(6));
}

#[test]
fn a_bounded_number_of_positions_waits_and_the_newest_is_not_lost() {
    let mut progress = Progress::default();
    for revision in 1..=2 * POSITIONS_WAITING_MAX as u64 {
        sent(&mut progress, &["cart"], revision);
    }
    progress.ended(&service("cart"), progress.began(), End::Stands, 0);
    stands_up_to(&progress, Some(2 * POSITIONS_WAITING_MAX as u64));
}

#[test]
fn a_position_of_another_epoch_is_not_told() {
    let mut progress = Progress::default();
    sent(&mut progress, &[], 5);
    assert_eq!(progress.reach(Some(epoch(2)), 0).applied.cursor, None);
    assert_eq!(progress.reach(None, 0).applied.cursor, None);
}

#[test]
fn only_what_was_sent_and_reached_is_news() {
    let mut progress = Progress::default();
    let changes = |progress: &Progress| reach(progress, 0).changes;
    sent(&mut progress, &[], 1);
    assert_eq!(changes(&progress), 0);
    sent(&mut progress, &["cart"], 2);
    assert_eq!(changes(&progress), 0);
    progress.ended(&service("cart"), progress.began(), End::Stands, 0);
    assert_eq!(changes(&progress), 1);
    progress.ended(&service("till"), progress.began(), End::Stands, 0);
    assert_eq!(changes(&progress), 1, "what people changed here is none");
}

#[test]
fn what_was_reached_says_nothing_of_what_is_told_anew() {
    let mut progress = Progress::default();
    sent(&mut progress, &["cart"], 9);
    progress.ended(&service("cart"), progress.began(), End::Stands, 0);
    stands_up_to(&progress, Some(9));
    progress.begin_anew();
    stands_up_to(&progress, None);
    sent(&mut progress, &["cart"], 7);
    stands_up_to(&progress, None);
    progress.ended(&service("cart"), progress.began(), End::Stands, 0);
    stands_up_to(&progress, Some(7));
}

/// Wanted as headless, while one of its two clusters has not listed since it joined again.
#[test]
fn what_stands_instead_of_another_type_is_not_what_was_sent() {
    let mut model = Model::settled(&east_and_west());
    let ended = |model: &Model, desired: &Desired| {
        let plan = plan(desired, &model.view, &config(), &key());
        assert!(plan.is_settled(), "{plan:?}");
        end(desired, &model.view, &key(), &plan)
    };
    assert_eq!(ended(&model, &east_and_west()), End::Stands);
    let mut headless = import(&[port("http", 80)], &["east", "west"]);
    headless.service_type = ServiceType::Headless;
    let slices = [slice("east", "a", "10.1.0.1"), slice("west", "b", "10.2.0.1")];
    let wanted = |west| {
        let sources = [source("east", true), source("west", west), source(OWN, true)];
        told(&sources, both(headless.clone(), &slices))
    };
    assert_eq!(ended(&model, &wanted(false)), End::Open);
    model.settle(&wanted(true));
    assert_eq!(ended(&model, &wanted(true)), End::Stands);
}

#[test]
fn what_is_not_known_is_not_there_and_a_taken_name_is_parked() {
    let (desired, model) = (east_and_west(), Model::settled(&east_and_west()));
    let ended = |spoil: fn(&mut ServiceView)| {
        let mut view = model.view.clone();
        spoil(&mut view);
        end(&desired, &view, &key(), &plan(&desired, &view, &config(), &key()))
    };
    assert_eq!(ended(|_| {}), End::Stands);
    assert_eq!(ended(|view| view.known.slices = false), End::Open);
    assert_eq!(ended(|view| view.namespace = NamespaceState::Unknown), End::Open);
    assert_eq!(ended(|view| view.namespace = NamespaceState::Absent), End::Stands);
    assert_eq!(ended(|view| view.derived = Found::Stranger), End::Parked);
}
