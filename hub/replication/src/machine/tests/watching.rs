//! The rules of a hub that does not lead, one by one.

use model::{Cursor, Revision, UnixMillis};

use super::{
    super::{Held, Input, Output, Standing, following::epoch_start, rank::rank},
    by_hand::{ENGINE, FIRST_EPOCH, Hub, following, foreign, replica, row, seen, start, unanswered},
};
use crate::{
    engine::{
        Answer, Base, Beat, EngineBatch, EngineError, EngineId, Head, Refusal, Request, Role, Seen, Term,
    },
    testing::suite::clusterset,
};

#[test]
fn silence_counts_only_while_the_engine_answers() {
    let head = foreign(1, start());
    let mut hub = Hub::with_log();
    hub.polls(1_300, &head, None);
    assert!(hub.writes().is_empty());
    hub.polls(600, &head, None);
    let commit = hub.commit();
    assert_eq!(commit.expected, Some(head.clone()));
    assert_eq!(
        (commit.next.term, commit.next.at, commit.batch),
        (Term(2), start(), None)
    );

    // Without answers no time counts, however long.
    let mut hub = Hub::with_log();
    hub.polls(1_000, &head, None);
    for _ in 0..20 {
        hub.pass(400);
        hub.answer_read(unanswered());
    }
    hub.polls(300, &head, None);
    assert!(hub.writes().is_empty());
    hub.polls(600, &head, None);
    hub.commit();

    // Nor does a pause of this process, beyond one step.
    let mut hub = Hub::with_log();
    hub.polls(1_000, &head, None);
    hub.now += 60_000;
    hub.polls(200, &head, None);
    assert!(hub.writes().is_empty());
}

#[test]
fn a_pulse_or_a_commit_ends_the_silence_and_a_resignation_makes_it_short() {
    let head = foreign(1, start());
    let mut hub = Hub::with_log();
    for count in 0..5 {
        let term = Term(1);
        hub.polls(1_000, &head, Some(&Beat::Alive { term, count }));
    }
    assert!(hub.writes().is_empty());
    let resigned = |term: u64, next: Option<&str>| Beat::Resigned {
        term: Term(term),
        next: next.map(replica),
    };
    for (beat, is_taken) in [
        (resigned(1, None), true),
        (resigned(1, Some("me")), true),
        (resigned(1, Some("third")), false),
        (resigned(0, None), false),
    ] {
        let mut hub = Hub::with_log();
        hub.polls(300, &head, Some(&beat));
        assert_eq!(!hub.writes().is_empty(), is_taken, "{beat:?}");
    }
}

#[test]
fn nobody_takes_the_lead_who_may_not() {
    let head = foreign(1, start());
    let mut hub = Hub::with_log();
    hub.on(Input::Able(false));
    hub.polls(5_000, &head, None);
    assert!(hub.writes().is_empty());

    let mut hub = Hub::with_log();
    hub.hubs = vec![row("longer", Role::Ahead, following(&head, &[b"a"]).after())];
    hub.now += 5_000;
    hub.polls(5_000, &head, None);
    assert!(hub.writes().is_empty(), "a longer log is announced");

    let mut hub = Hub::with_log();
    let other = Head {
        engine: EngineId([8; 16]),
        ..head
    };
    hub.polls(5_000, &other, None);
    assert_eq!(
        (hub.machine.standing(), hub.writes().len()),
        (Standing::Foreign, 0)
    );
}

#[test]
fn hubs_wait_for_their_turn() {
    let head = foreign(1, start());
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut hub = Hub::with_log();
    hub.hubs = names
        .iter()
        .map(|name| row(name, Role::Follows, start()))
        .collect();
    // The silent leader does not count.
    hub.hubs.push(row("other", Role::Leads, start()));
    let before = rank(&clusterset(), &replica("me"), &hub.hubs, &replica("other"));
    assert!((1..6).contains(&before), "{before}");
    hub.now += 5_000;
    hub.pass(25);
    hub.polls(1_400 + 100 * before, &head, None);
    assert!(hub.writes().is_empty());
    hub.polls(300 + 150 * before, &head, None);
    hub.commit();
    let all: Vec<u64> = names
        .iter()
        .map(|name| rank(&clusterset(), &replica(name), &hub.hubs, &replica("other")))
        .collect();
    let mut sorted = all.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(
        sorted.len(),
        names.len(),
        "every hub has a turn of its own: {all:?}"
    );
}

#[test]
fn a_seal_without_an_answer_is_repeated_and_then_given_up() {
    let head = foreign(1, start());
    let sealing = || {
        let mut hub = Hub::with_log();
        hub.polls(2_000, &head, None);
        let commit = hub.commit();
        (hub, commit)
    };
    let (mut hub, commit) = sealing();
    hub.answer_write(unanswered());
    hub.pass(50);
    assert_eq!(hub.commit(), commit);
    hub.answer_write(Ok(Answer::HeadIs(Some(commit.next.clone()))));
    assert_eq!(hub.other, [Output::Lead(commit.next)]);

    let (mut hub, _) = sealing();
    hub.answer_write(Ok(Answer::HeadIs(Some(foreign(2, start())))));
    assert_eq!(hub.machine.standing(), Standing::Waits);

    let (mut hub, _) = sealing();
    hub.pass(3_000);
    assert_eq!(hub.machine.standing(), Standing::Waits);
}

#[test]
fn a_log_follows_copies_or_is_ahead() {
    let first = foreign(2, start());
    let batch = following(&first, &[b"a"]);
    let head = foreign(2, batch.after());
    let with = |batches: &[EngineBatch], head: &Head| Seen {
        head: Some(head.clone()),
        batches: batches.to_vec(),
        ..Seen::default()
    };
    let judged = |held: Cursor, term: u64, seen: Seen| {
        let held = Held {
            at: Some(held),
            term: Term(term),
            engine: Some(ENGINE),
        };
        let mut hub = Hub::new(held, None);
        hub.answer_read(Ok(Answer::Read(seen)));
        (hub.machine.standing(), hub.other)
    };
    let level = Standing::Follows { is_level: true };
    let apply = vec![Output::Apply(batch.clone())];
    assert_eq!(
        judged(start(), 1, with(std::slice::from_ref(&batch), &head)),
        (level, apply)
    );
    let copy = |diverged| (Standing::Copies, vec![Output::Copy { diverged }]);
    assert_eq!(
        judged(start(), 1, with(&[], &head)),
        copy(false),
        "its next batch was trimmed"
    );
    let wrong = Cursor {
        hash: following(&first, &[b"x"]).after().hash,
        ..batch.after()
    };
    let next = following(&head, &[b"b"]);
    let further = foreign(2, next.after());
    for seen in [with(&[next], &further), with(&[], &head)] {
        assert_eq!(
            judged(wrong, 1, seen.clone()),
            copy(true),
            "a later term has another hash"
        );
        assert_eq!(
            judged(wrong, 2, seen).0,
            Standing::Ahead,
            "its own term has another hash"
        );
    }
    assert_eq!(judged(batch.after(), 2, with(&[], &first)).0, Standing::Ahead);
    assert_eq!(judged(batch.after(), 1, with(&[], &first)), copy(true));

    let epoch = FIRST_EPOCH.next(UnixMillis(5), 1);
    let begun = foreign(3, epoch_start(&clusterset(), epoch));
    let over = |over: Cursor, batches: &[EngineBatch]| Seen {
        base: Some(Base { epoch, over }),
        ..with(batches, &begun)
    };
    let base = Base {
        epoch,
        over: batch.after(),
    };
    let expected = vec![Output::Apply(batch.clone()), Output::BeginEpoch(base)];
    let seen = over(batch.after(), std::slice::from_ref(&batch));
    assert_eq!(
        judged(start(), 1, seen),
        (Standing::Follows { is_level: true }, expected)
    );
    assert_eq!(judged(start(), 1, over(batch.after(), &[])), copy(false));
    assert_eq!(judged(batch.after(), 1, over(start(), &[])), copy(true));
    assert_eq!(
        judged(start(), 1, with(&[], &begun)),
        copy(false),
        "nobody knows its base"
    );
}

#[test]
fn a_log_that_is_ahead_is_announced_and_the_longest_begins_an_epoch() {
    let head = foreign(2, start());
    let ahead = following(&head, &[b"a", b"b"]).after();
    let shorter = following(&head, &[b"a"]).after();
    for (others, is_begun) in [
        (vec![], true),
        (vec![row("other", Role::Ahead, shorter)], true),
        (vec![row("z", Role::Ahead, ahead)], true),
        (vec![row("a", Role::Ahead, ahead)], false),
    ] {
        let held = Held {
            at: Some(ahead),
            term: Term(2),
            engine: Some(ENGINE),
        };
        let mut hub = Hub::new(held, None);
        hub.hubs = others.clone();
        hub.polls(9_500, &head, None);
        assert!(hub.writes().is_empty(), "others have their time");
        hub.polls(3_000, &head, None);
        assert_eq!(!hub.writes().is_empty(), is_begun, "{others:?}");
        if is_begun {
            let commit = hub.commit();
            let epoch = commit.next.at.epoch;
            assert_eq!(commit.base, Some(Base { epoch, over: ahead }));
            assert!(epoch > ahead.epoch && commit.next.term == Term(3));
            hub.answer_write(Ok(Answer::Committed));
            let base = Output::BeginEpoch(Base { epoch, over: ahead });
            assert_eq!(hub.other, [base, Output::Lead(commit.next)]);
        }
    }
}

#[test]
fn a_first_head_is_made_by_the_origin_alone() {
    let empty = || Ok(Answer::Read(Seen::default()));
    let poll_empty = |hub: &mut Hub, millis: u64| {
        for _ in 0..millis / 100 {
            if hub
                .asked
                .iter()
                .any(|(_, request)| matches!(request, Request::Read { .. }))
            {
                hub.answer_read(empty());
            }
            hub.pass(100);
        }
    };
    let mut hub = Hub::with_log();
    poll_empty(&mut hub, 20_000);
    assert!(hub.writes().is_empty() && hub.machine.standing() == Standing::Waits);

    // Without a log it waits for others that have one.
    let mut hub = Hub::new(Held::default(), Some(ENGINE));
    poll_empty(&mut hub, 9_900);
    assert!(hub.writes().is_empty());
    poll_empty(&mut hub, 600);
    let commit = hub.commit();
    hub.answer_write(Ok(Answer::Committed));
    assert_eq!(
        hub.other,
        [Output::NewLog(commit.next.at), Output::Lead(commit.next)]
    );

    let mut hub = Hub::new(Held::default(), Some(ENGINE));
    hub.hubs = vec![row("other", Role::Waits, start())];
    poll_empty(&mut hub, 20_000);
    assert!(hub.writes().is_empty(), "another hub has a log");

    // A log of another engine is not brought into this one.
    let held = Held {
        at: Some(start()),
        term: Term(1),
        engine: Some(EngineId([8; 16])),
    };
    let mut hub = Hub::new(held, Some(ENGINE));
    poll_empty(&mut hub, 20_000);
    assert!(hub.writes().is_empty());
}

#[test]
fn a_copied_log_follows_on() {
    let head = foreign(1, following(&foreign(1, start()), &[b"a"]).after());
    let mut hub = Hub::new(Held::default(), None);
    hub.answer_read(Ok(Answer::Read(seen(&head, None))));
    assert_eq!(hub.other, [Output::Copy { diverged: false }]);
    hub.pass(100);
    let is_plain = |request: &Request| matches!(request, Request::Read { from: None });
    assert!(
        hub.asked.iter().all(|(_, request)| is_plain(request)),
        "it reads no batches"
    );
    hub.on(Input::Copied {
        at: head.at,
        term: Term(1),
    });
    hub.asked.retain(|(_, request)| !is_plain(request));
    hub.answer_read(Ok(Answer::Read(Seen {
        head: Some(foreign(
            1,
            Cursor {
                revision: Revision(1),
                ..head.at
            },
        )),
        ..Seen::default()
    })));
    assert_eq!(hub.machine.standing(), Standing::Follows { is_level: true });
}

#[test]
fn a_value_that_cannot_be_read_is_told() {
    let newer = crate::engine::Unreadable::Newer {
        what: "head",
        version: 2,
        known: 1,
    };
    let refusal = Refusal::from(newer);
    let mut hub = Hub::with_log();
    hub.answer_read(Err(EngineError::Refused(refusal.clone())));
    assert_eq!(hub.machine.standing(), Standing::Unreadable(refusal));
}
