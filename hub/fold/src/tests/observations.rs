//! Reported facts: recorded, already known, refused.

use std::sync::Arc;

use model::{
    ClusterProperty, ControlPlane, Fact, Health, ListingGroup, PropertyValue, Revision, UnixMillis,
    fact::MEMBER_FACTS_MAX, facts_digest, sync::RefusalReason,
};
use wire::encode_fact;

use super::given::{cluster, export, exported, given_members, observe, service, slice, slice_key};
use crate::{DraftFact, RecordedFact, Rejection, decide};

#[track_caller]
fn refusal(rejection: Rejection) -> (RefusalReason, String) {
    match rejection {
        Rejection::Refused { reason, message } => (reason, message.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_fact_is_recorded_as_it_was_sent() {
    let folded = given_members(&["east"]);
    let command = observe("east", exported(export(1)));
    let drafts = decide(&folded.state, &command).unwrap();
    assert_eq!(
        drafts[0].fact,
        DraftFact::Encoded(encode_fact(&exported(export(1))))
    );
    assert_eq!((drafts[0].session.0, drafts[0].member_sequence), (7, 1));
}

#[test]
fn what_is_known_already_gives_no_event() {
    let folded = given_members(&["east"]).and("east", exported(export(1)));
    folded.when(observe("east", exported(export(1)))).then_nothing();
    folded
        .when(observe("east", Fact::ExportRemoved(service("shop/other"))))
        .then_nothing();
    folded
        .when(observe("east", Fact::EndpointSliceRemoved(slice_key("x"))))
        .then_nothing();
    folded
        .when(observe("east", Fact::ClusterPropertyRemoved("x".into())))
        .then_nothing();
}

#[test]
fn the_timestamp_of_a_known_uid_does_not_change_and_a_new_uid_may_have_any() {
    let folded = given_members(&["east"]).and("east", exported(export(5)));
    let mut moved = export(5);
    moved.created_at = UnixMillis(4_000);
    let (reason, message) = refusal(
        folded
            .when(observe("east", exported(moved.clone())))
            .then_rejected(),
    );
    assert_eq!(reason, RefusalReason::TimestampChanged);
    assert!(
        message.contains("uid-5") && message.contains("00:00:05Z") && message.contains("00:00:04Z"),
        "{message}"
    );
    moved.uid = "another".into();
    folded
        .when(observe("east", exported(moved.clone())))
        .then("east", &[exported(moved)]);
}

#[test]
fn members_do_not_report_what_the_hub_decides() {
    let folded = given_members(&["east"]);
    for fact in [
        Fact::MemberLost,
        Fact::MemberLeft,
        Fact::ListingCompleted(ListingGroup::Exports),
    ] {
        let (reason, message) = refusal(folded.when(observe("east", fact.clone())).then_rejected());
        assert_eq!(reason, RefusalReason::NotAMembersFact);
        assert!(message.contains(fact.kind()), "{message}");
    }
}

#[test]
fn a_stranger_reports_nothing() {
    let rejection = given_members(&["east"])
        .when(observe("west", exported(export(1))))
        .then_rejected();
    assert_eq!(
        rejection,
        Rejection::NotAMember {
            cluster: cluster("west")
        }
    );
    assert!(rejection.to_string().contains("member list"));
}

#[test]
fn a_member_has_a_bounded_number_of_facts_and_may_still_change_them() {
    let mut folded = given_members(&["east"]).and("east", slice("one", &["http"]));
    let member = folded.state.member_mut(&cluster("east")).unwrap();
    let Fact::EndpointSliceUpserted(template) = slice("one", &["http"]) else {
        unreachable!()
    };
    let fact = encode_fact(&slice("one", &["http"]));
    for number in member.facts.len()..MEMBER_FACTS_MAX {
        let mut key = template.key.clone();
        key.name = format!("slice-{number}").into();
        let recorded = RecordedFact::new(&fact, Revision(1)).unwrap();
        member.facts.insert(model::FactKey::EndpointSlice(key), recorded);
    }
    let (reason, message) = refusal(
        folded
            .when(observe("east", slice("more", &["http"])))
            .then_rejected(),
    );
    assert_eq!(reason, RefusalReason::TooMany);
    assert!(message.contains("EndpointSlice more of shop/cart"), "{message}");
    folded
        .when(observe("east", slice("one", &["other"])))
        .then("east", &[slice("one", &["other"])]);
}

#[test]
fn the_digest_of_a_member_is_its_agents() {
    let property = Fact::ClusterPropertyUpserted(Arc::new(ClusterProperty {
        name: "zone.example.com".into(),
        value: PropertyValue::Text("a".into()),
    }));
    let health = Fact::HealthReported(Arc::new(Health {
        kubernetes_version: "v1.36.3".into(),
        control_plane: ControlPlane::Ready,
        failed_checks: Vec::new(),
        verdict: None,
        nodes: None,
    }));
    let reported = [exported(export(1)), slice("one", &["http"]), property, health];
    let mut folded = given_members(&["east"]);
    for fact in &reported {
        folded = folded.and("east", fact.clone());
    }
    for group in [ListingGroup::Exports, ListingGroup::Properties] {
        let mut agents: Vec<_> = reported
            .iter()
            .map(|f| (f.key().unwrap(), encode_fact(f).hash))
            .collect();
        agents.retain(|(key, _)| key.group() == group);
        agents.sort();
        let want = facts_digest(agents.iter().map(|(key, hash)| (key, *hash)));
        assert_eq!(folded.state.facts_digest(&cluster("east"), group), Some(want));
    }
}
