//! The simulated engine passes the contract without faults, and has every fault that it is meant to have.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use super::{
    engine::{Faults, LinkFaults, SimulatedEngine},
    suite::{CASES, ask, batch, clusterset, first_head},
};
use crate::engine::{Answer, Commit, Engine, EngineError, Head, Keys, LogName, Refusal, Request};

fn engine(seed: u64) -> SimulatedEngine {
    SimulatedEngine::new(Keys::new(&clusterset(), LogName::Events), seed)
}

fn begun(seed: u64) -> (SimulatedEngine, Head) {
    let (engine, head) = (engine(seed), first_head("hub-0", 1));
    let commit = Commit {
        expected: None,
        next: head.clone(),
        batch: None,
        base: None,
    };
    ask(&engine, Request::from(commit)).unwrap();
    (engine, head)
}

fn append(head: &Head) -> Commit {
    Commit::append(head, batch(head, &[b"a"]))
}

type Outcome = Arc<Mutex<Option<(u64, Result<Answer, EngineError>)>>>;

/// Asks at once and notes when the answer came, in steps of 10 ms.
fn watched(
    engine: &SimulatedEngine,
    link: LinkFaults,
    commit: Commit,
    until: u64,
) -> Option<(u64, Result<Answer, EngineError>)> {
    let (outcome, clock) = (Outcome::default(), Arc::new(Mutex::new(0)));
    let (told, time) = (Arc::clone(&outcome), Arc::clone(&clock));
    let done = move |answer| {
        let before = told.lock().unwrap().replace((*time.lock().unwrap(), answer));
        assert!(before.is_none(), "a completion is called once");
    };
    engine.ask_over(link, Request::from(commit), Box::new(done));
    for now in (0..=until).step_by(10) {
        *clock.lock().unwrap() = now;
        engine.advance(now);
    }
    outcome.lock().unwrap().take()
}

#[test]
fn the_model_passes_the_contract() {
    for (name, case) in CASES {
        println!("{name}");
        case(&engine(1));
    }
}

#[test]
fn a_request_may_take_effect_late_or_never_and_an_answer_may_be_lost_or_late() {
    let always = 1_000;
    let faults = Faults {
        latency_millis: 5,
        ..Faults::default()
    };
    let cases = [
        (
            Faults {
                late: always,
                ..faults
            },
            "late",
        ),
        (
            Faults {
                never: always,
                ..faults
            },
            "never",
        ),
        (
            Faults {
                answer_lost: always,
                ..faults
            },
            "lost",
        ),
        (
            Faults {
                answer_late: always,
                ..faults
            },
            "slow",
        ),
        (faults, "well"),
    ];
    let mut seen = BTreeSet::new();
    for (faults, name) in cases {
        for seed in 0..20 {
            let (engine, head) = begun(seed);
            engine.set_faults(faults);
            let (at, answer) = watched(&engine, LinkFaults::default(), append(&head), 7_000).unwrap();
            let written = engine.head_count() == 2;
            let unanswered = matches!(answer, Err(EngineError::Unanswered(_)));
            assert_eq!(written, name != "never", "{name}");
            assert_eq!(unanswered, ["late", "never", "lost"].contains(&name), "{name}");
            assert!(at >= if name == "well" { 0 } else { 400 }, "{name}: {at} ms");
            seen.insert(name);
        }
    }
    assert_eq!(seen.len(), 5);
}

#[test]
fn a_path_loses_requests_or_answers() {
    for (link, written) in [
        (
            LinkFaults {
                requests: true,
                answers: false,
            },
            1,
        ),
        (
            LinkFaults {
                requests: false,
                answers: true,
            },
            2,
        ),
    ] {
        let (engine, head) = begun(1);
        let (at, answer) = watched(&engine, link, append(&head), 1_000).unwrap();
        assert!(at == 400 && matches!(answer, Err(EngineError::Unanswered(_))));
        assert_eq!(engine.head_count(), written);
    }
}

#[test]
fn late_requests_change_their_order_and_meet_the_comparison() {
    let mut losers = 0;
    for seed in 0..50 {
        let (engine, head) = begun(seed);
        engine.set_faults(Faults {
            latency_millis: 5,
            late: 500,
            ..Faults::default()
        });
        let second = Commit::append(&head, batch(&head, &[b"b"]));
        engine.ask(Request::from(append(&head)), Box::new(|_| {}));
        engine.ask(Request::from(second.clone()), Box::new(|_| {}));
        for now in (0..7_000).step_by(10) {
            engine.advance(now);
        }
        let heads = engine.heads_after(0);
        assert_eq!(heads.len(), 2, "one of both takes effect");
        losers += usize::from(heads[1] == second.next);
    }
    assert!(
        (5..45).contains(&losers),
        "the second was first {losers} times of 50"
    );
}

#[test]
fn it_stands_still_has_no_room_and_goes_back() {
    let (engine, head) = begun(1);
    engine.set_faults(Faults {
        latency_millis: 1,
        ..Faults::default()
    });
    engine.stand_still(1_000);
    let (at, answer) = watched(&engine, LinkFaults::default(), append(&head), 2_000).unwrap();
    assert!(at == 400 && answer.is_err());
    assert_eq!(engine.head_count(), 2, "it was performed when the engine went on");
    engine.set_faults(Faults::default());
    let backup = engine.backup();
    let second = engine.heads_after(1)[0].clone();
    ask(&engine, Request::from(append(&second))).unwrap();
    engine.restore(&backup);
    assert_eq!(engine.heads_after(0).last().unwrap(), &second);
    engine.set_room(false);
    let refused = ask(&engine, Request::from(append(&second)));
    assert_eq!(refused, Err(EngineError::Refused(Refusal::NoRoom)));
    assert!(matches!(
        ask(&engine, Request::Read { from: None }),
        Ok(Answer::Read(_))
    ));
    let below = crate::engine::Position {
        epoch: second.at.epoch,
        revision: second.at.revision,
    };
    assert_eq!(
        ask(&engine, Request::Trim { head: second, below }),
        Ok(Answer::Done)
    );
    assert!(
        matches!(ask(&engine, Request::Status), Ok(Answer::Status(status)) if status.alarms == ["NOSPACE"])
    );
}
