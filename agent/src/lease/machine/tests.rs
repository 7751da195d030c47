//! Two pods and one Lease.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn epoch(millis: u64) -> Epoch {
    Epoch::default().next(shared::model::UnixMillis(millis), 7)
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

fn wait(holder: &str, seconds: u32) -> Verdict {
    Verdict::Wait {
        holder: holder.into(),
        longest: seconds * SECOND,
    }
}

#[test]
fn a_lease_that_nobody_has_is_taken_at_once() {
    let mut candidate = Candidate::new("pod-a");
    assert_eq!(candidate.look(None, SECOND), take(1, None));
    assert_eq!(
        candidate.look(Some(held("", 9)), SECOND),
        take(4, Some(epoch(5))),
        "released"
    );
}

#[test]
fn the_same_pod_goes_on_at_once() {
    let mut candidate = Candidate::new("pod-a");
    assert_eq!(
        candidate.look(Some(held("pod-a", 9)), SECOND),
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
    assert_eq!(candidate.look(Some(first), SECOND), take(4, Some(epoch(5))));
}

#[test]
fn another_pod_waits_until_it_saw_the_lease_unmoved_for_its_duration() {
    let mut candidate = Candidate::new("pod-b");
    // What the holder's clock says is nothing to us: only that it moves.
    for renewed in [i64::MIN, 0, i64::MAX] {
        assert_eq!(
            candidate.look(Some(held("pod-a", renewed)), 100 * SECOND),
            wait("pod-a", 40)
        );
    }
    let mut watch = |holder, renewed, from, to| {
        let looks = (from..=to).map(|second| candidate.look(Some(held(holder, renewed)), second * SECOND));
        looks.last().expect("one at least")
    };
    assert_eq!(watch("pod-a", 1, 101, 140), wait("pod-a", 1));
    assert_eq!(watch("pod-a", 2, 140, 140), wait("pod-a", 40), "renewed");
    assert_eq!(watch("pod-c", 2, 141, 141), wait("pod-c", 40), "taken");
    assert_eq!(watch("pod-c", 2, 142, 180), wait("pod-c", 1));
    assert_eq!(watch("pod-c", 2, 181, 181), take(4, Some(epoch(5))));
}

/// An agent of the present release says 40 s and renews every 10 s; one of this release says 6 s and renews every
/// second. Neither takes the Lease of the other while that one lives.
#[test]
fn each_release_waits_as_long_as_the_other_one_says() {
    for (duration, interval) in [(40, 10), (6, 1)] {
        let mut candidate = Candidate::new("pod-b");
        for second in 0..200 {
            let record = Record {
                duration: duration * SECOND,
                ..held("pod-a", i64::from(second / interval))
            };
            let verdict = candidate.look(Some(record), second * SECOND);
            assert!(matches!(verdict, Verdict::Wait { .. }), "{second} s: {verdict:?}");
        }
    }
}

/// The API server was away, for the holder too: whoever asks first when it comes back is not the new leader for that.
#[test]
fn one_who_could_not_look_lets_the_holder_come_back_first() {
    let short = |renewed| Record {
        duration: DURATION,
        ..held("pod-a", renewed)
    };
    let mut candidate = Candidate::new("pod-b");
    assert_eq!(candidate.look(Some(short(1)), SECOND), wait("pod-a", 6));
    assert_eq!(candidate.look(Some(short(1)), 31 * SECOND), wait("pod-a", 2));
    assert_eq!(candidate.look(Some(short(1)), 32 * SECOND), wait("pod-a", 1));
    let mut other = candidate.clone();
    assert_eq!(
        candidate.look(Some(short(2)), 33 * SECOND),
        wait("pod-a", 6),
        "it came back"
    );
    assert_eq!(other.look(Some(short(1)), 33 * SECOND), take(4, Some(epoch(5))));
}

#[test]
fn a_lease_that_is_released_is_not_waited_for() {
    let mut candidate = Candidate::new("pod-b");
    assert_eq!(candidate.look(Some(held("pod-a", 1)), SECOND), wait("pod-a", 40));
    assert_eq!(
        candidate.look(Some(held("", 2)), 2 * SECOND),
        take(4, Some(epoch(5)))
    );
}

#[test]
fn a_lease_that_is_deleted_under_its_holder_is_not_free_yet_and_its_epoch_is_known() {
    let mut candidate = Candidate::new("pod-b");
    assert_eq!(candidate.look(Some(held("pod-a", 1)), SECOND), wait("pod-a", 40));
    let gone: Vec<Verdict> = (2..=41)
        .map(|second| candidate.look(None, second * SECOND))
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
        candidate.look(Some(held("pod-a", renewed)), now);
        for (seconds, moves) in looks {
            now += seconds * SECOND;
            if moves || now - moved_at >= 40 * SECOND {
                (renewed, moved_at) = (renewed + 1, now);
                over = now + 40 * SECOND;
            } else if seconds * SECOND > BLIND_MAX {
                over = over.max(now + RETURN_WAIT);
            }
            let verdict = candidate.look(Some(held("pod-a", renewed)), now);
            prop_assert_eq!(verdict, Verdict::Wait { holder: "pod-a".into(), longest: over - now });
        }
        while now < over {
            prop_assert!(candidate.look(Some(held("pod-a", renewed)), now) != take(4, Some(epoch(5))));
            now += SECOND;
        }
        prop_assert_eq!(candidate.look(Some(held("pod-a", renewed)), over), take(4, Some(epoch(5))));
    }
}
