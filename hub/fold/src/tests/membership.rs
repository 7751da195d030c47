//! Tests of admission, of the advice in refusals, and of the effects of a membership's end.

use std::sync::Arc;

use model::{Event, Fact, KeyAcceptance, KeyTerms, Revision, UnixMillis, sync::SourceState};

use super::given::{
    Folded, admit, cluster, evict, export, exported, given_members, key, observe, service, slice,
};
use crate::{
    AdmissionRefusal, Change, Command, DerivedKey, Draft, FORMER_KEPT_MILLIS, FORMER_KEYS_KEPT_MILLIS,
    MEMBERS_MAX, MemberStatus, Presented, REFUSED_KEYS_MAX, Rejection, State, apply,
};

fn rekey(name: &str, key_number: Option<u8>, fingerprint: Option<&str>) -> Command {
    Command::Rekey {
        cluster: cluster(name),
        operator: "ann".into(),
        key: key_number.map(key),
        cluster_fingerprint: fingerprint.map(Into::into),
    }
}

fn forget(name: &str) -> Command {
    Command::Forget {
        cluster: cluster(name),
        operator: "ann".into(),
    }
}

#[track_caller]
fn refused_admission(rejection: Rejection, want: AdmissionRefusal, advice: &str) {
    let Rejection::AdmissionRefused { reason, message } = rejection else {
        panic!("{rejection:?}");
    };
    assert_eq!(reason, want);
    assert!(message.contains(advice), "{message}");
}

#[test]
fn the_first_hello_of_an_id_is_a_join_and_later_ones_are_nothing() {
    let folded = given_members(&[]);
    folded.when(admit("east", 1, "a")).then(
        "east",
        &[Fact::MemberJoined {
            key: key(1),
            cluster_fingerprint: "a".into(),
            terms: KeyTerms {
                accepted: Some(KeyAcceptance::Pinned),
                ..KeyTerms::default()
            },
        }],
    );
    let folded = folded.after(admit("east", 1, "a"));
    folded.when(admit("east", 1, "a")).then_nothing();
    let member = folded.state.member(&cluster("east")).unwrap();
    assert_eq!(member.incarnation(), Revision(1));
    assert_eq!(member.source_state(), SourceState::Live);
    assert_eq!(folded.events[0].incarnation, Revision(1));
}

#[test]
fn an_unknown_key_is_refused_with_the_command_that_admits_it() {
    let folded = given_members(&[]).after(admit("east", 1, "a"));
    let advice = format!("tributary member rekey east --key-fingerprint {} --hub", key(2));
    let rejection = folded.when(admit("east", 2, "a")).then_rejected();
    refused_admission(rejection, AdmissionRefusal::UnknownKey, &advice);
    let folded = folded.after(rekey("east", Some(2), None));
    folded.when(admit("east", 2, "a")).then_nothing();
    folded.when(admit("east", 1, "a")).then_nothing();
}

#[test]
fn a_changed_fingerprint_is_refused_until_admitted_and_then_begins_an_incarnation() {
    let folded = given_members(&[])
        .after(admit("east", 1, "a"))
        .and("east", exported(export(1)));
    let rejection = folded.when(admit("east", 1, "b")).then_rejected();
    let advice = "tributary member rekey east --cluster-fingerprint b --hub";
    refused_admission(rejection, AdmissionRefusal::ClusterFingerprintChanged, advice);

    let folded = folded.after(rekey("east", None, Some("b")));
    folded.when(admit("east", 1, "a")).then_nothing();
    let folded = folded.after(admit("east", 1, "b"));
    let member = folded.state.member(&cluster("east")).unwrap();
    assert_eq!(member.incarnation(), Revision(4));
    assert_eq!(member.cluster_fingerprint(), "b");
    assert_eq!(member.next_cluster_fingerprint, None);
    assert!(
        folded.import().is_some(),
        "facts stay until the new incarnation has listed"
    );
    let folded = folded.and("east", exported(export(2)));
    let incarnations: Vec<Revision> = folded.events.iter().map(|event| event.incarnation).collect();
    assert_eq!(incarnations, [1, 1, 1, 4, 4].map(Revision));
}

#[test]
fn a_clusterset_has_a_bounded_number_of_members() {
    let mut folded = given_members(&["east"]);
    let member = folded.state.member(&cluster("east")).unwrap().clone();
    let others = (1..MEMBERS_MAX - 1).map(|number| (cluster(&format!("c{number}")), member.clone().into()));
    folded.state.members.extend(others);
    folded.carry_out(&admit("last", 2, "a")).unwrap();
    let rejection = folded.when(admit("one-too-many", 3, "b")).then_rejected();
    refused_admission(
        rejection,
        AdmissionRefusal::TooManyMembers,
        "re-use the id of a cluster that left",
    );
}

/// Clusters that come and go under new names do not use the ids up for ever.
#[test]
fn where_ids_are_used_up_the_one_that_left_first_is_forgotten_in_its_time() {
    let mut folded = given_members(&["east", "gone", "later", "out", "valid"]);
    let beyond = 10 * FORMER_KEYS_KEPT_MILLIS;
    for (name, not_after) in [
        ("valid", Some(beyond)),
        ("gone", Some(5_000_000)),
        ("later", None),
    ] {
        let mut member = folded.state.member(&cluster(name)).unwrap().clone();
        for key in member.keys.values_mut() {
            key.terms.not_after = not_after.map(UnixMillis);
        }
        folded.state.members.insert(cluster(name), member.into());
        folded.left(name);
    }
    folded.evicted("out");
    let east = folded.state.member(&cluster("east")).unwrap().clone();
    let others = (5..MEMBERS_MAX).map(|number| (cluster(&format!("c{number}")), east.clone().into()));
    folded.state.members.extend(others);
    let at = |millis: u64| Command::Admit {
        cluster: cluster("new"),
        key: key(9),
        cluster_fingerprint: "a".into(),
        presented: Presented {
            at: UnixMillis(millis),
            ..Presented::default()
        },
    };
    let ended = folded.state.member(&cluster("gone")).unwrap().since().0;
    folded.when(at(ended + FORMER_KEPT_MILLIS - 1)).then_rejected();
    assert_eq!(folded.when(at(ended + FORMER_KEPT_MILLIS)).drafts().len(), 1);
    let draft = folded.when(at(ended + FORMER_KEPT_MILLIS)).drafts().remove(0);
    let joins = |folded: &mut Folded, draft: &Draft, millis: u64| {
        let event = draft.event(&folded.state, super::given::encoded(draft), UnixMillis(millis));
        apply(&mut folded.state, &event);
    };
    joins(&mut folded, &draft, ended + FORMER_KEPT_MILLIS);
    let known = |folded: &Folded, name| folded.state.member(&cluster(name)).is_some();
    assert_eq!((known(&folded, "gone"), known(&folded, "new")), (false, true));
    assert_eq!(folded.state.members().len(), MEMBERS_MAX);
    let restored = State::restore(folded.state.snapshot_rows());
    assert_eq!(
        restored.as_ref().map(|state| state.members()),
        Ok(folded.state.members())
    );
    // The end of the next one's certificate is unknown, and an evicted id stays out.
    let another = |millis: u64| Command::Admit {
        cluster: cluster("another"),
        key: key(10),
        cluster_fingerprint: "a".into(),
        presented: Presented {
            at: UnixMillis(millis),
            ..Presented::default()
        },
    };
    let ended = folded.state.member(&cluster("later")).unwrap().since().0;
    folded
        .when(another(ended + FORMER_KEYS_KEPT_MILLIS - 1))
        .then_rejected();
    let at = ended + FORMER_KEYS_KEPT_MILLIS;
    let draft = folded.when(another(at)).drafts().remove(0);
    joins(&mut folded, &draft, at);
    assert_eq!((known(&folded, "later"), known(&folded, "out")), (false, true));
    assert!(known(&folded, "valid"), "its certificate is good for longer");
}

#[test]
fn an_event_of_a_stranger_changes_nothing() {
    let mut folded = given_members(&["east"]).and("east", exported(export(1)));
    let stranger = Event {
        cluster: Some(cluster("north")),
        revision: Revision(3),
        ..folded.events[1].clone()
    };
    let before = folded.state.clone();
    assert_eq!(apply(&mut folded.state, &stranger), []);
    assert!(folded.state.member(&cluster("north")).is_none());
    assert_eq!(folded.state.exporters(&service("shop/cart")).count(), 1);
    assert_eq!(folded.state.members(), before.members());
}

#[test]
fn a_stranger_with_neither_key_nor_fingerprint_is_told_both() {
    let folded = given_members(&[]).after(admit("east", 1, "a"));
    let advice = format!("--key-fingerprint {} --cluster-fingerprint b", key(2));
    let rejection = folded.when(admit("east", 2, "b")).then_rejected();
    refused_admission(rejection, AdmissionRefusal::ClusterFingerprintChanged, &advice);
}

#[test]
fn a_key_of_an_ended_membership_stays_refused_and_a_new_one_re_uses_the_id() {
    for end in [Folded::left, Folded::evicted] {
        let mut folded = given_members(&[]).after(admit("east", 1, "a"));
        end(&mut folded, "east");
        let rejection = folded.when(admit("east", 1, "a")).then_rejected();
        refused_admission(rejection, AdmissionRefusal::MembershipEnded, "new key");
        if folded.state.member(&cluster("east")).unwrap().status() == MemberStatus::Evicted {
            folded.carry_out(&rekey("east", Some(2), None)).unwrap();
        }
        folded.carry_out(&admit("east", 2, "other cluster")).unwrap();
        let member = folded.state.member(&cluster("east")).unwrap();
        assert_eq!(member.status(), MemberStatus::Joined);
        assert_eq!(member.incarnation(), folded.state.revision());
        // It is a member again: no key is told that it is none.
        let rejection = folded.when(admit("east", 1, "a")).then_rejected();
        refused_admission(rejection, AdmissionRefusal::KeyOfFormerMember, "new key");
        let rejection = folded.when(rekey("east", Some(1), None)).then_rejected();
        refused_admission(rejection, AdmissionRefusal::KeyOfFormerMember, "new key");
    }
}

#[test]
fn an_id_with_too_many_refused_keys_is_not_used_again() {
    let mut folded = given_members(&["east"])
        .after(evict("east"))
        .after(rekey("east", Some(2), None));
    let member = folded.state.member_mut(&cluster("east")).unwrap();
    for number in member.refused_keys.len()..REFUSED_KEYS_MAX {
        let mut bytes = [9; 32];
        bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
        Arc::make_mut(&mut member.refused_keys).insert(model::KeyFingerprint(bytes));
    }
    let mut almost = folded.clone();
    let member = almost.state.member_mut(&cluster("east")).unwrap();
    let refused = Arc::make_mut(&mut member.refused_keys);
    refused.pop_first();
    almost.carry_out(&admit("east", 2, "a")).unwrap();
    let rejection = folded.when(admit("east", 2, "a")).then_rejected();
    refused_admission(
        rejection,
        AdmissionRefusal::KeyOfFormerMember,
        "choose another cluster id",
    );
}

#[test]
fn an_end_of_membership_takes_facts_imports_slices_statuses_and_the_profile_along() {
    type End = fn(&mut Folded, &str) -> Vec<Change>;
    let (left, evicted): (End, End) = (Folded::left, Folded::evicted);
    for (end, state) in [(left, SourceState::Left), (evicted, SourceState::Evicted)] {
        let mut folded = given_members(&["east", "west"])
            .and("east", exported(export(1)))
            .and("east", slice("one", &["http"]))
            .and("west", exported(export(2)));
        let changes = end(&mut folded, "east");
        let removed: Vec<&DerivedKey> = changes
            .iter()
            .filter(|change| change.content.is_none())
            .map(|change| &change.key)
            .collect();
        assert_eq!(removed.len(), 3, "{removed:?}");
        assert_eq!(
            folded.state.member(&cluster("east")).unwrap().source_state(),
            state
        );
        assert!(folded.profile("east").is_none() && folded.imported_slice("east", "one").is_none());
        assert_eq!(folded.import().unwrap().clusters.len(), 1);
        assert!(
            folded
                .state
                .facts_digest(&cluster("east"), model::ListingGroup::Exports)
                .is_none()
        );
        let rejection = folded.when(observe("east", exported(export(1)))).then_rejected();
        assert_eq!(
            rejection,
            Rejection::NotAMember {
                cluster: cluster("east")
            }
        );
    }
}

#[test]
fn the_last_exporter_that_leaves_takes_the_import_away() {
    let folded = given_members(&["east"])
        .and("east", exported(export(1)))
        .after(evict("east"));
    assert!(folded.import().is_none());
    assert!(
        folded
            .state
            .tombstone(&DerivedKey::Import(service("shop/cart")))
            .is_some()
    );
}

#[test]
fn only_an_id_that_is_no_current_member_is_forgotten_and_each_time_it_is_said() {
    let folded = given_members(&["east"]);
    let Rejection::OperatorRefused { message } = folded.when(forget("east")).then_rejected() else {
        panic!("a current member was forgotten");
    };
    assert!(message.contains("tributary member evict east"), "{message}");
    let forgotten = Fact::MemberForgotten {
        operator: "ann".into(),
    };
    let forgotten = [forgotten];
    folded.when(forget("never-seen")).then("never-seen", &forgotten);
    let folded = folded
        .after(forget("never-seen"))
        .after(evict("east"))
        .after(forget("east"));
    folded.when(forget("never-seen")).then("never-seen", &forgotten);
    for name in ["never-seen", "east"] {
        let member = folded.state.member(&cluster(name)).unwrap();
        assert_eq!(member.source_state(), SourceState::Forgotten, "{name}");
    }
    let rejection = folded.when(admit("east", 1, "kube-system-east")).then_rejected();
    refused_admission(rejection, AdmissionRefusal::MembershipEnded, "new key");
}

#[test]
fn operators_decide_about_members_only_and_repeat_nothing() {
    let folded = given_members(&["east"]);
    for command in [evict("west"), rekey("west", Some(1), None)] {
        let rejection = folded.when(command).then_rejected();
        assert_eq!(
            rejection,
            Rejection::NotAMember {
                cluster: cluster("west")
            }
        );
    }
    folded
        .when(rekey("east", Some(1), Some("kube-system-east")))
        .then_nothing();
    assert!(matches!(
        folded.when(rekey("east", None, None)).then_rejected(),
        Rejection::OperatorRefused { .. }
    ));
}
