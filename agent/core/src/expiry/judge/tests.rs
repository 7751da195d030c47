//! Tests of the end of a source's Lease, for any clocks and any writes of people.

use proptest::prelude::*;

use super::*;

const DURATION: Duration = Duration::from_secs(900);
const LOOK: Duration = Duration::from_secs(60);

fn cluster(name: &str) -> ClusterId {
    ClusterId::new(name).expect("an id")
}

fn lease(version: u32, on_expiry: Option<LossAction>) -> SourceLease {
    SourceLease {
        stamp: Stamp {
            uid: "uid".into(),
            version: version.to_string().into(),
        },
        duration: DURATION,
        on_expiry,
    }
}

fn of_east(lease: SourceLease) -> BTreeMap<ClusterId, SourceLease> {
    [(cluster("east"), lease)].into()
}

fn judge() -> Judge {
    Judge::new(DURATION, LOOK)
}

/// A look that is answered at once, of an agent that can write and keeps nothing.
fn look(judge: &mut Judge, found: &SourceLease, now: u64) -> BTreeMap<ClusterId, Over> {
    let look = Look {
        asked: Duration::from_secs(now),
        answered: Duration::from_secs(now),
        could_write: true,
    };
    judge.look(&of_east(found.clone()), &BTreeSet::new(), look)
}

/// Looks every [`LOOK`] from then until then; whether the last look said that it is over.
fn looks(judge: &mut Judge, found: &SourceLease, from: u64, until: u64) -> bool {
    let mut over = false;
    for second in (from..=until).step_by(60) {
        over = !look(judge, found, second).is_empty();
    }
    over
}

#[test]
fn a_lease_is_over_when_it_was_seen_unmoved_for_its_whole_time_and_not_before() {
    let (mut judge, found) = (judge(), lease(1, Some(LossAction::Withdraw)));
    assert!(!looks(&mut judge, &found, 600, 1_440));
    assert!(looks(&mut judge, &found, 1_500, 1_500));
    let over = look(&mut judge, &found, 1_510);
    assert_eq!(over[&cluster("east")].stamp, found.stamp);
}

#[test]
fn whatever_touches_it_begins_its_time_anew() {
    let mut judge = judge();
    assert!(!looks(&mut judge, &lease(1, Some(LossAction::Withdraw)), 0, 840));
    assert!(!looks(
        &mut judge,
        &lease(2, Some(LossAction::Withdraw)),
        900,
        1_740
    ));
    let another = SourceLease {
        stamp: Stamp {
            uid: "another".into(),
            version: "2".into(),
        },
        ..lease(2, Some(LossAction::Withdraw))
    };
    assert!(!looks(&mut judge, &another, 1_800, 2_640));
    assert!(looks(&mut judge, &another, 2_700, 2_700));
}

#[test]
fn who_could_not_look_waits_anew() {
    let (mut judge, found) = (judge(), lease(1, Some(LossAction::Withdraw)));
    assert!(!looks(&mut judge, &found, 0, 600));
    // Nobody could have renewed it, as far as this observer knows.
    assert!(!looks(&mut judge, &found, 800, 1_640));
    assert!(looks(&mut judge, &found, 1_700, 1_700));
}

/// A slow API server answers late at every look, and no look is missed for that.
#[test]
fn who_is_answered_late_looks_all_the_same() {
    let (mut judge, found) = (
        Judge::new(DURATION, Duration::from_secs(1)),
        lease(1, Some(LossAction::Withdraw)),
    );
    let over = (0..200).any(|number| {
        let look = Look {
            asked: Duration::from_secs(number * 5),
            answered: Duration::from_secs(number * 5 + 4),
            could_write: true,
        };
        !judge
            .look(&of_east(found.clone()), &BTreeSet::new(), look)
            .is_empty()
    });
    assert!(over);
}

/// An API server that takes no writes lets nobody renew a Lease, and answers every look.
#[test]
fn who_could_not_write_waits_anew() {
    let (mut judge, found) = (judge(), lease(1, Some(LossAction::Withdraw)));
    assert!(!looks(&mut judge, &found, 0, 600));
    for second in (660..=6_000).step_by(60) {
        let look = Look {
            asked: Duration::from_secs(second),
            answered: Duration::from_secs(second),
            could_write: false,
        };
        assert!(
            judge
                .look(&of_east(found.clone()), &BTreeSet::new(), look)
                .is_empty()
        );
    }
    assert!(!looks(&mut judge, &found, 6_060, 6_840));
    assert!(looks(&mut judge, &found, 6_900, 6_900));
}

/// A source that this agent's own session confirms does not expire here, whatever prevents the renewal of its Lease;
/// once the session is gone the Lease has its whole time.
#[test]
fn who_keeps_a_source_never_sees_it_expire() {
    let (mut judge, found) = (judge(), lease(1, Some(LossAction::Withdraw)));
    let kept = |judge: &mut Judge, second| {
        let look = Look {
            asked: Duration::from_secs(second),
            answered: Duration::from_secs(second),
            could_write: true,
        };
        judge.look(&of_east(found.clone()), &[cluster("east")].into(), look)
    };
    assert!(
        (0..=6_000)
            .step_by(60)
            .all(|second| kept(&mut judge, second).is_empty())
    );
    assert!(!looks(&mut judge, &found, 6_060, 6_840));
    assert!(looks(&mut judge, &found, 6_900, 6_960));
    assert!(kept(&mut judge, 7_020).is_empty(), "a hub confirms it again");
}

#[test]
fn what_was_over_stays_so_until_it_moves_whoever_looks_away() {
    let (mut judge, found) = (judge(), lease(1, Some(LossAction::NotReady)));
    assert!(looks(&mut judge, &found, 0, 900));
    assert!(looks(&mut judge, &found, 5_000, 5_000));
    assert!(!looks(
        &mut judge,
        &lease(2, Some(LossAction::NotReady)),
        5_060,
        5_060
    ));
}

#[test]
fn nothing_expires_under_retain_or_when_it_does_not_say() {
    for on_expiry in [Some(LossAction::Retain), None] {
        let mut judge = judge();
        assert!(!looks(&mut judge, &lease(1, on_expiry), 0, 100_020));
    }
}

#[test]
fn a_shorter_time_that_somebody_wrote_into_it_counts_for_nothing() {
    let (mut judge, found) = (judge(), lease(1, Some(LossAction::Withdraw)));
    let short = SourceLease {
        duration: Duration::from_secs(1),
        ..found
    };
    assert!(!looks(&mut judge, &short, 0, 840));
    let long = SourceLease {
        duration: DURATION * 2,
        ..lease(2, Some(LossAction::Withdraw))
    };
    assert!(!looks(&mut judge, &long, 900, 2_640));
    assert!(looks(&mut judge, &long, 2_700, 2_700));
}

proptest! {
    /// The law: an observer that calls it over has seen it unmoved, at looks without a long gap, for its whole time.
    #[test]
    fn nothing_is_over_that_did_not_stand_still_for_a_whole_time(
        steps in proptest::collection::vec((0_u64..400, any::<bool>()), 1..120)
    ) {
        let (mut judge, mut now, mut version) = (judge(), 0_u64, 1);
        let mut unmoved_since = None;
        let mut was_over = false;
        for (wait, moves) in steps {
            now += wait;
            if moves && wait % 7 == 0 {
                version += 1;
                (unmoved_since, was_over) = (None, false);
            }
            if wait > 180 && !was_over {
                unmoved_since = None;
            }
            let since = *unmoved_since.get_or_insert(now);
            let over = look(&mut judge, &lease(version, Some(LossAction::Withdraw)), now);
            prop_assert_eq!(!over.is_empty(), was_over || now - since >= 900);
            was_over = !over.is_empty();
        }
    }
}

#[test]
fn a_lease_is_late_from_half_of_its_time_until_it_is_over() {
    let (mut judge, found) = (judge(), lease(1, Some(LossAction::Withdraw)));
    let is_late = |judge: &Judge| judge.late().eq([&cluster("east")]);
    looks(&mut judge, &found, 0, 420);
    assert!(!is_late(&judge), "a renewal may fail once");
    looks(&mut judge, &found, 480, 480);
    assert!(is_late(&judge));
    looks(&mut judge, &found, 540, 900);
    assert!(!is_late(&judge), "it is over");
    let mut of_nobody = self::judge();
    looks(&mut of_nobody, &lease(1, Some(LossAction::Retain)), 0, 480);
    assert!(!is_late(&of_nobody), "nothing goes when it is over");
}
