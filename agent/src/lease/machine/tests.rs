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
    assert_eq!(
        candidate.look(Some(held("pod-a", 1)), 110 * SECOND),
        wait("pod-a", 40)
    );
    assert_eq!(
        candidate.look(Some(held("pod-a", 1)), 149 * SECOND),
        wait("pod-a", 1)
    );
    assert_eq!(
        candidate.look(Some(held("pod-a", 2)), 149 * SECOND),
        wait("pod-a", 40),
        "renewed"
    );
    assert_eq!(
        candidate.look(Some(held("pod-c", 2)), 150 * SECOND),
        wait("pod-c", 40),
        "taken"
    );
    assert_eq!(
        candidate.look(Some(held("pod-c", 2)), 190 * SECOND),
        take(4, Some(epoch(5)))
    );
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
    assert_eq!(candidate.look(None, 11 * SECOND), wait("pod-a", 30));
    assert_eq!(candidate.look(None, 41 * SECOND), take(4, Some(epoch(5))));
}

#[test]
fn a_holder_knows_how_it_stands() {
    let lost = |holder: &str| Standing::Lost(holder.into());
    let of = |record: Option<Record>| standing("pod-a", 3, record.as_ref());
    assert_eq!(of(Some(held("pod-a", 1))), Standing::Held);
    assert_eq!(of(None), Standing::Gone);
    assert_eq!(of(Some(held("", 1))), Standing::Gone, "emptied by a person");
    assert_eq!(of(Some(held("pod-b", 1))), lost("pod-b"));
    let newer = |holder| Record {
        transitions: 4,
        ..held(holder, 1)
    };
    assert_eq!(
        of(Some(newer("pod-a"))),
        lost("pod-a"),
        "a newer start in the same pod"
    );
    assert_eq!(of(Some(newer(""))), lost(""), "a newer start that has ended");
}

proptest! {
    /// However often it is looked at: a Lease that moves within its duration is never taken, and one that does not
    /// move any more is taken by the first look after its duration.
    #[test]
    fn a_lease_is_taken_when_it_stands_still_and_not_before(looks in proptest::collection::vec((1_u32..40, any::<bool>()), 1..50)) {
        let mut candidate = Candidate::new("pod-b");
        let (mut now, mut renewed, mut moved_at) = (SECOND, 0, SECOND);
        candidate.look(Some(held("pod-a", renewed)), now);
        for (seconds, moves) in looks {
            now += seconds * SECOND;
            if moves || now - moved_at >= 40 * SECOND {
                (renewed, moved_at) = (renewed + 1, now);
            }
            let longest = 40 * SECOND - (now - moved_at);
            let verdict = candidate.look(Some(held("pod-a", renewed)), now);
            prop_assert_eq!(verdict, Verdict::Wait { holder: "pod-a".into(), longest });
        }
        let over = moved_at + 40 * SECOND;
        prop_assert_eq!(candidate.look(Some(held("pod-a", renewed)), over), take(4, Some(epoch(5))));
    }
}
