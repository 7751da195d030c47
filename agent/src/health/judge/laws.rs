//! Laws of every verdict, for any answers and any movement of Leases: no flap under the thresholds.

use proptest::prelude::*;

use super::*;
use crate::health::{
    leases::{Form, IdentityLease, Picture},
    probes::FAILURES_IN_A_ROW,
};

/// Seconds between two looks.
const TURN: u64 = 5;
/// Seconds without movement after which a Lease is dead.
const DEAD: u64 = 60;

/// One look: the answers of /readyz and /livez, and whether the Leases of servers and leaders have moved.
#[derive(Debug, Clone)]
struct Look {
    readyz: Answer,
    livez: Answer,
    moves: bool,
}

fn answer() -> impl Strategy<Value = Answer> {
    let failed = |check: &str| Answer::Failed(vec![check.into()]);
    prop_oneof![
        12 => Just(Answer::Passed),
        2 => Just(failed("informer-sync")),
        2 => Just(failed("etcd")),
        1 => Just(Answer::Refused),
        2 => Just(Answer::Silent),
        1 => Just(Answer::NotReadable),
        1 => Just(Answer::NoNetwork),
        1 => Just(Answer::Other),
    ]
}

/// Stretches of the same answers, because changes at every look reach no threshold.
fn looks() -> impl Strategy<Value = Vec<Look>> {
    let look = (answer(), answer(), prop::bool::weighted(0.7)).prop_map(|(readyz, livez, moves)| Look {
        readyz,
        livez,
        moves,
    });
    let stretch = (look, 1_usize..16).prop_map(|(look, times)| vec![look; times]);
    prop::collection::vec(stretch, 1..24).prop_map(|stretches| stretches.concat())
}

/// A cluster of one server, looked at from the start.
struct Looked {
    judge: Judge,
    picture: Picture,
    version: u64,
}

impl Looked {
    fn new() -> Self {
        let lease = IdentityLease {
            uid: "a".into(),
            holder: "a".into(),
            renewed: Some(0),
            host: "a".into(),
            form: Form::Current,
        };
        Self {
            judge: Judge::new(Duration::ZERO),
            picture: [(Box::from("a"), lease)].into_iter().collect(),
            version: 0,
        }
    }

    fn look(&mut self, second: u64, look: &Look) -> Option<bool> {
        let now = Duration::from_secs(second);
        if look.moves {
            self.version += 1;
            for lease in self.picture.values_mut() {
                lease.renewed = lease.renewed.map(|renewed| renewed + 1);
            }
        }
        self.judge.answered(now, look.readyz.clone(), &look.livez);
        self.judge.leases(now, Some(&self.picture));
        let version = self.version.to_string();
        self.judge.controller_manager(now, Some(&version));
        self.judge.scheduler(now, Some(&version));
        let verdict = self.judge.verdict(now);
        verdict.and_then(|verdict| verdict.reason.is_healthy())
    }
}

/// Returns true if /readyz and /livez say that all is well.
fn is_good(look: &Look) -> bool {
    let etcd = matches!(&look.livez, Answer::Failed(checks) if checks.iter().any(|check| &**check == "etcd"));
    look.readyz == Answer::Passed && !etcd
}

proptest! {
    /// It is True again after two good answers and 20 s in which none was not good, from whatever it was before; so two
    /// changes to True are never nearer than that.
    #[test]
    fn nothing_is_well_again_before_it_was_well_for_a_while(looks in looks()) {
        let mut looked = Looked::new();
        let mut before = None;
        let (mut good, mut not_good_at) = (0, 0);
        for (turn, look) in (1..).zip(&looks) {
            let second = turn * TURN;
            if is_good(look) {
                good += 1;
            } else {
                (good, not_good_at) = (0, second);
            }
            let healthy = looked.look(second, look);
            if healthy == Some(true) && before.is_some_and(|before| before != Some(true)) {
                prop_assert!(good >= GOOD_IN_A_ROW, "after {good} good answers, at {second} s");
                let quiet = second - not_good_at;
                prop_assert!(quiet >= GOOD_FOR.as_secs(), "{quiet} s after one that was not, at {second} s");
            }
            // No verdict yet, or one that has only just begun.
            let begins = looked.judge.reason.is_none_or(|reason| reason == Reason::Starting);
            before = (!begins).then_some(healthy);
        }
    }

    /// It is False only after three failures in a row, or when a Lease has not moved for a minute.
    #[test]
    fn nothing_fails_before_it_failed_often_or_stood_still_for_long(looks in looks()) {
        let mut looked = Looked::new();
        let mut before = None;
        let (mut failures, mut etcd, mut moved_at) = (0, 0, 0);
        for (turn, look) in (1..).zip(&looks) {
            let second = turn * TURN;
            let of_etcd = |answer: &Answer| {
                matches!(answer, Answer::Failed(checks) if checks.iter().any(|check| &**check == "etcd"))
            };
            let answers = |answer: &Answer| matches!(answer, Answer::Passed | Answer::Failed(_));
            if of_etcd(&look.readyz) || of_etcd(&look.livez) {
                etcd += 1;
            } else if answers(&look.readyz) || answers(&look.livez) {
                etcd = 0;
            }
            match &look.readyz {
                Answer::Other => {}
                Answer::Failed(_) if of_etcd(&look.readyz) => failures = 0,
                Answer::Failed(_) | Answer::Refused | Answer::Silent => failures += 1,
                Answer::Passed | Answer::NotReadable | Answer::NoNetwork => failures = 0,
            }
            if look.moves {
                moved_at = second;
            }
            let healthy = looked.look(second, look);
            if healthy == Some(false) && before != Some(false) {
                let often = failures >= FAILURES_IN_A_ROW || etcd >= FAILURES_IN_A_ROW;
                let still = second - moved_at >= DEAD;
                prop_assert!(often || still, "{failures} and {etcd} failures, at {second} s");
            }
            before = healthy;
        }
    }
}
