//! Members that are to leave: their memberships end when their time is over, with their sessions.

use super::*;
use crate::writer::{GRACE_AT_START_MILLIS, TICK_MILLIS};
use fold::{Departure, MemberStatus};

/// An operator has east leave ten seconds after the hub's time.
fn drain() -> Command {
    Command::Depart {
        cluster: id("east"),
        departure: Departure::Ordered {
            operator: "alice".into(),
            at: UnixMillis(2),
            after_millis: 10_000,
            evicts: false,
        },
    }
}

fn status(core: &Core) -> MemberStatus {
    core.state().member(&id("east")).expect("known").status()
}

/// Ticks while east is heard, until it has left; returns the time.
fn until_it_left(core: &mut Core, from: u64) -> u64 {
    let ticks = (1..1_000).map(|tick| from + tick * TICK_MILLIS);
    for now in ticks {
        core.tick(UnixMillis(2 + now), now, [(id("east"), now)]);
        if status(core) != MemberStatus::Joined {
            return now;
        }
    }
    panic!("it never left")
}

#[test]
fn a_membership_ends_with_its_session_when_its_time_is_over() {
    let mut core = core();
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    assert_eq!(operate(&mut core, drain(), false).events.len(), 0, "only tried");
    assert_eq!(operate(&mut core, drain(), true).events.len(), 1);
    assert!(core.take_batch().events.is_empty());
    let left = until_it_left(&mut core, 0);
    assert!((10_000..=10_000 + 2 * TICK_MILLIS).contains(&left), "{left}");
    let batch = core.take_batch();
    assert_eq!(batch.events.len(), 1);
    let closed = |reply: &Reply| matches!(reply, Reply::Close(closed, _) if *closed == session);
    assert!(batch.replies.iter().any(closed), "{:?}", batch.replies);
    let sources = batch.sources.expect("told");
    assert!(sources[0].ended, "its objects may go everywhere");
    assert!(
        admit(&mut core, hello("east", "one", 2)).is_none(),
        "its key stays refused"
    );
}

#[test]
fn who_stays_in_time_stays() {
    let mut core = core();
    admit(&mut core, hello("east", "one", 1)).expect("admitted");
    operate(&mut core, drain(), true);
    let stay = Command::Depart {
        cluster: id("east"),
        departure: Departure::TakenBack {
            operator: "alice".into(),
        },
    };
    assert_eq!(operate(&mut core, stay, true).events.len(), 1);
    for tick in 1..100 {
        let now = tick * TICK_MILLIS;
        core.tick(UnixMillis(2 + now), now, [(id("east"), now)]);
    }
    assert_eq!(status(&core), MemberStatus::Joined);
}

#[test]
fn a_hub_that_starts_when_the_time_is_over_leaves_a_grace_for_a_word() {
    let mut core = core();
    admit(&mut core, hello("east", "one", 1)).expect("admitted");
    operate(&mut core, drain(), true);
    let mut core = started_again(core);
    // A day went by without a hub.
    core.tick(UnixMillis(86_400_000), TICK_MILLIS, [(id("east"), TICK_MILLIS)]);
    assert_eq!(status(&core), MemberStatus::Joined);
    let left = until_it_left(&mut core, TICK_MILLIS);
    assert_eq!(left, TICK_MILLIS + GRACE_AT_START_MILLIS);
}

/// A clock was ahead for a moment, or the hub moved to a machine whose clock is a little behind.
#[test]
fn a_clock_that_was_set_back_ends_no_membership_early() {
    let mut core = core();
    admit(&mut core, hello("east", "one", 1)).expect("admitted");
    // For one tick the wall clock is an hour ahead; nothing is recorded.
    core.tick(UnixMillis(3_600_000), TICK_MILLIS, [(id("east"), TICK_MILLIS)]);
    assert!(core.take_batch().events.is_empty());
    // It is right again. An operator has east leave ten minutes from now.
    let drain = Command::Depart {
        cluster: id("east"),
        departure: Departure::Ordered {
            operator: "alice".into(),
            at: UnixMillis(1_000),
            after_millis: 600_000,
            evicts: true,
        },
    };
    operate(&mut core, drain, true);
    core.tick(
        UnixMillis(1_500),
        2 * TICK_MILLIS,
        [(id("east"), 2 * TICK_MILLIS)],
    );
    assert_eq!(status(&core), MemberStatus::Joined, "it was to have ten minutes");
}

/// The wall clock is set between the decision and the next tick.
#[test]
fn the_time_of_a_departure_begins_with_the_decision() {
    for clock in [1, 3_600_000] {
        let mut core = core();
        admit(&mut core, hello("east", "one", 1)).expect("admitted");
        let drain = Command::Depart {
            cluster: id("east"),
            departure: Departure::Ordered {
                operator: "alice".into(),
                at: UnixMillis(1_000_000),
                after_millis: 600_000,
                evicts: true,
            },
        };
        operate(&mut core, drain, true);
        let ticks = (1..).map(|tick| tick * TICK_MILLIS);
        let mut left = ticks.filter(|now| {
            core.tick(UnixMillis(clock + now), *now, [(id("east"), *now)]);
            status(&core) != MemberStatus::Joined
        });
        assert_eq!(
            left.next(),
            Some(600_000 + TICK_MILLIS),
            "by a clock that shows {clock}"
        );
    }
}
