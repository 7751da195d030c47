//! The mass-withdrawal hold: which members are on hold, what counts of them, and what ends it.

use std::{collections::BTreeSet, sync::Arc};

use model::{
    Endpoint, EndpointSlice, Export, Fact, FactKey, ListingGroup, ServiceKey, SessionId, UnixMillis,
    policy::Brake,
};

use super::{
    given::{
        Folded, admit, cluster, empty, endpoint, evict, export, exported, given_members, service, slice,
        slice_key,
    },
    given::{policy, put},
};
use crate::{Command, Connectivity, Departure, DerivedKey, FIRST_FOLD_VERSION, Rejection, State, apply};

const SERVICES: [&str; 6] = ["shop/cart", "shop/a", "shop/b", "shop/c", "shop/d", "shop/e"];

fn exported_as(name: &str, seconds: u64) -> Fact {
    exported(Export {
        service: service(name),
        ..export(seconds)
    })
}

/// East exports six services, the cart with an endpoint, and has listed them; west exports the cart, later.
fn six() -> Folded {
    let mut folded = given_members(&["east", "west"]).after(Command::AdoptFoldVersion {
        from: FIRST_FOLD_VERSION,
    });
    for name in SERVICES {
        folded = folded.and("east", exported_as(name, 1));
    }
    let folded = folded.and("east", slice("one", &["http"]));
    let folded = listed(folded, &SERVICES, &["one"]);
    folded.and("west", exported(export(2)))
}

/// East has listed these exports, and these slices of the cart.
fn listed(folded: Folded, exports: &[&str], slices: &[&str]) -> Folded {
    let exports = exports.iter().map(|name| FactKey::Export(service(name)));
    let slices = slices.iter().map(|name| FactKey::EndpointSlice(slice_key(name)));
    folded.after(Command::CompleteListing {
        cluster: cluster("east"),
        session: SessionId(8),
        sequence: 2,
        group: ListingGroup::Exports,
        seen: Arc::new(exports.chain(slices).collect()),
    })
}

/// A slice of the cart with one endpoint.
fn slice_of(name: &str, endpoint: Endpoint) -> Fact {
    let Fact::EndpointSliceUpserted(one) = slice(name, &["http"]) else {
        unreachable!("a slice")
    };
    Fact::EndpointSliceUpserted(Arc::new(EndpointSlice {
        endpoints: [endpoint].into(),
        ..(*one).clone()
    }))
}

fn brake(folded: &Folded, names: &[&str]) -> Command {
    Command::Brake {
        cluster: cluster("east"),
        taking_back: names.iter().map(|name| service(name)).collect(),
        at: folded.state.recorded_at(),
    }
}

fn release(operator: &str) -> Command {
    Command::ReleaseBrake {
        cluster: cluster("east"),
        operator: operator.into(),
    }
}

fn removed(name: &str) -> Fact {
    Fact::ExportRemoved(service(name))
}

/// An export goes with its slices, in the order in which agents say so.
fn goes(folded: Folded, name: &str) -> Folded {
    let folded = folded.and("east", removed(name));
    if name == "shop/cart" {
        return folded.and("east", Fact::EndpointSliceRemoved(slice_key("one")));
    }
    folded
}

/// East withdraws everything, and is on hold before the first of it.
fn held() -> Folded {
    let folded = six();
    let brake = brake(&folded, &SERVICES);
    let folded = folded.after(brake);
    SERVICES.into_iter().fold(folded, goes)
}

fn held_exports(state: &State) -> Vec<ServiceKey> {
    let member = state.member(&cluster("east")).unwrap();
    member.taken_back().held_exports().cloned().collect()
}

/// Returns whether the cart is imported from east, and whether its endpoint is.
fn counts(folded: &Folded) -> (bool, bool) {
    let import = folded
        .import()
        .is_some_and(|import| import.clusters.contains_key(&cluster("east")));
    (import, folded.imported_slice("east", "one").is_some())
}

/// A restored state and a replay of the log are the same.
fn survives(folded: &Folded) {
    let rows = folded.state.snapshot_rows();
    assert_eq!(State::restore(rows).as_ref(), Ok(&folded.state));
    let mut replayed = empty();
    for event in &folded.events {
        apply(&mut replayed, event);
    }
    assert_eq!(replayed, folded.state);
}

#[test]
fn what_a_held_member_takes_back_is_no_fact_any_more_and_counts_all_the_same() {
    let folded = held();
    let east = folded.state.member(&cluster("east")).unwrap();
    assert_eq!((east.facts().len(), held_exports(&folded.state).len()), (0, 6));
    assert_eq!(counts(&folded), (true, true));
    let explained = folded.state.explain(&service("shop/cart"));
    assert_eq!(
        explained.candidates[0].cluster,
        cluster("east"),
        "it keeps its place"
    );
    assert!(explained.candidates[0].held_since.is_some());
    assert!(
        explained.summary.contains("east took its export back"),
        "{}",
        explained.summary
    );
    assert_eq!(explained.candidates[1].held_since, None);
    survives(&folded);
}

#[test]
fn half_of_the_exports_engage_the_brake_and_a_few_do_not() {
    let folded = six();
    folded.when(brake(&folded, &SERVICES[..4])).then_nothing();
    let engaged = Fact::BrakeEngaged {
        removed: 5,
        exports: 6,
    };
    folded
        .when(brake(&folded, &SERVICES[..5]))
        .then("east", &[engaged]);
    let strangers = ["shop/x", "shop/y", "shop/z"];
    let names: Vec<&str> = SERVICES[..4].iter().chain(&strangers).copied().collect();
    folded.when(brake(&folded, &names)).then_nothing();
    held().when(brake(&folded, &SERVICES)).then_nothing();
    let off = six().after(put("brake: {enabled: false}"));
    off.when(brake(&off, &SERVICES)).then_nothing();
}

/// One by one, each in a message of its own: those that went before the brake was engaged come back.
#[test]
fn what_went_a_moment_before_is_held_with_the_rest() {
    let mut folded = six().after(put("brake: {within: 60s}"));
    let mut lacking = 0;
    for name in SERVICES {
        let brake = brake(&folded, &[name]);
        folded = goes(folded.after(brake), name);
        lacking += usize::from(counts(&folded) != (true, true));
        survives(&folded);
    }
    assert_eq!(lacking, 4, "until the fifth");
    assert_eq!(held_exports(&folded.state).len(), 6);
    assert_eq!(counts(&folded), (true, true));
}

#[test]
fn what_went_long_before_is_not() {
    let mut folded = six().after(put("brake: {within: 3s}"));
    for name in SERVICES {
        // A second passes with every event.
        let brake = brake(&folded, &[name]);
        folded = goes(folded.after(brake), name);
    }
    assert!(held_exports(&folded.state).is_empty());
    assert_eq!(counts(&folded), (false, false));
    survives(&folded);
    let remembered = folded
        .state
        .member(&cluster("east"))
        .unwrap()
        .taken_back()
        .facts();
    assert!(remembered.len() < SERVICES.len(), "{remembered:?}");
}

#[test]
fn released_it_goes_as_if_it_had_never_been_held() {
    let folded = held();
    let released = Fact::BrakeReleased {
        operator: "ann".into(),
    };
    folded.when(release("ann")).then("east", &[released]);
    let folded = folded.after(release("ann"));
    assert_eq!(counts(&folded), (false, false));
    assert!(held_exports(&folded.state).is_empty());
    folded.when(release("ann")).then_nothing();
    survives(&folded);
    let unheld = SERVICES
        .into_iter()
        .fold(six().after(put("brake: {enabled: false}")), goes);
    let content = |state: &State| {
        let all = state.all_derived();
        all.map(|(key, derived)| (key.clone(), derived.content.clone()))
            .collect::<Vec<_>>()
    };
    for ((key, one), (other, content)) in content(&folded.state).iter().zip(content(&unheld.state)) {
        assert!(*key == other && one.same_content(&content), "{key}");
    }
    assert_eq!(content(&folded.state).len(), content(&unheld.state).len());
    let stranger = Command::ReleaseBrake {
        cluster: cluster("north"),
        operator: "ann".into(),
    };
    let rejection = folded.when(stranger).then_rejected();
    assert!(matches!(rejection, Rejection::NotAMember { .. }));
}

#[test]
fn what_comes_back_is_not_held_and_the_last_one_releases() {
    let mut folded = held();
    folded = folded.and("east", exported_as("shop/cart", 3));
    assert_eq!(counts(&folded), (true, false), "it has no slice yet");
    assert_eq!(held_exports(&folded.state).len(), 5);
    survives(&folded);
    folded = folded.and("east", slice("two", &["http"]));
    assert!(folded.imported_slice("east", "two").is_some());
    for name in &SERVICES[1..5] {
        folded = folded.and("east", exported_as(name, 3));
    }
    let last = super::given::observe("east", exported_as("shop/e", 3));
    let released = Fact::BrakeReleased { operator: "".into() };
    folded
        .when(last.clone())
        .then("east", &[exported_as("shop/e", 3), released]);
    folded = folded.after(last);
    assert_eq!(
        folded
            .state
            .member(&cluster("east"))
            .unwrap()
            .taken_back()
            .brake(),
        None
    );
    assert_eq!(counts(&folded), (true, false));
    survives(&folded);
}

#[test]
fn what_is_taken_back_while_it_is_held_is_held_too_and_a_slice_of_an_export_that_stands_is_not() {
    let folded = six();
    let brake = brake(&folded, &SERVICES[1..]);
    let folded = SERVICES[1..]
        .iter()
        .fold(folded.after(brake), |folded, name| goes(folded, name));
    let folded = folded.and("east", slice("two", &["http"]));
    let folded = folded.and("east", Fact::EndpointSliceRemoved(slice_key("two")));
    assert!(folded.imported_slice("east", "two").is_none());
    assert_eq!(counts(&folded), (true, true));
    let folded = goes(folded, "shop/cart");
    assert_eq!(counts(&folded), (true, true), "later, and held");
    survives(&folded);
}

#[test]
fn a_member_that_is_evicted_or_leaves_takes_everything_with_it() {
    let mut left = held();
    left.left("east");
    for folded in [held().after(evict("east")), left] {
        assert_eq!(counts(&folded), (false, false));
        assert!(held_exports(&folded.state).is_empty());
        assert!(
            folded
                .state
                .derived(&DerivedKey::Import(service("shop/a")))
                .is_none()
        );
        survives(&folded);
    }
}

/// Time passes for all: one member's withdrawals are forgotten when another is heard.
#[test]
fn nothing_is_remembered_for_longer_than_it_counts() {
    let mut folded = goes(six().after(put("brake: {within: 5s}")), "shop/cart");
    let remembered = |folded: &Folded| {
        let member = folded.state.member(&cluster("east")).unwrap();
        member.taken_back().facts().len()
    };
    assert_eq!(remembered(&folded), 2);
    for seconds in 3..9 {
        folded = folded.and("west", exported_as("shop/w", seconds));
    }
    assert_eq!(remembered(&folded), 0);
    assert!(folded.state.taking_back.is_empty());
    let off = goes(six().after(put("brake: {enabled: false}")), "shop/cart");
    assert_eq!(remembered(&off), 0, "nothing could be held");
}

#[test]
fn a_slice_that_went_before_its_export_is_not_brought_back_with_it() {
    let folded = six().and("east", slice("old", &["http"]));
    let folded = folded.and("east", Fact::EndpointSliceRemoved(slice_key("old")));
    let brake = brake(&folded, &SERVICES);
    let folded = SERVICES.into_iter().fold(folded.after(brake), goes);
    assert_eq!(counts(&folded), (true, true));
    assert!(folded.imported_slice("east", "old").is_none());
}

#[test]
fn a_lost_member_that_is_held_is_withdrawn_as_any_other() {
    let west = slice("two", &["http"]);
    let folded = held().and("west", west);
    let lost = Command::Connectivity {
        cluster: cluster("east"),
        to: Connectivity::Lost,
    };
    let withdraw = Command::Withdraw {
        cluster: cluster("east"),
    };
    let folded = folded.after(lost).after(withdraw);
    assert_eq!(counts(&folded), (true, false));
    survives(&folded);
}

#[test]
fn an_epoch_that_begins_goes_on_holding() {
    let mut folded = held();
    folded.state.begin_epoch();
    assert_eq!(counts(&folded), (true, true));
    let rows = folded.state.snapshot_rows();
    assert_eq!(State::restore(rows).as_ref(), Ok(&folded.state));
}

#[test]
fn time_that_stands_before_the_first_window_forgets_nothing() {
    let folded = six();
    let asked = Command::Brake {
        cluster: cluster("east"),
        taking_back: BTreeSet::from([service("shop/cart")]),
        at: UnixMillis(1),
    };
    folded.when(asked).then_nothing();
    assert_eq!(folded.state.brake(), Brake::default());
}

#[test]
fn a_policy_that_is_tried_says_whom_it_would_let_go_and_what_would_become_of_lost_members() {
    let folded = held();
    let outcome = folded.state.outcome(&policy("brake: {enabled: false}"));
    assert_eq!(outcome.released, [(cluster("east"), 6)]);
    assert!(outcome.brake.is_some() && outcome.loss.is_none());
    let outcome = folded.state.outcome(&policy("brake: {percent: 100}"));
    assert!(outcome.released.is_empty(), "it is held already");
    let outcome = folded.state.outcome(&policy("loss: {action: retain}"));
    assert!(outcome.brake.is_none() && outcome.loss.is_some() && outcome.withdrawn.is_empty());
}

/// Nobody knows whether anything is behind them: they are sent only where nobody else serves.
#[test]
fn endpoints_that_are_held_yield_to_ready_ones_of_another_member_and_to_no_others() {
    let folded = held();
    assert_eq!(counts(&folded), (true, true), "west has none");
    let not_ready = Endpoint {
        ready: Some(false),
        ..endpoint(2)
    };
    let folded = folded.and("west", slice_of("two", not_ready));
    assert_eq!(counts(&folded), (true, true), "west has none that is ready");
    let folded = folded.and("west", slice_of("two", endpoint(2)));
    assert_eq!(counts(&folded), (true, false), "west serves");
    survives(&folded);
    let gone = folded
        .clone()
        .and("west", Fact::EndpointSliceRemoved(slice_key("two")));
    assert_eq!(counts(&gone), (true, true), "west serves no more");
    survives(&gone);
    let back = folded.and("east", exported_as("shop/cart", 3));
    let back = back.and("east", slice("one", &["http"]));
    assert_eq!(counts(&back), (true, true), "it is reported again");
    survives(&back);
}

#[test]
fn endpoints_are_held_back_from_the_moment_in_which_their_export_is_taken_back() {
    let folded = six().and("west", slice_of("two", endpoint(2)));
    let brake = brake(&folded, &SERVICES);
    let folded = folded.after(brake);
    assert_eq!(counts(&folded), (true, true), "it is reported as yet");
    let folded = folded.and("east", removed("shop/cart"));
    assert_eq!(counts(&folded), (true, false));
    survives(&folded);
    // The slice is reported again before the export is.
    let folded = folded.and("east", slice_of("one", endpoint(3)));
    assert_eq!(counts(&folded), (true, false));
    survives(&folded);
    let folded = folded.and("east", exported_as("shop/cart", 3));
    assert_eq!(counts(&folded), (true, true));
    survives(&folded);
}

/// A leaving cluster answers until then; of one on hold nobody knows.
#[test]
fn endpoints_that_are_held_yield_to_those_of_a_member_that_is_to_leave_and_lost_ones_yield_to_them() {
    let depart = Command::Depart {
        cluster: cluster("west"),
        departure: Departure::Ordered {
            operator: "ann".into(),
            at: UnixMillis(1_000),
            after_millis: 3_600_000,
            evicts: false,
        },
    };
    let folded = held().and("west", slice_of("two", endpoint(2)));
    let west = |folded: &Folded| folded.imported_slice("west", "two").is_some();
    let leaving = folded.clone().after(depart);
    assert_eq!((counts(&leaving), west(&leaving)), ((true, false), true));
    survives(&leaving);
    let lost = Command::Connectivity {
        cluster: cluster("west"),
        to: Connectivity::Lost,
    };
    let withdraw = Command::Withdraw {
        cluster: cluster("west"),
    };
    let lost = folded.after(lost).after(withdraw);
    assert_eq!((counts(&lost), west(&lost)), ((true, true), false));
    survives(&lost);
}

/// The words about addresses follow from the slices that count, whichever way an export came by them.
#[test]
fn an_export_that_comes_back_is_judged_by_the_slices_that_it_has_then() {
    let ranges = "members:\n- name: pods\n  members: [east]\n  endpoints: [192.168.0.0/16]";
    let left_out = |folded: &Folded| {
        let status = folded
            .state
            .export_status(&cluster("east"), &service("shop/cart"));
        !status.expect("it exports").left_out.is_empty()
    };
    let folded = six().after(put(ranges));
    let brake = brake(&folded, &SERVICES);
    let folded = SERVICES.into_iter().fold(folded.after(brake), goes);
    assert!(left_out(&folded), "held with an endpoint outside the ranges");
    survives(&folded);
    let inside = Endpoint {
        addresses: vec![[192, 168, 0, 1].into()],
        ..endpoint(1)
    };
    let back = folded.clone().and("east", exported_as("shop/cart", 3));
    assert!(!left_out(&back), "it has no slice");
    survives(&back);
    // Its slice is reported while it is on hold.
    let replaced = folded.and("east", slice_of("one", inside));
    assert!(!left_out(&replaced), "the slice has another endpoint");
    survives(&replaced);
}

/// An operator admits another cluster under the id of east.
fn rebuilt(folded: Folded) -> Folded {
    let folded = folded.after(Command::Rekey {
        cluster: cluster("east"),
        operator: "ann".into(),
        key: None,
        cluster_fingerprint: Some("rebuilt".into()),
    });
    folded.after(admit("east", 1, "rebuilt"))
}

#[track_caller]
fn only_the_new_export_may_be_there(folded: &Folded) {
    for name in SERVICES {
        let exporters: Vec<_> = folded.state.exporters(&service(name)).collect();
        assert!(!exporters.contains(&&cluster("east")), "{name} is back");
    }
    assert!(folded.imported_slice("east", "one").is_none());
    survives(folded);
}

#[test]
fn exports_of_a_cluster_that_was_rebuilt_stay_gone() {
    let folded = rebuilt(six()).and("east", exported_as("shop/new", 9));
    let folded = listed(folded, &["shop/new"], &[]);
    only_the_new_export_may_be_there(&folded);
    // A moment later one export of the new cluster is deleted.
    let brake = brake(&folded, &["shop/new"]);
    let folded = folded.after(brake).and("east", removed("shop/new"));
    only_the_new_export_may_be_there(&folded);
}

#[test]
fn a_hold_ends_with_the_cluster_that_it_was_engaged_for() {
    let folded = rebuilt(held());
    assert!(held_exports(&folded.state).is_empty() && folded.state.held.is_empty());
    only_the_new_export_may_be_there(&folded);
    // Its recent withdrawals are not remembered either.
    let folded = rebuilt(goes(six(), "shop/cart"));
    assert!(folded.state.taking_back.is_empty());
}

/// Until then the facts are those of the cluster that was there before.
#[test]
fn nothing_is_held_before_the_first_listing_of_an_incarnation() {
    let folded = rebuilt(six());
    folded.when(brake(&folded, &SERVICES)).then_nothing();
    let folded = SERVICES.into_iter().fold(folded, goes);
    assert!(folded.state.taking_back.is_empty());
    only_the_new_export_may_be_there(&folded);
}
