//! Keys: how they are admitted, renewed, contested and refused for ever; and that no number of renewals costs a
//! membership.

use model::{Fact, KeyAcceptance, KeyTerms, UnixMillis};

use super::given::{Folded, admit, cluster, evict, given_members, key};
use crate::{
    AdmissionRefusal, Command, KeyHolder, MEMBER_KEYS_MAX, MemberStatus, Presented, Rejection, State,
};

/// A Hello with a certificate of a trusted issuer that ends at a time.
fn certified(key_number: u8, not_after: u64, renewable: bool) -> Command {
    let Command::Admit {
        cluster,
        key,
        cluster_fingerprint,
        ..
    } = admit("east", key_number, "a")
    else {
        panic!("another command");
    };
    Command::Admit {
        cluster,
        key,
        cluster_fingerprint,
        presented: Presented {
            issuer: Some("CN=issuer".into()),
            not_after: Some(UnixMillis(not_after)),
            renewable,
            at: UnixMillis(1_000),
            displaces: None,
        },
    }
}

fn displacing(key_number: u8, displaced: u8) -> Command {
    let Command::Admit {
        cluster,
        key: own,
        cluster_fingerprint,
        ..
    } = admit("east", key_number, "a")
    else {
        panic!("another command");
    };
    Command::Admit {
        cluster,
        key: own,
        cluster_fingerprint,
        presented: Presented {
            displaces: Some(key(displaced)),
            ..Presented::default()
        },
    }
}

fn rekey(key_number: u8) -> Command {
    Command::Rekey {
        cluster: cluster("east"),
        operator: "ann".into(),
        key: Some(key(key_number)),
        cluster_fingerprint: None,
    }
}

fn revoke(key_number: u8) -> Command {
    Command::RevokeKey {
        holder: KeyHolder::Member(cluster("east")),
        key: key(key_number),
        operator: "ann".into(),
    }
}

#[track_caller]
fn refused(folded: &Folded, command: Command, want: AdmissionRefusal, advice: &str) {
    let Rejection::AdmissionRefused { reason, message } = folded.when(command).then_rejected() else {
        panic!("another rejection");
    };
    assert_eq!(reason, want);
    assert!(message.contains(advice), "{message}");
}

fn keys(folded: &Folded) -> Vec<u8> {
    let member = folded.state.member(&cluster("east")).expect("known");
    member.keys().keys().map(|key| key.0[0]).collect()
}

#[test]
fn a_join_records_what_the_certificate_says() {
    let folded = given_members(&[]).after(certified(1, 9_000, false));
    let member = folded.state.member(&cluster("east")).expect("a member");
    let known = &member.keys()[&key(1)];
    let terms = KeyTerms {
        issuer: Some("CN=issuer".into()),
        not_after: Some(UnixMillis(9_000)),
        accepted: Some(KeyAcceptance::Pinned),
    };
    assert_eq!(known.terms, terms);
    folded.when(certified(1, 9_000, false)).then_nothing();
    folded.when(certified(1, 8_000, false)).then_nothing();
    let folded = folded.after(certified(1, 9_500, false));
    let member = folded.state.member(&cluster("east")).expect("a member");
    let known = &member.keys()[&key(1)];
    assert_eq!(
        known.terms.not_after,
        Some(UnixMillis(9_500)),
        "the same key, certified anew"
    );
    assert_eq!(known.terms.accepted, Some(KeyAcceptance::Pinned));
}

#[test]
fn a_certificate_that_had_ended_by_recorded_time_is_refused() {
    let folded = given_members(&[]);
    refused(
        &folded,
        certified(1, 1_000, true),
        AdmissionRefusal::ExpiredCertificate,
        "renew it",
    );
    folded.after(certified(1, 1_001, true));
}

#[test]
fn a_new_key_is_accepted_of_an_issuer_that_is_trusted_for_renewal_only() {
    let folded = given_members(&[]).after(certified(1, 9_000, false));
    refused(
        &folded,
        certified(2, 9_000, false),
        AdmissionRefusal::UnknownKey,
        "member rekey east",
    );
    let renewed = Fact::MemberRekeyed {
        operator: "".into(),
        key: Some(key(2)),
        cluster_fingerprint: None,
        terms: KeyTerms {
            issuer: Some("CN=issuer".into()),
            not_after: Some(UnixMillis(9_000)),
            accepted: Some(KeyAcceptance::Renewed),
        },
    };
    folded.when(certified(2, 9_000, true)).then("east", &[renewed]);
    let mut other = certified(2, 9_000, true);
    if let Command::Admit {
        cluster_fingerprint, ..
    } = &mut other
    {
        *cluster_fingerprint = "another cluster".into();
    }
    refused(
        &folded,
        other,
        AdmissionRefusal::ClusterFingerprintChanged,
        "rebuilt",
    );
}

#[test]
fn no_number_of_renewals_costs_a_membership() {
    let mut folded = given_members(&[]).after(certified(1, 2_000, true));
    for number in 2..200 {
        folded
            .carry_out(&certified(number, 2_000 + u64::from(number), true))
            .expect("renewed");
        assert!(keys(&folded).len() <= MEMBER_KEYS_MAX);
        assert!(keys(&folded).contains(&number), "{number}");
    }
    let member = folded.state.member(&cluster("east")).expect("known");
    assert_eq!(
        (member.status(), member.refused_keys().len()),
        (MemberStatus::Joined, 0)
    );
    let restored = State::restore(folded.state.snapshot_rows()).expect("restored");
    assert_eq!(restored, folded.state);
}

#[test]
fn a_key_that_comes_back_after_its_renewal_is_kept_and_the_renewal_needs_an_operator() {
    let mut folded = given_members(&[]).after(certified(1, 9_000, false));
    folded.state.recorded_at = UnixMillis(2_000);
    let folded = folded.after(certified(2, 9_000, true));
    let contested = Fact::MemberKeyContested {
        key: key(2),
        kept: key(1),
    };
    folded.when(displacing(1, 2)).then("east", &[contested]);
    let folded = folded.after(displacing(1, 2));
    assert_eq!(keys(&folded), [1]);
    refused(
        &folded,
        certified(2, 9_000, true),
        AdmissionRefusal::ContestedKey,
        "member rekey east",
    );
    let restored = State::restore(folded.state.snapshot_rows()).expect("restored");
    refused(
        &Folded {
            state: restored,
            ..folded.clone()
        },
        certified(2, 9_000, true),
        AdmissionRefusal::ContestedKey,
        "member revoke-key east",
    );
    let folded = folded.after(rekey(2));
    assert_eq!(keys(&folded), [1, 2]);
    folded.when(displacing(1, 2)).then_nothing();
}

#[test]
fn a_new_key_beside_a_holder_that_answers_is_contested_once() {
    let folded = given_members(&[]).after(certified(1, 9_000, false));
    let contest = Command::ContestKey {
        cluster: cluster("east"),
        key: key(2),
        kept: key(1),
    };
    let folded = folded.after(contest.clone());
    folded.when(contest).then_nothing();
    refused(
        &folded,
        certified(2, 9_000, true),
        AdmissionRefusal::ContestedKey,
        "two keys",
    );
}

#[test]
fn a_revoked_key_is_refused_for_ever_whoever_comes_with_it() {
    let mut folded = given_members(&[])
        .after(certified(1, 9_000, true))
        .after(certified(2, 9_000, true))
        .after(revoke(2));
    assert_eq!(keys(&folded), [1]);
    folded.when(revoke(2)).then_nothing();
    folded.state = State::restore(folded.state.snapshot_rows()).expect("restored");
    refused(
        &folded,
        certified(2, 9_000, true),
        AdmissionRefusal::RevokedKey,
        "new key",
    );
    refused(&folded, rekey(2), AdmissionRefusal::RevokedKey, "revoked");
    refused(
        &folded,
        admit("west", 2, "b"),
        AdmissionRefusal::RevokedKey,
        "revoked",
    );
    let folded = folded.after(revoke(1));
    let member = folded.state.member(&cluster("east")).expect("known");
    assert!(
        member.is_current() && member.keys().is_empty(),
        "it stays, and what it exports"
    );
    let folded = folded.after(evict("east"));
    refused(
        &folded,
        admit("east", 1, "a"),
        AdmissionRefusal::RevokedKey,
        "revoked",
    );
}

#[test]
fn a_key_that_never_came_is_revoked_and_so_is_an_operators_and_a_readers() {
    let bobs = Command::RevokeKey {
        holder: KeyHolder::Operator("bob".into()),
        key: key(7),
        operator: "ann".into(),
    };
    let dashboards = Command::RevokeKey {
        holder: KeyHolder::Reader("dashboard".into()),
        key: key(8),
        operator: "ann".into(),
    };
    let folded = given_members(&[]).after(revoke(3)).after(bobs).after(dashboards);
    let holder = folded
        .state
        .revoked_keys()
        .get(&key(8))
        .map(|revoked| &revoked.holder);
    assert_eq!(holder, Some(&KeyHolder::Reader("dashboard".into())));
    refused(
        &folded,
        admit("east", 3, "a"),
        AdmissionRefusal::RevokedKey,
        "revoked",
    );
    refused(
        &folded,
        admit("east", 7, "a"),
        AdmissionRefusal::RevokedKey,
        "revoked",
    );
    let restored = State::restore(folded.state.snapshot_rows()).expect("restored");
    assert_eq!(restored, folded.state);
    assert!(restored.members().is_empty(), "nobody is a member of it");
}

#[test]
fn an_id_that_was_evicted_comes_back_by_an_operators_word_and_one_that_left_by_itself() {
    let mut left = given_members(&[]).after(admit("east", 1, "a"));
    left.left("east");
    left.after(admit("east", 2, "b"));

    let folded = given_members(&[])
        .after(admit("east", 1, "a"))
        .after(evict("east"));
    refused(
        &folded,
        admit("east", 2, "a"),
        AdmissionRefusal::Evicted,
        "member rekey east",
    );
    refused(
        &folded,
        certified(2, 9_000, true),
        AdmissionRefusal::Evicted,
        "member rekey east",
    );
    refused(&folded, rekey(1), AdmissionRefusal::KeyOfFormerMember, "new key");
    let folded = folded.after(rekey(2));
    refused(
        &folded,
        admit("east", 3, "a"),
        AdmissionRefusal::Evicted,
        "member rekey east",
    );
    let folded = folded.after(admit("east", 2, "another cluster"));
    assert_eq!(keys(&folded), [2]);
    assert!(folded.state.current_member(&cluster("east")).is_some());

    let forgotten = given_members(&[])
        .after(admit("east", 1, "a"))
        .after(evict("east"))
        .after(Command::Forget {
            cluster: cluster("east"),
            operator: "ann".into(),
        });
    forgotten.after(admit("east", 2, "a"));
}
