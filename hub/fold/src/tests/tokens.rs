//! Tokens with which clusters join: which clusters get a certificate, and which do not.

use model::{JoinToken, TokenHash, UnixMillis, token::TOKEN_MILLIS_MAX};

use super::given::{Folded, admit, cluster, evict, given_members, key};
use crate::{
    Command, Grant, Rejection, State, TOKEN_REMEMBERED_MILLIS, TOKEN_USES_OF_ALL_MAX, may_join, token_time,
};

/// Time at which tokens of these tests expire.
const END: UnixMillis = UnixMillis(1_000_000);
const NOW: UnixMillis = UnixMillis(500_000);

fn token(number: u8) -> TokenHash {
    TokenHash([number; 32])
}

fn create_until(number: u8, ids: &str, uses: u32, expires_at: UnixMillis, at: UnixMillis) -> Command {
    Command::CreateToken {
        token: JoinToken {
            hash: token(number),
            scope: ids.parse().unwrap(),
            uses,
            expires_at,
        },
        operator: "ann".into(),
        at,
    }
}

fn create(number: u8, ids: &str, uses: u32) -> Command {
    create_until(number, ids, uses, END, UnixMillis(0))
}

fn join(number: u8, id: &str, with: u8) -> Command {
    Command::Join {
        token: token(number),
        cluster: cluster(id),
        key: key(with),
        certificate: format!("certificate of {id} for {with}").into(),
        at: NOW,
    }
}

fn revoke(number: u8) -> Command {
    Command::RevokeToken {
        token: token(number),
        operator: "ann".into(),
    }
}

fn asked(folded: &Folded, number: u8, id: &str, with: u8) -> Result<Grant, Rejection> {
    may_join(&folded.state, token(number), &cluster(id), key(with), NOW)
}

fn refused(folded: &Folded, number: u8, id: &str, with: u8, why: &str) {
    let said = asked(folded, number, id, with).expect_err(why).to_string();
    assert!(said.contains(why), "{said}");
    let (mut tried, before) = (folded.clone(), folded.events.len());
    assert!(tried.carry_out(&join(number, id, with)).is_err(), "{why}");
    assert_eq!(tried.events.len(), before, "nothing is recorded: {why}");
}

#[test]
fn a_token_gives_one_key_one_certificate_and_the_same_one_again() {
    let folded = Folded::default().after(create(1, "east", 1));
    assert_eq!(asked(&folded, 1, "east", 7), Ok(Grant::New));
    let folded = folded.after(join(1, "east", 7));
    // An answer got lost: the same token with the same key is given what was recorded, and nothing new is.
    let given = Grant::Again("certificate of east for 7".into());
    assert_eq!(asked(&folded, 1, "east", 7), Ok(given.clone()));
    let mut again = folded.clone();
    again.carry_out(&join(1, "east", 7)).unwrap();
    assert_eq!(again.events.len(), folded.events.len());
    // The cluster has come: still the same.
    let joined = folded.after(admit("east", 7, "uid"));
    assert_eq!(asked(&joined, 1, "east", 7), Ok(given));
}

#[test]
fn another_key_is_given_nothing_for_a_token_that_was_used() {
    let folded = Folded::default()
        .after(create(1, "east", 1))
        .after(join(1, "east", 7));
    refused(&folded, 1, "east", 8, "is taken");
    let folded = Folded::default()
        .after(create(1, "p-*", 1))
        .after(join(1, "p-1", 7));
    refused(&folded, 1, "p-2", 8, "is spent");
    refused(&folded, 1, "p-2", 7, "was given cluster id p-1");
}

#[test]
fn a_token_that_expired_was_revoked_or_is_of_another_hub_gives_nothing() {
    let folded = Folded::default().after(create(1, "east", 1));
    for (at, granted) in [(END.0 - 1, true), (END.0, false), (END.0 + 1, false)] {
        let asked = may_join(&folded.state, token(1), &cluster("east"), key(7), UnixMillis(at));
        assert_eq!(asked.is_ok(), granted, "{at}");
    }
    refused(&folded, 2, "east", 7, "knows no such token");
    refused(&folded, 1, "west", 7, "only for east");
    let used = folded.clone().after(join(1, "east", 7)).after(revoke(1));
    refused(&used, 1, "east", 7, "was revoked");
    refused(&folded.after(revoke(1)), 1, "east", 7, "was revoked");
}

/// The clock is behind what the log recorded last.
#[test]
fn a_clock_that_is_set_back_revives_no_token_and_new_ones_last_as_long_as_they_should() {
    let folded = Folded::default().after(create(1, "east", 1));
    let mut later = folded.clone();
    later.state.recorded_at = END;
    let asked = |folded: &Folded| may_join(&folded.state, token(1), &cluster("east"), key(7), NOW);
    assert_eq!(asked(&folded), Ok(Grant::New));
    let refused = asked(&later).expect_err("it expired").to_string();
    assert!(refused.contains("expired"), "{refused}");
    assert_eq!(token_time(&later.state, NOW), END);
    let past = create_until(2, "west", 1, END, NOW);
    assert!(
        later.carry_out(&past).is_err(),
        "it would have expired before it was made"
    );
    let lasting = create_until(3, "west", 1, UnixMillis(END.0 + 10), NOW);
    assert!(later.carry_out(&lasting).is_ok());
}

#[test]
fn an_id_that_somebody_has_is_not_given_away() {
    let folded = given_members(&["p-1"])
        .after(create(1, "p-*", 9))
        .after(create(2, "p-*", 9));
    refused(&folded, 1, "p-1", 7, "a member has it");
    // Its own key may come: an agent that lost its certificate and kept its key.
    assert_eq!(asked(&folded, 1, "p-1", 1), Ok(Grant::New));
    // A cluster that got a certificate and has not come yet.
    let folded = folded.after(join(1, "p-2", 7));
    refused(&folded, 2, "p-2", 8, "has not come yet");
    assert_eq!(
        asked(&folded.clone().after(revoke(1)), 2, "p-2", 8),
        Ok(Grant::New)
    );
    refused(&folded.after(evict("p-1")), 2, "p-1", 8, "ended by an operator");
}

#[test]
fn a_pattern_lets_as_many_join_as_it_says() {
    let mut folded = Folded::default().after(create(1, "p-*", 50));
    for number in 0..50 {
        folded = folded.after(join(1, &format!("p-{number}"), number));
    }
    refused(&folded, 1, "p-50", 50, "is spent");
    assert_eq!(folded.state.join_tokens().get(&token(1)).unwrap().used.len(), 50);
    let restored = State::restore(folded.state.snapshot_rows()).unwrap();
    assert_eq!(restored, folded.state);
}

#[test]
fn tokens_are_bounded_and_forgotten_a_day_after_they_expired() {
    let mut folded = Folded::default();
    for (command, why) in [
        (create(1, "east", 0), "0 uses"),
        (create(1, "p-*", 1_025), "1025 uses"),
        (create(1, "east", 2), "one use"),
        (create_until(1, "east", 1, NOW, NOW), "at most 30 days"),
        (
            create_until(1, "east", 1, UnixMillis(TOKEN_MILLIS_MAX + 1), UnixMillis(0)),
            "at most 30 days",
        ),
    ] {
        let said = folded.carry_out(&command).expect_err(why).to_string();
        assert!(said.contains(why), "{said}");
    }
    for number in 0..4 {
        folded = folded.after(create(number, "p-*", 1_024));
    }
    assert_eq!(TOKEN_USES_OF_ALL_MAX, 4 * 1_024);
    let said = folded
        .carry_out(&create(9, "east", 1))
        .expect_err("full")
        .to_string();
    assert!(said.contains("token list"), "{said}");
    let later = UnixMillis(END.0 + TOKEN_REMEMBERED_MILLIS);
    let end = UnixMillis(later.0 + 1);
    folded
        .carry_out(&create_until(9, "east", 1, end, later))
        .expect("the others count no more");
    // Revoking gives back what was not used.
    let mut folded = Folded::default();
    for number in 0..4 {
        folded = folded.after(create(number, "p-*", 1_024));
    }
    folded
        .after(revoke(0))
        .carry_out(&create(9, "east", 1))
        .expect("there is room");
}
