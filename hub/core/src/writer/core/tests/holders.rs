//! Two agents that want one member: which one keeps it, and which one is asked first.

use super::*;
use crate::writer::SUSPECT_AFTER_MILLIS;
use fold::Connectivity;

/// Two agents of one cluster would withdraw each other's exports.
#[test]
fn a_member_is_held_by_one_agent_until_it_is_silent_or_another_is_newer() {
    let mut core = core();
    let first = admit(&mut core, hello("east", "one", 5)).expect("nobody holds it");
    assert_eq!(admit(&mut core, hello("east", "two", 5)), None);
    assert_eq!(admit(&mut core, hello("east", "two", 4)), None);
    let other = answered(
        hello("east", "two", 5),
        SessionId(first.0 + 1),
        HolderAnswer::Silent,
    );
    assert_eq!(admit(&mut core, other), None, "another session was silent");
    let same = admit(&mut core, hello("east", "one", 5)).expect("it is the same agent");
    assert!(same > first);
    let elected = || hello("east", "two", 6);
    assert_eq!(admit(&mut core, elected()), None, "the holder is asked first");
    for (transitions, copied) in [(4, false), (5, true), (6, true)] {
        let leads = answered(hello("east", "two", transitions), same, HolderAnswer::Leads);
        let batch = handle(&mut core, Request::Admit(1, Box::new(leads)));
        let held = |reply: &Reply| matches!(reply, Reply::NotAdmitted(1, NotAdmitted::Held(holder)) if holder.is_copied == copied);
        assert!(batch.replies.iter().any(held), "elected {transitions} times");
    }
    let lives = answered(elected(), same, HolderAnswer::Lives);
    let newer = admit(&mut core, lives).expect("it has the Lease");
    let silent = answered(hello("east", "three", 6), newer, HolderAnswer::Silent);
    assert!(admit(&mut core, silent).is_some_and(|session| session > newer));
}

/// A second agent comes while the holder is recorded as suspect, and was heard so long before.
fn comes_to_a_suspect(silent: u64) -> Option<SessionId> {
    let mut core = core();
    admit(&mut core, hello("east", "one", 5)).expect("nobody holds it");
    let suspect = Command::Connectivity {
        cluster: id("east"),
        to: Connectivity::Suspect,
    };
    core.decide_and_apply(&suspect).expect("decided");
    let came_at = 10_000;
    core.note_heard(&id("east"), came_at - silent);
    let come = |core: &mut Core, transitions| {
        let request = Request::Admit(1, Box::new(hello("east", "two", transitions)));
        core.handle(request, UnixMillis(2), came_at);
        let mut replies = core.take_batch().replies.into_iter();
        replies.find_map(|reply| match reply {
            Reply::Admitted(1, admission) => Some(admission.welcome.session),
            _ => None,
        })
    };
    assert_eq!(come(&mut core, 5), None, "none was elected");
    come(&mut core, 6)
}

/// A power cut closes no connection: an agent elected after it does not wait for an answer that cannot come.
#[test]
fn who_is_suspect_is_not_asked_whether_another_was_elected() {
    assert!(comes_to_a_suspect(SUSPECT_AFTER_MILLIS).is_some());
}

/// The record of a member that came back changes at the next tick.
#[test]
fn who_was_heard_again_is_asked_though_it_is_recorded_as_suspect() {
    assert_eq!(comes_to_a_suspect(SUSPECT_AFTER_MILLIS - 1), None);
}
