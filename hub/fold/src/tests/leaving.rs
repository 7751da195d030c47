//! Members that are to leave: what goes at once, what stays until then, what takes it back, and what follows.

use std::sync::Arc;

use model::{Endpoint, EndpointSlice, Fact, KeyFingerprint, UnixMillis};

use super::given::{
    Folded, admit, cluster, endpoint, evict, export, exported, given_members, key, service, slice,
};
use crate::{
    AdmissionRefusal, Command, Connectivity, Departure, LEAVING_LONGEST_MILLIS, MemberStatus, Rejection,
    State,
};

/// An operator has a member leave an hour after the first second.
fn drain(id: &str, evicts: bool) -> Command {
    Command::Depart {
        cluster: cluster(id),
        departure: Departure::Ordered {
            operator: "ann".into(),
            at: UnixMillis(1_000),
            after_millis: 3_600_000,
            evicts,
        },
    }
}

fn stay(id: &str) -> Command {
    Command::Depart {
        cluster: cluster(id),
        departure: Departure::TakenBack {
            operator: "bob".into(),
        },
    }
}

fn end(id: &str) -> Command {
    Command::Depart {
        cluster: cluster(id),
        departure: Departure::Due,
    }
}

fn leaves(id: &str, key: KeyFingerprint) -> Command {
    Command::Depart {
        cluster: cluster(id),
        departure: Departure::OwnWill { key },
    }
}

/// East and west export the cart with an endpoint each.
fn both() -> Folded {
    let with = |folded: Folded, id: &str, seconds| {
        let folded = folded.and(id, exported(export(seconds)));
        folded.and(id, slice("one", &["http"]))
    };
    with(with(given_members(&["east", "west"]), "east", 1), "west", 2)
}

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

#[track_caller]
fn restored_alike(folded: &Folded) {
    let restored = State::restore(folded.state.snapshot_rows()).expect("restored");
    assert_eq!(restored, folded.state);
}

#[test]
fn who_is_to_leave_gives_its_endpoints_first_and_keeps_its_export() {
    both().when(drain("east", false)).then(
        "east",
        &[Fact::MemberLeaving {
            operator: "ann".into(),
            until: UnixMillis(3_601_000),
            evicts: false,
        }],
    );
    let folded = both().after(drain("east", false));
    assert_eq!(holds(&folded), (false, true));
    assert!(
        folded
            .import()
            .expect("imported")
            .clusters
            .contains_key(&cluster("east"))
    );
    let leaving = folded.state.member(&cluster("east")).unwrap().leaving().unwrap();
    assert_eq!(
        (&*leaving.operator, leaving.until),
        ("ann", UnixMillis(3_601_000))
    );
    restored_alike(&folded);
    let explained = folded.state.explain(&service("shop/cart"));
    assert_eq!(explained.candidates[0].leaving_until, Some(UnixMillis(3_601_000)));
    assert_eq!(explained.candidates[1].leaving_until, None);
    assert!(
        explained.summary.contains("east is to leave"),
        "{}",
        explained.summary
    );
}

#[test]
fn the_last_ready_endpoints_stay_until_it_leaves() {
    let folded = both().and("west", not_ready("one")).after(drain("east", false));
    assert_eq!(holds(&folded), (true, true), "nobody else answers");
    let folded = folded.and("west", slice("one", &["http"]));
    assert_eq!(holds(&folded), (false, true));
    let folded = folded.after(drain("west", false));
    assert_eq!(holds(&folded), (true, true), "nobody stays");
    restored_alike(&folded);
    let folded = folded.after(end("east"));
    assert_eq!(holds(&folded), (false, true), "no ghost");
    let folded = folded.after(end("west"));
    assert!(folded.import().is_none());
    assert!(folded.state.leaving().next().is_none());
    restored_alike(&folded);
}

#[test]
fn who_is_to_leave_and_answers_is_better_than_who_is_lost() {
    let lost = Command::Connectivity {
        cluster: cluster("west"),
        to: Connectivity::Lost,
    };
    let withdraw = Command::Withdraw {
        cluster: cluster("west"),
    };
    let folded = both().after(drain("east", false)).after(lost).after(withdraw);
    assert_eq!(holds(&folded), (true, false));
    restored_alike(&folded);
}

#[test]
fn one_word_takes_it_back_while_it_is_time() {
    both().when(stay("east")).then_nothing();
    let folded = both().after(drain("east", true));
    folded.when(stay("east")).then(
        "east",
        &[Fact::MemberStays {
            operator: "bob".into(),
        }],
    );
    let folded = folded.after(stay("east"));
    assert_eq!(holds(&folded), (true, true));
    assert_eq!(folded.state.member(&cluster("east")).unwrap().leaving(), None);
    folded.when(end("east")).then_nothing();
    restored_alike(&folded);
}

#[test]
fn a_later_word_changes_when_and_how_it_ends() {
    let folded = both().after(drain("east", true)).after(drain("east", false));
    folded.when(end("east")).then("east", &[Fact::MemberLeft]);
    let folded = folded.after(drain("east", true));
    let evicted = Fact::MemberEvicted {
        operator: "ann".into(),
    };
    folded.when(end("east")).then("east", &[evicted]);
}

#[test]
fn an_id_that_left_is_free_and_one_that_was_evicted_needs_a_word() {
    let left = both().after(drain("east", false)).after(end("east"));
    assert_eq!(
        left.state.member(&cluster("east")).unwrap().status(),
        MemberStatus::Left
    );
    assert_eq!(left.when(admit("east", 9, "another")).drafts().len(), 1);
    let refused = left.when(admit("east", 1, "kube-system-east")).then_rejected();
    let Rejection::AdmissionRefused { reason, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!(reason, AdmissionRefusal::MembershipEnded);
    let evicted = both().after(drain("east", true)).after(end("east"));
    let refused = evicted.when(admit("east", 9, "another")).then_rejected();
    let Rejection::AdmissionRefused { reason, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!(reason, AdmissionRefusal::Evicted);
}

#[test]
fn too_late_or_nobody_is_told_in_a_line_and_changes_nothing() {
    let stranger = both().when(drain("north", false)).then_rejected();
    assert!(matches!(&stranger, Rejection::NotAMember { cluster } if cluster.as_str() == "north"));
    both().when(stay("north")).then_rejected();
    let left = both().after(drain("east", false)).after(end("east"));
    let told = left.when(stay("east")).then_rejected().to_string();
    assert!(
        told.starts_with("too late for east to stay: its membership ended at revision"),
        "{told}"
    );
    assert!(!told.contains('\n') && told.contains("certs member"), "{told}");
    let evicted = both().after(evict("east"));
    let told = evicted.when(stay("east")).then_rejected().to_string();
    assert!(told.contains("member rekey east"), "{told}");
    left.when(drain("east", false)).then_rejected();
    let too_long = Command::Depart {
        cluster: cluster("east"),
        departure: Departure::Ordered {
            operator: "ann".into(),
            at: UnixMillis(1_000),
            after_millis: LEAVING_LONGEST_MILLIS + 1,
            evicts: false,
        },
    };
    let told = both().when(too_long).then_rejected().to_string();
    assert!(told.contains("the longest delay is 604800 s"), "{told}");
}

#[test]
fn a_member_leaves_of_its_own_will_with_a_key_that_is_admitted() {
    both()
        .when(leaves("east", key(1)))
        .then("east", &[Fact::MemberLeft]);
    let refused = both().when(leaves("east", key(2))).then_rejected();
    assert!(matches!(
        refused,
        Rejection::AdmissionRefused {
            reason: AdmissionRefusal::UnknownKey,
            ..
        }
    ));
    let evicted = Fact::MemberEvicted {
        operator: "ann".into(),
    };
    let folded = both().after(drain("east", true));
    folded.when(leaves("east", key(1))).then("east", &[evicted]);
    let left = both().after(leaves("east", key(1)));
    assert_eq!(holds(&left), (false, true));
    assert!(matches!(
        left.when(leaves("east", key(1))).then_rejected(),
        Rejection::NotAMember { .. }
    ));
}

#[test]
fn what_it_exports_meanwhile_is_imported_without_its_endpoints() {
    let folded = given_members(&["east", "west"]).after(drain("east", false));
    let folded = folded
        .and("east", exported(export(1)))
        .and("east", slice("one", &["http"]));
    assert_eq!(holds(&folded), (true, false), "nobody else has any");
    let folded = folded
        .and("west", exported(export(2)))
        .and("west", slice("one", &["http"]));
    assert_eq!(holds(&folded), (false, true));
    assert!(
        folded
            .import()
            .expect("imported")
            .clusters
            .contains_key(&cluster("east"))
    );
    restored_alike(&folded);
}
