//! Tests of deletions after the Lease of a source expired, and of what stays.

use model::policy::LossAction;

use super::*;
use crate::plan::{Expired, expire};

fn expired(of: &[(&str, LossAction)]) -> Expired {
    of.iter().map(|(name, action)| (cluster(name), *action)).collect()
}

fn gone(names: &[&str]) -> Expired {
    expired(
        &names
            .iter()
            .map(|name| (*name, LossAction::Withdraw))
            .collect::<Vec<_>>(),
    )
}

fn expiry(model: &Model, expired: &Expired) -> Vec<Action> {
    expire(expired, &model.view, &cluster(OWN), &key()).actions
}

fn let_go(model: &mut Model, expired: &Expired) {
    for action in expiry(model, expired) {
        model.perform(action);
    }
    assert_eq!(expiry(model, expired), [], "it is all gone at once");
}

/// The worst case: it removes an object that somebody still exports.
#[test]
fn only_what_came_from_an_expired_source_goes() {
    let mut model = Model::settled(&east_and_west());
    assert_eq!(expiry(&model, &Expired::new()), []);
    assert_eq!(expiry(&model, &gone(&["south"])), []);
    let_go(&mut model, &gone(&["east"]));
    assert_eq!(model.slices(), [("west".into(), "10.2.0.1".into())]);
    // A cluster that is away changes nobody's addresses, ports or clusters.
    let clusters = [cluster("east"), cluster("west")].into();
    assert_eq!(model.import().status.clusters, clusters);
}

#[test]
fn nothing_goes_under_retain() {
    let model = Model::settled(&east_and_west());
    let retained = expired(&[("east", LossAction::Retain), ("west", LossAction::Retain)]);
    assert_eq!(expiry(&model, &retained), []);
}

#[test]
fn what_is_left_empty_goes_in_the_order_of_a_removal() {
    let model = Model::settled(&east_and_west());
    let actions = expiry(&model, &gone(&["east", "west"]));
    assert_eq!(
        words(&actions),
        ["delete slice", "delete slice", "delete import", "delete service"]
    );
}

/// An agent died after the slices: its successor continues.
#[test]
fn a_removal_that_was_interrupted_goes_on() {
    let mut model = Model::settled(&east_and_west());
    let all = gone(&["east", "west"]);
    for action in expiry(&model, &all).into_iter().take(3) {
        model.perform(action);
    }
    assert_eq!(words(&expiry(&model, &all)), ["delete service"]);
}

#[test]
fn endpoints_turn_not_ready_once_and_stay() {
    let mut model = Model::settled(&east_and_west());
    let not_ready = expired(&[("east", LossAction::NotReady)]);
    assert_eq!(words(&expiry(&model, &not_ready)), ["slice"]);
    let_go(&mut model, &not_ready);
    let ready = model.view.our_slices().map(|(_, slice)| {
        let source = slice
            .content
            .source_cluster
            .as_ref()
            .expect("a source")
            .to_string();
        (source, slice.content.endpoints[0].endpoint.is_ready())
    });
    let ready: BTreeMap<String, bool> = ready.collect();
    assert_eq!(ready, [("east".into(), false), ("west".into(), true)].into());
}

#[test]
fn this_cluster_never_expires_and_keeps_the_import() {
    let mut model = Model::new();
    model.export(&[port("http", 80)], "10.3.0.1");
    let slices = [slice("east", "a", "10.1.0.1")];
    let desired = told(
        &[source("east", true), source(OWN, true)],
        both(import(&[port("http", 80)], &["east", OWN]), &slices),
    );
    model.settle(&desired);
    let_go(&mut model, &gone(&["east", OWN]));
    assert_eq!(model.slices(), [(OWN.into(), "10.3.0.1".into())]);
    assert!(model.view.import.ours().is_some());
}

#[test]
fn what_is_not_known_or_not_ours_stays() {
    let all = gone(&["east", "west"]);
    let model = Model::settled(&east_and_west());
    let unknown: [fn(&mut ServiceView); 5] = [
        |view| view.known.imports = false,
        |view| view.known.services = false,
        |view| view.known.slices = false,
        |view| view.namespace = NamespaceState::Unknown,
        |view| view.namespace = NamespaceState::Terminating,
    ];
    for forget in unknown {
        let mut model = model.clone();
        forget(&mut model.view);
        assert_eq!(expiry(&model, &all), []);
    }
    let mut strangers_only = Model::new();
    strangers_only.view.slices = strangers(&east_and_west());
    strangers_only.view.import = Found::Stranger;
    assert_eq!(expiry(&strangers_only, &all), []);
}

/// The hub is away, and the leader remembers what it sent last.
#[test]
fn what_expired_is_not_made_again_before_its_lease_moves() {
    for expired in [gone(&["east"]), gone(&["east", "west"])] {
        let mut desired = east_and_west();
        let mut model = Model::settled(&desired);
        let before = model.slices();
        desired.session_ended();
        desired.expire(expired.clone());
        let_go(&mut model, &expired);
        model.done.clear();
        model.settle(&desired);
        assert_eq!(model.done, [], "{expired:?}");
        // It moves again.
        desired.expire(Expired::new());
        model.settle(&desired);
        assert_eq!(model.slices(), before);
        assert!(model.view.import.ours().is_some() && model.view.derived.ours().is_some());
    }
}

#[test]
fn what_turned_not_ready_is_not_made_ready_before_its_lease_moves() {
    let mut desired = east_and_west();
    let mut model = Model::settled(&desired);
    let not_ready = expired(&[("east", LossAction::NotReady), ("west", LossAction::NotReady)]);
    desired.expire(not_ready.clone());
    let_go(&mut model, &not_ready);
    model.done.clear();
    model.settle(&desired);
    assert_eq!(model.done, []);
    desired.expire(Expired::new());
    model.settle(&desired);
    assert_eq!(words(&model.done), ["slice", "slice"]);
}

#[test]
fn only_a_hub_that_speaks_and_has_told_everything_confirms() {
    let mut desired = Desired::default();
    assert!(!desired.is_confirmed());
    desired.interest(&interest(1, &["shop"]));
    desired.welcome(&welcome(1, false));
    desired.snapshot_begin(epoch(1));
    assert!(!desired.is_confirmed(), "it is not told yet");
    desired.snapshot_complete(&up_to(1, 1, 5));
    assert!(desired.is_confirmed());
    desired.session_ended();
    assert!(!desired.is_confirmed(), "nobody speaks");
    desired.welcome(&welcome(1, true));
    assert!(desired.is_confirmed(), "it goes on where it was");
    desired.welcome(&welcome(2, false));
    assert!(!desired.is_confirmed());
}
