//! Who is admitted, who is refused with which advice, and what an end of membership takes along.

use shared::model::{Event, Fact, KeyAcceptance, KeyTerms, Revision, sync::SourceState};

use super::world::{
    World, admit, cluster, evict, export, exported, given_members, key, observe, service, slice,
};
use crate::fold::{
    AdmissionRefusal, Change, Command, DerivedKey, MEMBERS_MAX, MemberStatus, REFUSED_KEYS_MAX, Rejection,
    apply,
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
    let world = given_members(&[]);
    world.when(admit("east", 1, "a")).then(
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
    let world = world.after(admit("east", 1, "a"));
    world.when(admit("east", 1, "a")).then_nothing();
    let member = world.state.member(&cluster("east")).unwrap();
    assert_eq!(member.incarnation(), Revision(1));
    assert_eq!(member.source_state(), SourceState::Live);
    assert_eq!(world.events[0].incarnation, Revision(1));
}

#[test]
fn an_unknown_key_is_refused_with_the_command_that_admits_it() {
    let world = given_members(&[]).after(admit("east", 1, "a"));
    let advice = format!(
        "tributary-hub member rekey east --key-fingerprint {} --hub",
        key(2)
    );
    let rejection = world.when(admit("east", 2, "a")).then_rejected();
    refused_admission(rejection, AdmissionRefusal::UnknownKey, &advice);
    let world = world.after(rekey("east", Some(2), None));
    world.when(admit("east", 2, "a")).then_nothing();
    world.when(admit("east", 1, "a")).then_nothing();
}

#[test]
fn a_changed_fingerprint_is_refused_until_admitted_and_then_begins_an_incarnation() {
    let world = given_members(&[])
        .after(admit("east", 1, "a"))
        .and("east", exported(export(1)));
    let rejection = world.when(admit("east", 1, "b")).then_rejected();
    let advice = "tributary-hub member rekey east --cluster-fingerprint b --hub";
    refused_admission(rejection, AdmissionRefusal::ClusterFingerprintChanged, advice);

    let world = world.after(rekey("east", None, Some("b")));
    world.when(admit("east", 1, "a")).then_nothing();
    let world = world.after(admit("east", 1, "b"));
    let member = world.state.member(&cluster("east")).unwrap();
    assert_eq!(member.incarnation(), Revision(4));
    assert_eq!(member.cluster_fingerprint(), "b");
    assert_eq!(member.next_cluster_fingerprint, None);
    assert!(
        world.import().is_some(),
        "facts stay until the new incarnation has listed"
    );
    let world = world.and("east", exported(export(2)));
    let incarnations: Vec<Revision> = world.events.iter().map(|event| event.incarnation).collect();
    assert_eq!(incarnations, [1, 1, 1, 4, 4].map(Revision));
}

#[test]
fn a_clusterset_has_a_bounded_number_of_members() {
    let mut world = given_members(&["east"]);
    let member = world.state.member(&cluster("east")).unwrap().clone();
    let others = (1..MEMBERS_MAX - 1).map(|number| (cluster(&format!("c{number}")), member.clone()));
    world.state.members.extend(others);
    world.carry_out(&admit("last", 2, "a")).unwrap();
    let rejection = world.when(admit("one-too-many", 3, "b")).then_rejected();
    refused_admission(
        rejection,
        AdmissionRefusal::TooManyMembers,
        "re-use the id of a cluster that left",
    );
}

#[test]
fn an_event_of_a_stranger_changes_nothing() {
    let mut world = given_members(&["east"]).and("east", exported(export(1)));
    let stranger = Event {
        cluster: Some(cluster("north")),
        revision: Revision(3),
        ..world.events[1].clone()
    };
    let before = world.state.clone();
    assert_eq!(apply(&mut world.state, &stranger), []);
    assert!(world.state.member(&cluster("north")).is_none());
    assert_eq!(world.state.exporters(&service("shop/cart")).count(), 1);
    assert_eq!(world.state.members(), before.members());
}

#[test]
fn a_stranger_with_neither_key_nor_fingerprint_is_told_both() {
    let world = given_members(&[]).after(admit("east", 1, "a"));
    let advice = format!("--key-fingerprint {} --cluster-fingerprint b", key(2));
    let rejection = world.when(admit("east", 2, "b")).then_rejected();
    refused_admission(rejection, AdmissionRefusal::ClusterFingerprintChanged, &advice);
}

#[test]
fn a_key_of_an_ended_membership_stays_refused_and_a_new_one_re_uses_the_id() {
    for end in [World::left, World::evicted] {
        let mut world = given_members(&[]).after(admit("east", 1, "a"));
        end(&mut world, "east");
        let rejection = world.when(admit("east", 1, "a")).then_rejected();
        refused_admission(rejection, AdmissionRefusal::KeyOfFormerMember, "new key");
        if world.state.member(&cluster("east")).unwrap().status() == MemberStatus::Evicted {
            world.carry_out(&rekey("east", Some(2), None)).unwrap();
        }
        world.carry_out(&admit("east", 2, "other cluster")).unwrap();
        let member = world.state.member(&cluster("east")).unwrap();
        assert_eq!(member.status(), MemberStatus::Joined);
        assert_eq!(member.incarnation(), world.state.revision());
        let rejection = world.when(rekey("east", Some(1), None)).then_rejected();
        refused_admission(rejection, AdmissionRefusal::KeyOfFormerMember, "new key");
    }
}

#[test]
fn an_id_with_too_many_refused_keys_is_not_used_again() {
    let mut world = given_members(&["east"])
        .after(evict("east"))
        .after(rekey("east", Some(2), None));
    let member = world.state.members.get_mut(&cluster("east")).unwrap();
    for number in member.refused_keys.len()..REFUSED_KEYS_MAX {
        let mut bytes = [9; 32];
        bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
        member.refused_keys.insert(shared::model::KeyFingerprint(bytes));
    }
    let mut almost = world.clone();
    let refused = &mut almost
        .state
        .members
        .get_mut(&cluster("east"))
        .unwrap()
        .refused_keys;
    refused.pop_first();
    almost.carry_out(&admit("east", 2, "a")).unwrap();
    let rejection = world.when(admit("east", 2, "a")).then_rejected();
    refused_admission(
        rejection,
        AdmissionRefusal::KeyOfFormerMember,
        "choose another cluster id",
    );
}

#[test]
fn an_end_of_membership_takes_facts_imports_slices_statuses_and_the_profile_along() {
    type End = fn(&mut World, &str) -> Vec<Change>;
    let (left, evicted): (End, End) = (World::left, World::evicted);
    for (end, state) in [(left, SourceState::Left), (evicted, SourceState::Evicted)] {
        let mut world = given_members(&["east", "west"])
            .and("east", exported(export(1)))
            .and("east", slice("one", &["http"]))
            .and("west", exported(export(2)));
        let changes = end(&mut world, "east");
        let removed: Vec<&DerivedKey> = changes
            .iter()
            .filter(|change| change.content.is_none())
            .map(|change| &change.key)
            .collect();
        assert_eq!(removed.len(), 3, "{removed:?}");
        assert_eq!(
            world.state.member(&cluster("east")).unwrap().source_state(),
            state
        );
        assert!(world.profile("east").is_none() && world.imported_slice("east", "one").is_none());
        assert_eq!(world.import().unwrap().clusters.len(), 1);
        assert!(
            world
                .state
                .facts_digest(&cluster("east"), shared::model::ListingGroup::Exports)
                .is_none()
        );
        let rejection = world.when(observe("east", exported(export(1)))).then_rejected();
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
    let world = given_members(&["east"])
        .and("east", exported(export(1)))
        .after(evict("east"));
    assert!(world.import().is_none());
    assert!(
        world
            .state
            .tombstone(&DerivedKey::Import(service("shop/cart")))
            .is_some()
    );
}

#[test]
fn only_an_id_that_is_no_current_member_is_forgotten_and_each_time_it_is_said() {
    let world = given_members(&["east"]);
    let Rejection::OperatorRefused { message } = world.when(forget("east")).then_rejected() else {
        panic!("a current member was forgotten");
    };
    assert!(message.contains("tributary-hub member evict east"), "{message}");
    let forgotten = Fact::MemberForgotten {
        operator: "ann".into(),
    };
    let forgotten = [forgotten];
    world.when(forget("never-seen")).then("never-seen", &forgotten);
    let world = world
        .after(forget("never-seen"))
        .after(evict("east"))
        .after(forget("east"));
    world.when(forget("never-seen")).then("never-seen", &forgotten);
    for name in ["never-seen", "east"] {
        let member = world.state.member(&cluster(name)).unwrap();
        assert_eq!(member.source_state(), SourceState::Forgotten, "{name}");
    }
    let rejection = world.when(admit("east", 1, "kube-system-east")).then_rejected();
    refused_admission(rejection, AdmissionRefusal::KeyOfFormerMember, "new key");
}

#[test]
fn operators_decide_about_members_only_and_repeat_nothing() {
    let world = given_members(&["east"]);
    for command in [evict("west"), rekey("west", Some(1), None)] {
        let rejection = world.when(command).then_rejected();
        assert_eq!(
            rejection,
            Rejection::NotAMember {
                cluster: cluster("west")
            }
        );
    }
    world
        .when(rekey("east", Some(1), Some("kube-system-east")))
        .then_nothing();
    assert!(matches!(
        world.when(rekey("east", None, None)).then_rejected(),
        Rejection::OperatorRefused { .. }
    ));
}
