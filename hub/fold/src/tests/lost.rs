//! Members that stay lost: what becomes of their endpoints, and of whose do not.

use std::sync::Arc;

use model::{Endpoint, EndpointSlice, EndpointView, Fact, Revision};

use super::{
    given::put,
    given::{Folded, cluster, endpoint, export, exported, given_members, service, slice},
};
use crate::{Command, Connectivity, DerivedKey};

fn lost(id: &str) -> Command {
    Command::Connectivity {
        cluster: cluster(id),
        to: Connectivity::Lost,
    }
}

fn live(id: &str) -> Command {
    Command::Connectivity {
        cluster: cluster(id),
        to: Connectivity::Live,
    }
}

fn withdraw(id: &str) -> Command {
    Command::Withdraw { cluster: cluster(id) }
}

/// East and west export the cart with an endpoint each, and both are live.
fn both() -> Folded {
    let with = |folded: Folded, id: &str, seconds| {
        let folded = folded.and(id, exported(export(seconds)));
        folded.and(id, slice("one", &["http"]))
    };
    with(with(given_members(&["east", "west"]), "east", 1), "west", 2)
}

fn without_east() -> Folded {
    both().after(lost("east")).after(withdraw("east"))
}

/// A slice of `shop/cart` whose endpoint is not ready.
fn not_ready(name: &str) -> Fact {
    let Fact::EndpointSliceUpserted(ready) = slice(name, &["http"]) else {
        unreachable!("a slice")
    };
    let endpoint = Endpoint {
        ready: Some(false),
        ..endpoint(1)
    };
    Fact::EndpointSliceUpserted(Arc::new(EndpointSlice {
        endpoints: [endpoint].into(),
        ..(*ready).clone()
    }))
}

fn holds(folded: &Folded) -> (bool, bool) {
    let has = |id| folded.imported_slice(id, "one").is_some();
    (has("east"), has("west"))
}

#[test]
fn only_who_is_lost_is_withdrawn_and_once() {
    both().when(withdraw("east")).then_nothing();
    let folded = both().after(lost("east"));
    folded
        .when(withdraw("east"))
        .then("east", &[Fact::MemberWithdrawn]);
    let folded = both().after(lost("east")).after(withdraw("east"));
    folded.when(withdraw("east")).then_nothing();
}

#[test]
fn endpoints_of_who_stays_lost_are_taken_back_and_its_export_keeps_its_place() {
    let folded = without_east();
    assert_eq!(holds(&folded), (false, true));
    let import = folded.import().expect("imported");
    assert!(import.clusters.contains_key(&cluster("east")));
    let explained = folded.state.explain(&service("shop/cart"));
    assert_eq!(explained.candidates[0].cluster, cluster("east"), "the oldest");
    let folded = folded.after(live("east"));
    assert_eq!(holds(&folded), (true, true));
}

#[test]
fn the_last_ready_endpoints_stay_whoever_has_them() {
    let mut folded = without_east().and("west", not_ready("one"));
    assert_eq!(holds(&folded), (true, true), "nobody else answers");
    folded = folded.and("west", slice("one", &["http"]));
    assert_eq!(holds(&folded), (false, true));
    folded = folded.after(lost("west"));
    assert_eq!(holds(&folded), (false, true), "lost is not withdrawn");
    folded = folded.after(withdraw("west"));
    assert_eq!(holds(&folded), (true, true), "nobody is left");
    folded = folded.after(live("east"));
    assert_eq!(holds(&folded), (true, false));
}

#[test]
fn the_policy_says_what_withdrawing_means_and_may_change_its_mind() {
    let mut folded = without_east();
    let ready = |folded: &Folded| {
        let slice = folded.imported_slice("east", "one").expect("held");
        slice.endpoints.iter().all(EndpointView::is_ready)
    };
    folded.carry_out(&put("loss: {action: notReady}")).unwrap();
    assert!(!ready(&folded));
    folded.carry_out(&put("loss: {action: retain}")).unwrap();
    assert!(ready(&folded));
    folded.carry_out(&put("loss: {action: withdraw}")).unwrap();
    assert_eq!(holds(&folded), (false, true));
}

/// Some proxies send to endpoints that serve while none is ready: one that is not ready because its cluster is lost does
/// neither.
#[test]
fn endpoints_of_a_lost_member_that_are_not_ready_do_not_serve_either() {
    let draining = Endpoint {
        ready: Some(false),
        serving: Some(true),
        terminating: Some(true),
        ..endpoint(2)
    };
    let Fact::EndpointSliceUpserted(one) = slice("one", &["http"]) else {
        unreachable!("a slice")
    };
    let both_kinds = EndpointSlice {
        endpoints: [endpoint(1), draining].into(),
        ..(*one).clone()
    };
    let folded = both().and("east", Fact::EndpointSliceUpserted(Arc::new(both_kinds)));
    let folded = folded.after(put("loss: {action: notReady}"));
    let folded = folded.after(lost("east")).after(withdraw("east"));
    let held = folded.imported_slice("east", "one").expect("it is not withdrawn");
    let conditions = held
        .endpoints
        .iter()
        .map(|one| (one.ready(), one.serving(), one.terminating()));
    assert_eq!(
        conditions.collect::<Vec<_>>(),
        [
            (Some(false), Some(false), None),
            (Some(false), Some(false), Some(true))
        ]
    );
    let back = folded.after(live("east"));
    let held = back.imported_slice("east", "one").expect("it counts again");
    let conditions = held.endpoints.iter().map(|one| (one.is_ready(), one.serving()));
    assert_eq!(
        conditions.collect::<Vec<_>>(),
        [(true, None), (false, Some(true))]
    );
}

#[test]
fn who_leaves_or_joins_again_is_not_withdrawn_any_more() {
    let mut folded = without_east();
    folded.evicted("east");
    assert!(!folded.state.member(&cluster("east")).unwrap().is_withdrawn());
    assert_eq!(holds(&folded), (false, true));
    let folded = without_east().after(lost("west")).after(withdraw("west"));
    assert_eq!(holds(&folded), (true, true));
    let mut folded = folded;
    folded.left("west");
    assert_eq!(
        holds(&folded),
        (true, false),
        "and its end is the last endpoints' reason to stay"
    );
}

#[test]
fn self_preservation_is_entered_and_left_once() {
    let preserve = |lost| Command::SelfPreserve { lost };
    let mut folded = both();
    assert_eq!(folded.state.self_preservation(), None);
    folded.carry_out(&preserve(None)).unwrap();
    let before = folded.state.revision();
    folded.carry_out(&preserve(Some(2))).unwrap();
    folded.carry_out(&preserve(Some(2))).unwrap();
    assert_eq!(folded.state.revision(), Revision(before.0 + 1));
    assert_eq!(folded.state.self_preservation(), Some(folded.state.recorded_at()));
    folded.carry_out(&preserve(None)).unwrap();
    assert_eq!(folded.state.self_preservation(), None);
}

#[test]
fn a_withdrawal_is_told_as_removals_and_an_unconcerned_service_is_left_alone() {
    let mut folded = both();
    folded.carry_out(&lost("east")).unwrap();
    let changes = folded.carry_out(&withdraw("east")).unwrap();
    let keys: Vec<_> = changes.iter().map(|change| &change.key).collect();
    let slice = DerivedKey::slice(&service("shop/cart"), &cluster("east"), "one");
    assert_eq!(keys, [&slice]);
    assert!(changes[0].content.is_none());
    let changes = folded.carry_out(&live("east")).unwrap();
    assert!(
        changes
            .iter()
            .any(|change| change.key == slice && change.content.is_some())
    );
}
