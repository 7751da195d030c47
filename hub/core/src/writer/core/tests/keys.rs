//! Keys that come for a member beside the one that it has: renewals, duplicates, revocations.

use super::*;

/// A Hello under another key, whose certificate's issuer is trusted for renewal.
fn renewing(key: u8, instance: &str, lease_transitions: i64) -> AdmitRequest {
    AdmitRequest {
        key: KeyFingerprint([key; 32]),
        presented: Presented {
            renewable: true,
            ..Presented::default()
        },
        ..hello("east", instance, lease_transitions)
    }
}

fn answer(batch: &Batch) -> &NotAdmitted {
    let answers = batch.replies.iter().find_map(|reply| match reply {
        Reply::NotAdmitted(1, not) => Some(not),
        _ => None,
    });
    answers.expect("not admitted")
}

#[test]
fn a_renewed_key_takes_over_from_nobody_who_answers() {
    let mut core = core();
    let first = admit(&mut core, hello("east", "one", 5)).expect("nobody holds it");
    // From an unknown key neither the same agent's claim nor a later election counts.
    for (instance, transitions) in [("one", 5), ("two", 9)] {
        let batch = handle(
            &mut core,
            Request::Admit(1, Box::new(renewing(2, instance, transitions))),
        );
        let held = matches!(answer(&batch), NotAdmitted::Held(holder) if holder.session == first);
        assert!(held, "{:?}", answer(&batch));
    }
    let lives = answered(renewing(2, "two", 9), first, HolderAnswer::Lives);
    let batch = handle(&mut core, Request::Admit(1, Box::new(lives)));
    assert!(matches!(answer(&batch), NotAdmitted::Duplicate(why) if why.contains("member rekey east")));
    assert_eq!(batch.events.len(), 1, "the alarm is recorded");
    let silent = answered(renewing(2, "two", 9), first, HolderAnswer::Silent);
    let batch = handle(&mut core, Request::Admit(1, Box::new(silent)));
    assert!(
        matches!(answer(&batch), NotAdmitted::Duplicate(_)),
        "until an operator's word"
    );
    assert_eq!((batch.events.len(), core.sessions.len()), (0, 1));

    let third = answered(renewing(3, "three", 5), first, HolderAnswer::Silent);
    assert!(admit(&mut core, third).is_some(), "nobody answered");
}

/// Agents that are elected take turns under keys of their own; two that are not are two clusters.
#[test]
fn two_keys_in_turn_are_a_duplicate_unless_an_election_explains_it() {
    for (transitions, contested) in [(6, false), (5, true)] {
        let mut core = core();
        let first = admit(&mut core, hello("east", "one", 4)).expect("nobody holds it");
        core.closed(first, &id("east"), 1);
        let later = Request::Admit(1, Box::new(renewing(2, "two", 5)));
        core.handle(later, UnixMillis(50), 1);
        let second = match &core.take_batch().replies[..] {
            [Reply::Admitted(1, admission)] => admission.welcome.session,
            other => panic!("{other:?}"),
        };
        core.closed(second, &id("east"), 1);
        assert!(
            admit(&mut core, hello("east", "one", transitions)).is_some(),
            "the first is kept"
        );
        let member = core.state().current_member(&id("east")).expect("a member");
        assert_eq!(member.contested_keys().len(), usize::from(contested));
        assert_eq!(member.keys().len(), 2 - usize::from(contested));
    }
}

#[test]
fn a_session_ends_with_its_key_and_the_member_stays() {
    let mut core = core();
    let session = admit(&mut core, hello("east", "one", 5)).expect("nobody holds it");
    let revoke = |key: u8| Command::RevokeKey {
        holder: KeyHolder::Member(id("east")),
        key: KeyFingerprint([key; 32]),
        operator: "alice".into(),
    };
    let closes = |batch: &Batch| {
        let replies = batch.replies.iter();
        let mut closed = replies.filter_map(|reply| match reply {
            Reply::Close(session, why) => Some((*session, why.clone())),
            _ => None,
        });
        closed.next()
    };
    assert!(
        closes(&operate(&mut core, revoke(1), false)).is_none(),
        "a dry run"
    );
    assert!(
        closes(&operate(&mut core, revoke(9), true)).is_none(),
        "another key"
    );
    let (closed, why) = closes(&operate(&mut core, revoke(1), true)).expect("closed");
    assert_eq!(closed, session);
    assert!(why.contains("revoked"), "{why}");
    assert!(core.state().current_member(&id("east")).is_some());
    let batch = handle(&mut core, Request::Admit(1, Box::new(hello("east", "one", 5))));
    assert!(matches!(answer(&batch), NotAdmitted::Refused(why) if why.contains("revoked")));
    let again = started_again(core);
    assert_eq!(again.state().revoked_keys().len(), 2);
}

/// A holder of an agent's very key may claim the last possible election. An operator's decision ends it, and a later
/// holder of another key is not compared with that claim.
#[test]
fn a_holder_of_the_last_election_there_is_goes_with_its_key() {
    let mut core = core();
    let first = admit(&mut core, hello("east", "one", 5)).expect("nobody holds it");
    let stolen = answered(hello("east", "thief", i64::MAX), first, HolderAnswer::Lives);
    let thief = admit(&mut core, stolen).expect("a later election takes over");
    let revoke = Command::RevokeKey {
        holder: KeyHolder::Member(id("east")),
        key: KeyFingerprint([1; 32]),
        operator: "alice".into(),
    };
    operate(&mut core, revoke, true);
    core.closed(thief, &id("east"), 1);
    let rightful = admit(&mut core, renewing(2, "one", 6));
    let rightful = rightful.expect("the member's own agent comes back with a new key");
    let member = core.state().current_member(&id("east")).expect("a member");
    assert!(
        member.contested_keys().is_empty(),
        "nobody is a duplicate of a key that is gone"
    );
    assert!(member.keys().contains_key(&KeyFingerprint([2; 32])));
    let elected = answered(renewing(2, "two", 7), rightful, HolderAnswer::Lives);
    assert!(
        admit(&mut core, elected).is_some(),
        "and elections count from there"
    );
}
