//! Two pods and one Lease.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn epoch(millis: u64) -> Epoch {
    Epoch::default().next(model::UnixMillis(millis), 7)
}

fn held(holder: &str, renewed: i64) -> Record {
    Record {
        holder: holder.into(),
        renewed: Some(renewed),
        duration: 40 * SECOND,
        transitions: 3,
        epoch: Some(epoch(5)),
        given_back: true,
    }
}

fn take(transitions: i32, epoch: Option<Epoch>) -> Verdict {
    Verdict::Take { transitions, epoch }
}

/// A look that is answered at once.
fn look(candidate: &mut Candidate, found: Option<Record>, now: Duration) -> Verdict {
    candidate.look(found, now, now)
}

fn wait(holder: &str, seconds: u32) -> Verdict {
    Verdict::Wait {
        holder: holder.into(),
        longest: seconds * SECOND,
    }
}

#[test]
fn a_lease_that_nobody_has_is_taken_at_once() {
    let mut candidate = Candidate::new("pod-a");
    assert_eq!(look(&mut candidate, None, SECOND), take(1, None));
    assert_eq!(
        look(&mut candidate, Some(held("", 9)), SECOND),
        take(4, Some(epoch(5))),
        "released"
    );
}

#[test]
fn the_same_pod_goes_on_at_once() {
    let mut candidate = Candidate::new("pod-a");
    assert_eq!(
        look(&mut candidate, Some(held("pod-a", 9)), SECOND),
        take(4, Some(epoch(5)))
    );
}

#[test]
fn an_agent_of_the_first_release_is_not_waited_for() {
    let mut candidate = Candidate::new("pod-b");
    let first = Record {
        given_back: false,
        ..held("instance", 9)
    };
    assert_eq!(look(&mut candidate, Some(first), SECOND), take(4, Some(epoch(5))));
}

#[test]
fn another_pod_waits_until_it_saw_the_lease_unmoved_for_its_duration() {
    let mut candidate = Candidate::new("pod-b");
    // Only the movement of the holder's clock counts, not its time.
    for renewed in [i64::MIN, 0, i64::MAX] {
        assert_eq!(
            look(&mut candidate, Some(held("pod-a", renewed)), 100 * SECOND),
            wait("pod-a", 40)
        );
    }
    let mut watch = |holder, renewed, from, to| {
        let looks =
            (from..=to).map(|second| look(&mut candidate, Some(held(holder, renewed)), second * SECOND));
        looks.last().expect("one at least")
    };
    assert_eq!(watch("pod-a", 1, 101, 140), wait("pod-a", 1));
    assert_eq!(watch("pod-a", 2, 140, 140), wait("pod-a", 40), "renewed");
    assert_eq!(watch("pod-c", 2, 141, 141), wait("pod-c", 40), "taken");
    assert_eq!(watch("pod-c", 2, 142, 180), wait("pod-c", 1));
    assert_eq!(watch("pod-c", 2, 181, 181), take(4, Some(epoch(5))));
}

/// An agent of the present release says 40 s and renews every 10 s; one of this release says 6 s and renews every
/// second. Neither takes the Lease of a living other.
#[test]
fn each_release_waits_as_long_as_the_other_one_says() {
    for (duration, interval) in [(40, 10), (6, 1)] {
        let mut candidate = Candidate::new("pod-b");
        for second in 0..200 {
            let record = Record {
                duration: duration * SECOND,
                ..held("pod-a", i64::from(second / interval))
            };
            let verdict = look(&mut candidate, Some(record), second * SECOND);
            assert!(matches!(verdict, Verdict::Wait { .. }), "{second} s: {verdict:?}");
        }
    }
}

/// The API server was away, for the holder too: the first to ask after its return is not the new leader because of
/// that.
#[test]
fn one_who_could_not_look_lets_the_holder_come_back_first() {
    let short = |renewed| Record {
        duration: DURATION,
        ..held("pod-a", renewed)
    };
    let mut candidate = Candidate::new("pod-b");
    assert_eq!(look(&mut candidate, Some(short(1)), SECOND), wait("pod-a", 6));
    assert_eq!(
        look(&mut candidate, Some(short(1)), 31 * SECOND),
        wait("pod-a", 2)
    );
    assert_eq!(
        look(&mut candidate, Some(short(1)), 32 * SECOND),
        wait("pod-a", 1)
    );
    let mut other = candidate.clone();
    assert_eq!(
        look(&mut candidate, Some(short(2)), 33 * SECOND),
        wait("pod-a", 6),
        "it came back"
    );
    assert_eq!(
        look(&mut other, Some(short(1)), 33 * SECOND),
        take(4, Some(epoch(5)))
    );
}

/// A candidate that is answered late sees as much as one that is answered at once.
#[test]
fn a_slow_api_server_does_not_keep_a_dead_holder_in_office() {
    for seconds in 2..=8 {
        let mut candidate = Candidate::new("pod-b");
        let short = Record {
            duration: DURATION,
            ..held("pod-a", 1)
        };
        let takes = Duration::from_millis(100) + seconds * SECOND;
        let mut now = SECOND;
        let took = (0..5).find_map(|_| {
            let asked = now;
            now += takes;
            let verdict = candidate.look(Some(short.clone()), asked, now);
            now += RETRY_PERIOD;
            matches!(verdict, Verdict::Take { .. }).then_some(now)
        });
        assert!(took.is_some(), "{takes:?} for an answer");
    }
}

/// Every other answer comes late, so that none follows a late one.
#[test]
fn an_api_server_that_is_slow_every_other_time_does_not_keep_a_dead_holder_in_office() {
    for (first, second) in [(100, 4_000), (4_000, 100), (1_000, 3_100), (2_900, 9_000)] {
        let mut candidate = Candidate::new("pod-b");
        let short = Record {
            duration: DURATION,
            ..held("pod-a", 1)
        };
        let mut now = SECOND;
        let took = [first, second].into_iter().cycle().take(10).find_map(|millis| {
            let asked = now;
            now += Duration::from_millis(millis);
            let verdict = candidate.look(Some(short.clone()), asked, now);
            now += RETRY_PERIOD;
            matches!(verdict, Verdict::Take { .. }).then_some(now)
        });
        assert!(took.is_some(), "{first} ms and {second} ms for an answer");
    }
}

/// Each renewal that is seen gives the holder its time again.
#[test]
fn a_holder_that_renews_may_come_back_after_each_late_answer() {
    let short = |renewed| Record {
        duration: DURATION,
        ..held("pod-a", renewed)
    };
    let mut candidate = Candidate::new("pod-b");
    look(&mut candidate, Some(short(1)), SECOND);
    let late = candidate.look(Some(short(1)), 2 * SECOND, 31 * SECOND);
    assert_eq!(late, wait("pod-a", 2));
    assert_eq!(
        look(&mut candidate, Some(short(2)), 32 * SECOND),
        wait("pod-a", 6)
    );
    let late = candidate.look(Some(short(2)), 33 * SECOND, 61 * SECOND);
    assert_eq!(late, wait("pod-a", 2));
}

/// The API server hung and continues: the holder's renewal was under way as the candidate's look was.
#[test]
fn one_whose_look_was_answered_late_once_lets_the_holder_come_back_first() {
    let short = Record {
        duration: DURATION,
        ..held("pod-a", 1)
    };
    let mut candidate = Candidate::new("pod-b");
    look(&mut candidate, Some(short.clone()), SECOND);
    let thawed = candidate.look(Some(short.clone()), 2 * SECOND, 31 * SECOND);
    assert_eq!(thawed, wait("pod-a", 2));
    assert_eq!(
        look(&mut candidate, Some(short), 33 * SECOND),
        take(4, Some(epoch(5)))
    );
}

#[test]
fn a_lease_that_is_released_is_not_waited_for() {
    let mut candidate = Candidate::new("pod-b");
    assert_eq!(
        look(&mut candidate, Some(held("pod-a", 1)), SECOND),
        wait("pod-a", 40)
    );
    assert_eq!(
        look(&mut candidate, Some(held("", 2)), 2 * SECOND),
        take(4, Some(epoch(5)))
    );
}

#[test]
fn a_lease_that_is_deleted_under_its_holder_is_not_free_yet_and_its_epoch_is_known() {
    let mut candidate = Candidate::new("pod-b");
    assert_eq!(
        look(&mut candidate, Some(held("pod-a", 1)), SECOND),
        wait("pod-a", 40)
    );
    let gone: Vec<Verdict> = (2..=41)
        .map(|second| look(&mut candidate, None, second * SECOND))
        .collect();
    assert_eq!(gone[9], wait("pod-a", 30));
    assert_eq!(gone[38], wait("pod-a", 1));
    assert_eq!(gone[39], take(4, Some(epoch(5))));
}

proptest! {
    /// However often it is looked at: a Lease that moves within its duration is never taken, and one that does not
    /// move any more is taken by the first look after its duration, or a moment later by one who could not look.
    #[test]
    fn a_lease_is_taken_when_it_stands_still_and_not_before(looks in proptest::collection::vec((1_u32..40, any::<bool>()), 1..50)) {
        let mut candidate = Candidate::new("pod-b");
        let (mut now, mut renewed, mut moved_at, mut over) = (SECOND, 0, SECOND, 41 * SECOND);
        look(&mut candidate, Some(held("pod-a", renewed)), now);
        for (seconds, moves) in looks {
            now += seconds * SECOND;
            if moves || now - moved_at >= 40 * SECOND {
                (renewed, moved_at) = (renewed + 1, now);
                over = now + 40 * SECOND;
            } else if seconds * SECOND > BLIND_MAX {
                over = over.max(now + RETURN_WAIT);
            }
            let verdict = look(&mut candidate, Some(held("pod-a", renewed)), now);
            prop_assert_eq!(verdict, Verdict::Wait { holder: "pod-a".into(), longest: over - now });
        }
        while now < over {
            prop_assert!(look(&mut candidate, Some(held("pod-a", renewed)), now) != take(4, Some(epoch(5))));
            now += SECOND;
        }
        prop_assert_eq!(look(&mut candidate, Some(held("pod-a", renewed)), over), take(4, Some(epoch(5))));
    }
}
