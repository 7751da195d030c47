//! A leader's rules, one by one.

use model::UnixMillis;

use super::{
    super::{
        Input, Output, Standing, TermEnd, Token, WriteError, following::epoch_start, leading::WAITING_MAX,
    },
    by_hand::{FIRST_EPOCH, Hub, foreign, replica, seen, start, unanswered},
};
use crate::{
    engine::{Answer, Base, Beat, EVENT_BYTES_MAX, EngineError, Head, Refusal, Request, Term},
    testing::suite::clusterset,
};

#[test]
fn a_commit_without_an_answer_is_repeated_with_the_same_bytes() {
    let mut hub = Hub::leading();
    let first = hub.append(1, start(), &[b"a"]);
    let commit = hub.commit();
    hub.append(2, first, &[b"b"]);
    for _ in 0..5 {
        hub.answer_write(unanswered());
        hub.pass(50);
        assert_eq!(hub.commit(), commit, "what was queued since is no part of it");
    }
    hub.answer_write(Ok(Answer::HeadIs(Some(commit.next.clone()))));
    assert_eq!(hub.released(), [(1, Ok(first))], "an earlier attempt took effect");
    assert!(hub.other.contains(&Output::Apply(commit.batch.unwrap())));
    assert_eq!(hub.commit().expected, Some(commit.next));
}

#[test]
fn one_write_is_under_way_and_what_waits_is_committed_together() {
    let mut hub = Hub::leading();
    let first = hub.append(1, start(), &[b"a"]);
    let second = hub.append(2, first, &[b"b", b"c"]);
    let third = hub.append(3, second, &[b"d"]);
    hub.pass(600);
    assert_eq!(hub.writes().len(), 1, "no second write, and no pulse");
    hub.on(Input::BeginSegment);
    hub.answer_write(Ok(Answer::Committed));
    let batch = hub.commit().batch.unwrap();
    assert!(batch.begins_segment() && batch.payloads().eq([&b"b"[..], b"c", b"d"]));
    hub.answer_write(Ok(Answer::Committed));
    assert_eq!(hub.released(), [(1, Ok(first)), (2, Ok(second)), (3, Ok(third))]);
    hub.append(4, third, &[b"e"]);
    assert!(
        !hub.commit().batch.unwrap().begins_segment(),
        "a mark is used once"
    );
}

#[test]
fn an_append_behind_another_position_is_fenced_and_too_many_are_refused() {
    let mut hub = Hub::leading();
    let first = hub.append(1, start(), &[b"a"]);
    hub.append(2, start(), &[b"b"]);
    assert_eq!(hub.released(), [(2, Err(WriteError::Fenced(start())))]);
    hub.on(Input::Append {
        token: Token(3),
        before: first,
        payloads: vec![vec![0; EVENT_BYTES_MAX + 1].into()],
    });
    assert_eq!(hub.released(), [(3, Err(WriteError::Refused(Refusal::TooLarge)))]);
    let mut end = first;
    for token in 0..WAITING_MAX as u64 {
        assert!(hub.machine.has_room());
        end = hub.append(10 + token, end, &[b"x"]);
    }
    assert!(!hub.machine.has_room());
    hub.append(4, end, &[b"y"]);
    assert_eq!(hub.released(), [(4, Err(WriteError::Full))]);
}

#[test]
fn a_hub_that_does_not_lead_writes_nothing() {
    let mut hub = Hub::with_log();
    hub.append(1, start(), &[b"a"]);
    hub.on(Input::Confirm { token: Token(2) });
    let fenced = Err(WriteError::Fenced(start()));
    assert_eq!(hub.released(), [(1, fenced.clone()), (2, fenced)]);
    assert!(hub.writes().is_empty() && !hub.machine.has_room());
}

#[test]
fn another_head_fences_and_an_uncertain_commit_stays_uncertain() {
    for is_uncertain in [false, true] {
        let mut hub = Hub::leading();
        let first = hub.append(1, start(), &[b"a"]);
        hub.append(2, first, &[b"b"]);
        if is_uncertain {
            hub.answer_write(unanswered());
            hub.pass(50);
        }
        hub.answer_write(Ok(Answer::HeadIs(Some(foreign(2, start())))));
        let fenced = WriteError::Fenced(start());
        let undecided = WriteError::Undecided(start());
        let expected = if is_uncertain { undecided } else { fenced.clone() };
        assert_eq!(hub.released(), [(1, Err(expected)), (2, Err(fenced))]);
        assert_eq!(hub.ended(), Some(&TermEnd::Fenced));
        assert_eq!(hub.machine.standing(), Standing::Waits);
    }
}

#[test]
fn a_refusal_ends_the_term_unless_an_earlier_attempt_is_uncertain() {
    let refused = || Err(EngineError::Refused(Refusal::NoRoom));
    let mut hub = Hub::leading();
    hub.append(1, start(), &[b"a"]);
    hub.answer_write(refused());
    assert_eq!(hub.released(), [(1, Err(WriteError::Refused(Refusal::NoRoom)))]);
    assert_eq!(hub.ended(), Some(&TermEnd::Refused(Refusal::NoRoom)));

    let mut hub = Hub::leading();
    hub.append(1, start(), &[b"a"]);
    hub.answer_write(unanswered());
    hub.pass(50);
    hub.answer_write(refused());
    assert!(hub.released().is_empty() && hub.ended().is_none());
    hub.pass(50);
    assert_eq!(hub.writes().len(), 1, "it is tried again");
}

#[test]
fn after_three_seconds_nobody_knows() {
    let mut hub = Hub::leading();
    hub.append(1, start(), &[b"a"]);
    hub.pass(2_975);
    assert!(hub.ended().is_none());
    hub.pass(25);
    assert_eq!(hub.released(), [(1, Err(WriteError::Undecided(start())))]);
    assert_eq!(hub.ended(), Some(&TermEnd::Undecided));
}

#[test]
fn an_idle_leader_shows_that_it_lives() {
    let mut hub = Hub::leading();
    for count in 1..5 {
        hub.pass(475);
        assert!(hub.writes().is_empty());
        hub.pass(25);
        let Request::Pulse { beat, .. } = hub.writes()[0] else {
            panic!("{:?}", hub.writes());
        };
        assert_eq!(*beat, Beat::Alive { term: Term(1), count });
        hub.answer_write(Ok(Answer::Done));
    }
    hub.pass(500);
    hub.answer_write(Ok(Answer::HeadIs(Some(foreign(2, start())))));
    assert_eq!(hub.ended(), Some(&TermEnd::Fenced));
}

#[test]
fn a_question_that_was_asked_before_confirms_nothing() {
    let mut hub = Hub::leading();
    let mine = hub.machine.head().unwrap().clone();
    hub.on(Input::Confirm { token: Token(1) });
    hub.on(Input::Confirm { token: Token(2) });
    let is_read = |request: &Request| matches!(request, Request::Read { from: None });
    assert_eq!(
        hub.asked.iter().filter(|(_, request)| is_read(request)).count(),
        1
    );
    hub.answer_read(Ok(Answer::Read(seen(&mine, None))));
    assert_eq!(
        hub.released(),
        [(1, Ok(start()))],
        "the second was called after the question"
    );
    hub.answer_read(unanswered());
    assert!(hub.released().is_empty());
    hub.pass(50);
    hub.answer_read(Ok(Answer::Read(seen(&mine, None))));
    assert_eq!(hub.released(), [(2, Ok(start()))]);
}

#[test]
fn a_commit_that_was_asked_later_confirms() {
    let mut hub = Hub::leading();
    let first = hub.append(1, start(), &[b"a"]);
    hub.on(Input::Confirm { token: Token(2) });
    hub.append(3, first, &[b"b"]);
    hub.answer_write(Ok(Answer::Committed));
    assert_eq!(hub.released(), [(1, Ok(first))], "it was asked before");
    hub.answer_write(Ok(Answer::Committed));
    assert_eq!(hub.released().len(), 2);
}

#[test]
fn what_is_not_ours_any_more_or_went_back_is_not_confirmed() {
    let others = foreign(2, start());
    let mut hub = Hub::leading();
    hub.on(Input::Confirm { token: Token(1) });
    hub.answer_read(Ok(Answer::Read(seen(&others, None))));
    assert_eq!(hub.ended(), Some(&TermEnd::Fenced));
    assert_eq!(hub.released(), [(1, Err(WriteError::Fenced(start())))]);

    let mut hub = Hub::leading();
    let before = hub.machine.head().unwrap().clone();
    hub.append(1, start(), &[b"a"]);
    hub.answer_write(Ok(Answer::Committed));
    hub.on(Input::Confirm { token: Token(2) });
    hub.answer_read(Ok(Answer::Read(seen(&before, None))));
    assert_eq!(
        hub.ended(),
        Some(&TermEnd::Fenced),
        "the engine's contents went back"
    );
}

#[test]
fn a_leader_resigns_after_what_is_queued() {
    let mut hub = Hub::leading();
    let first = hub.append(1, start(), &[b"a"]);
    hub.on(Input::Resign {
        next: Some(replica("other")),
    });
    hub.append(2, first, &[b"b"]);
    assert_eq!(hub.released(), [(2, Err(WriteError::Fenced(start())))]);
    hub.answer_write(Ok(Answer::Committed));
    let beat = match hub.writes()[..] {
        [Request::Pulse { beat, .. }] => beat.clone(),
        ref other => panic!("{other:?}"),
    };
    let next = Some(replica("other"));
    assert_eq!(beat, Beat::Resigned { term: Term(1), next });
    hub.answer_write(unanswered());
    hub.pass(50);
    hub.answer_write(Ok(Answer::Done));
    assert_eq!(hub.ended(), Some(&TermEnd::Resigned));
    // It gives the others their time.
    let mine = Head {
        at: first,
        ..hub.commitless_head()
    };
    hub.polls(1_300, &mine, Some(&beat));
    assert!(hub.writes().is_empty());
}

#[test]
fn an_epoch_is_begun_over_what_was_appended_before() {
    let mut hub = Hub::leading();
    let first = hub.append(1, start(), &[b"a"]);
    let epoch = FIRST_EPOCH.next(UnixMillis(5), 1);
    hub.on(Input::BeginEpoch {
        token: Token(2),
        epoch,
    });
    let begun = epoch_start(&clusterset(), epoch);
    hub.append(3, begun, &[b"b"]);
    hub.answer_write(Ok(Answer::Committed));
    let commit = hub.commit();
    assert_eq!(
        (commit.base, commit.next.at),
        (Some(Base { epoch, over: first }), begun)
    );
    hub.answer_write(Ok(Answer::Committed));
    assert_eq!(hub.released(), [(1, Ok(first)), (2, Ok(begun))]);
    assert_eq!(hub.commit().batch.unwrap().before(), begun);
    hub.on(Input::BeginEpoch {
        token: Token(4),
        epoch: FIRST_EPOCH,
    });
    assert_eq!(hub.released(), [(4, Err(WriteError::Fenced(begun)))]);
}
