//! Keys that the hub certified over a session: admitted with no operator, by admitted keys only, and so many in a minute.

use model::{Fact, KeyAcceptance, UnixMillis};

use super::given::{Folded, admit, cluster, evict, given_members, key};
use crate::{CERTIFIED_OVER_MAX, Command, KeyHolder, Presented, State, decide};

const END: UnixMillis = UnixMillis(9_000_000);

fn certify(number: u8, by: u8, at: u64) -> Command {
    Command::CertifyKey {
        cluster: cluster("east"),
        key: key(number),
        by: key(by),
        issuer: "CN=joining".into(),
        not_after: END,
        at: UnixMillis(at),
    }
}

fn certified(number: u8, by: u8) -> Fact {
    Fact::MemberKeyCertified {
        key: key(number),
        by: key(by),
        issuer: "CN=joining".into(),
        not_after: END,
    }
}

fn revoke(number: u8) -> Command {
    Command::RevokeKey {
        holder: KeyHolder::Member(cluster("east")),
        key: key(number),
        operator: "ann".into(),
    }
}

fn refused(folded: &Folded, command: Command, why: &str) {
    let said = decide(&folded.state, &command).expect_err(why).to_string();
    assert!(said.contains(why) && !said.contains('\n'), "{said}");
}

#[test]
fn a_key_that_was_certified_is_admitted_and_survives_a_snapshot() {
    let folded = given_members(&[]).after(admit("east", 1, "a"));
    folded.when(certify(2, 1, 5)).then("east", &[certified(2, 1)]);
    let folded = folded.after(certify(2, 1, 5));
    let known = folded.state.member(&cluster("east")).expect("a member").keys()[&key(2)].clone();
    assert_eq!(known.terms.accepted, Some(KeyAcceptance::Certified));
    assert_eq!(known.terms.not_after, Some(END));
    folded.when(admit("east", 2, "a")).then_nothing();
    folded.when(certify(2, 1, 5)).then_nothing();
    let restored = State::restore(folded.state.snapshot_rows()).expect("restored");
    assert_eq!(restored, folded.state);
}

#[test]
fn only_an_admitted_key_of_a_member_renews_and_only_for_a_key_that_is_not_refused() {
    let folded = given_members(&[]).after(admit("east", 1, "a"));
    refused(&folded, certify(3, 2, 5), "cannot renew a certificate");
    let revoked = folded.clone().after(certify(2, 1, 5)).after(revoke(2));
    refused(&revoked, certify(3, 2, 5), "cannot renew a certificate");
    refused(&revoked, certify(2, 1, 5), "Ask with a new key");
    let contested = folded.clone().after(Command::ContestKey {
        cluster: cluster("east"),
        key: key(4),
        kept: key(1),
    });
    refused(&contested, certify(4, 1, 5), "Ask with a new key");
    refused(&contested, certify(3, 4, 5), "cannot renew a certificate");
    refused(&folded.after(evict("east")), certify(3, 1, 5), "is not a member");
}

fn revoked(number: u8) -> Fact {
    Fact::MemberKeyRevoked {
        operator: "ann".into(),
        key: key(number),
    }
}

/// 1, over which came 2, over which came 3; and 4 over 1.
fn family() -> Folded {
    let folded = given_members(&[]).after(admit("east", 1, "a"));
    let folded = folded.after(certify(2, 1, 5)).after(certify(3, 2, 5));
    folded.after(certify(4, 1, 5))
}

#[test]
fn with_a_key_go_those_that_came_over_it_and_no_others() {
    let folded = family();
    folded
        .when(revoke(1))
        .then("east", &[revoked(1), revoked(2), revoked(3), revoked(4)]);
    folded.when(revoke(2)).then("east", &[revoked(2), revoked(3)]);
    folded.when(revoke(3)).then("east", &[revoked(3)]);
    let folded = folded.after(revoke(2));
    let left: Vec<_> = folded
        .state
        .member(&cluster("east"))
        .expect("a member")
        .keys()
        .keys()
        .copied()
        .collect();
    assert_eq!(left, [key(1), key(4)]);
    folded.when(revoke(2)).then_nothing();
    let restored = State::restore(folded.state.snapshot_rows()).expect("restored");
    assert_eq!(restored, folded.state);
}

/// The certificate of the one in between ended, and its place was given up: what came over it still goes.
#[test]
fn a_key_that_has_gone_in_between_saves_nobody() {
    let folded = family();
    let restored = State::restore(folded.state.snapshot_rows()).expect("restored");
    assert_eq!(restored, folded.state);
    let mut folded = folded.after(Command::RevokeKey {
        holder: KeyHolder::Operator("bob".into()),
        key: key(2),
        operator: "ann".into(),
    });
    let keys = |folded: &Folded| {
        folded
            .state
            .member(&cluster("east"))
            .expect("a member")
            .keys()
            .len()
    };
    assert_eq!(keys(&folded), 3, "2 alone is gone");
    folded = folded.after(revoke(1));
    assert_eq!(keys(&folded), 0, "3 came over 1, by 2");
}

#[test]
fn a_key_that_is_refused_already_takes_along_what_came_over_it() {
    let folded = family().after(Command::RevokeKey {
        holder: KeyHolder::Operator("bob".into()),
        key: key(2),
        operator: "ann".into(),
    });
    folded.when(revoke(2)).then("east", &[revoked(3)]);
}

#[test]
fn so_many_keys_are_remembered_as_those_that_another_came_over() {
    let mut folded = given_members(&[]).after(admit("east", 1, "a"));
    let last = u8::try_from(CERTIFIED_OVER_MAX).expect("few") + 3;
    for number in 2..=last {
        let at = folded.state.recorded_at().0 + 60_000 * u64::from(number);
        folded = folded.after(certify(number, number - 1, at));
    }
    let known = &folded.state.member(&cluster("east")).expect("a member").keys()[&key(last)];
    assert_eq!(known.certified_over.len(), CERTIFIED_OVER_MAX);
    assert_eq!(known.certified_over[0], key(last - 1));
    assert!(!known.certified_over.contains(&key(1)));
}

#[test]
fn six_keys_are_certified_in_a_minute_and_more_later() {
    let mut folded = given_members(&[]).after(admit("east", 1, "a"));
    let at = folded.state.recorded_at().0;
    for number in 2..8 {
        folded = folded.after(certify(number, 1, at));
    }
    let last = folded.state.recorded_at().0;
    refused(&folded, certify(8, 1, last), "ask again later");
    folded.after(certify(8, 1, last + 60_000));
}

/// The old key is admitted until its certificate ends. Its return is no reason to doubt the new one.
#[test]
fn the_old_key_contests_nothing_when_it_comes_back() {
    let folded = given_members(&[])
        .after(admit("east", 1, "a"))
        .after(certify(2, 1, 5));
    let Command::Admit {
        cluster,
        key: old,
        cluster_fingerprint,
        ..
    } = admit("east", 1, "a")
    else {
        panic!("another command");
    };
    let back = Command::Admit {
        cluster,
        key: old,
        cluster_fingerprint,
        presented: Presented {
            displaces: Some(key(2)),
            ..Presented::default()
        },
    };
    assert!(matches!(decide(&folded.state, &back), Ok(drafts) if drafts.is_empty()));
}
