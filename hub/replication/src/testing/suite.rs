//! The contract of [`Engine`], run on every implementation. Each case expects an engine without a head.

use std::sync::mpsc;

use model::{ChainHash, Clusterset, Cursor, Epoch, Revision, UnixMillis};

use crate::engine::{
    Answer, BATCH_BYTES_MAX, Base, Beat, Commit, EVENT_BYTES_MAX, Engine, EngineBatch, EngineError, EngineId,
    Head, HubRow, Instance, Position, READ_BATCHES_MAX, Replica, Request, Role, Seen, Term,
};

/// A case, and what it is called.
pub type Case = (&'static str, fn(&dyn Engine));

/// Every case.
pub const CASES: [Case; 10] = [
    ("an_empty_engine_has_no_head", an_empty_engine_has_no_head),
    (
        "a_commit_moves_the_head_with_its_batch",
        a_commit_moves_the_head_with_its_batch,
    ),
    (
        "a_commit_over_another_head_changes_nothing",
        a_commit_over_another_head_changes_nothing,
    ),
    ("a_first_head_is_made_once", a_first_head_is_made_once),
    (
        "of_many_commits_with_one_expected_head_one_takes_effect",
        of_many_commits_with_one_expected_head_one_takes_effect,
    ),
    (
        "batches_are_read_in_order_and_bounded",
        batches_are_read_in_order_and_bounded,
    ),
    ("a_pulse_needs_its_head", a_pulse_needs_its_head),
    (
        "a_trim_removes_only_what_is_before_it",
        a_trim_removes_only_what_is_before_it,
    ),
    ("an_epoch_names_its_base", an_epoch_names_its_base),
    ("announced_hubs_are_named", announced_hubs_are_named),
];

/// The clusterset whose log the cases write.
pub fn clusterset() -> Clusterset {
    Clusterset::new("example.org", "default").expect("it is valid")
}

/// Asks and waits.
pub fn ask(engine: &dyn Engine, request: Request) -> Result<Answer, EngineError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let done = move |outcome| {
        // The receiver waits below.
        let _ = sender.send(outcome);
    };
    engine.ask(request, Box::new(done));
    receiver.recv().expect("an engine calls each completion")
}

/// A head of a hub in a term, at the start of the first epoch.
pub fn first_head(replica: &str, term: u64) -> Head {
    let epoch = epoch(1);
    Head {
        engine: EngineId([7; 16]),
        term: Term(term),
        at: Cursor {
            epoch,
            revision: Revision(0),
            hash: ChainHash::start(&clusterset(), epoch),
        },
        replica: Replica::new(replica).expect("it is valid"),
        instance: Instance([term as u8; 8]),
    }
}

fn epoch(number: u64) -> Epoch {
    Epoch {
        created_at: UnixMillis(number),
        random: number,
    }
}

/// A batch that follows a head.
pub fn batch(head: &Head, payloads: &[&[u8]]) -> EngineBatch {
    EngineBatch::new(head.at, head.term, false, payloads.iter().copied()).expect("it is within its bounds")
}

fn begun(engine: &dyn Engine) -> Head {
    let head = first_head("hub-0", 1);
    let commit = Commit {
        expected: None,
        next: head.clone(),
        batch: None,
        base: None,
    };
    assert_eq!(ask(engine, Request::from(commit)), Ok(Answer::Committed));
    head
}

fn append(engine: &dyn Engine, head: &Head, payloads: &[&[u8]]) -> Head {
    let commit = Commit::append(head, batch(head, payloads));
    let next = commit.next.clone();
    assert_eq!(ask(engine, Request::from(commit)), Ok(Answer::Committed));
    next
}

fn read(engine: &dyn Engine, from: Option<Position>) -> Seen {
    match ask(engine, Request::Read { from }) {
        Ok(Answer::Read(seen)) => seen,
        other => panic!("not read: {other:?}"),
    }
}

fn from(revision: u64) -> Option<Position> {
    Some(Position {
        epoch: epoch(1),
        revision: Revision(revision),
    })
}

fn an_empty_engine_has_no_head(engine: &dyn Engine) {
    assert_eq!(read(engine, from(1)), Seen::default());
    let head = first_head("hub-0", 1);
    let beat = Beat::Alive {
        term: Term(1),
        count: 1,
    };
    let pulse = Request::Pulse {
        head: head.clone(),
        beat,
    };
    assert_eq!(ask(engine, pulse), Ok(Answer::HeadIs(None)));
    let commit = Commit::append(&head, batch(&head, &[b"a"]));
    assert_eq!(ask(engine, Request::from(commit)), Ok(Answer::HeadIs(None)));
    assert_eq!(read(engine, from(1)), Seen::default());
    assert!(matches!(ask(engine, Request::Status), Ok(Answer::Status(status)) if !status.version.is_empty()));
}

fn a_commit_moves_the_head_with_its_batch(engine: &dyn Engine) {
    let head = begun(engine);
    assert_eq!(read(engine, from(1)).head, Some(head.clone()));
    let large = vec![5; EVENT_BYTES_MAX];
    let full = vec![6; BATCH_BYTES_MAX / 4];
    let batches: [&[&[u8]]; 3] = [&[b"a", b"", b"c"], &[&large], &[&full, &full, &full, &full]];
    let mut next = head;
    let mut written = Vec::new();
    for payloads in batches {
        written.push(batch(&next, payloads));
        next = append(engine, &next, payloads);
    }
    let seen = read(engine, from(1));
    assert_eq!(seen.head, Some(next));
    assert!(seen.batches == written, "the batches differ");
    assert_eq!(read(engine, None).batches, []);
}

fn a_commit_over_another_head_changes_nothing(engine: &dyn Engine) {
    let head = begun(engine);
    let next = append(engine, &head, &[b"a"]);
    let before = read(engine, from(1));
    let late = Commit::append(&head, batch(&head, &[b"late"]));
    let seal = Commit::seal(head.clone(), first_head("hub-1", 2));
    let other_instance = Head {
        instance: Instance([9; 8]),
        ..next.clone()
    };
    let renamed = Commit::append(&other_instance, batch(&other_instance, &[b"b"]));
    let again = Commit {
        expected: None,
        ..Commit::append(&head, batch(&head, &[b"late"]))
    };
    for commit in [late, seal, renamed, again] {
        assert_eq!(
            ask(engine, Request::from(commit)),
            Ok(Answer::HeadIs(Some(next.clone())))
        );
        assert_eq!(read(engine, from(1)), before);
    }
    // The commit that took effect, sent once more, finds its own head.
    let same = Commit::append(&head, batch(&head, &[b"a"]));
    assert_eq!(ask(engine, Request::from(same)), Ok(Answer::HeadIs(Some(next))));
}

fn a_first_head_is_made_once(engine: &dyn Engine) {
    let head = begun(engine);
    let second = Commit {
        expected: None,
        next: first_head("hub-1", 2),
        batch: None,
        base: None,
    };
    assert_eq!(ask(engine, Request::from(second)), Ok(Answer::HeadIs(Some(head))));
}

fn of_many_commits_with_one_expected_head_one_takes_effect(engine: &dyn Engine) {
    let head = begun(engine);
    let (sender, receiver) = mpsc::channel();
    for number in 0..16u8 {
        let commit = Commit::append(&head, batch(&head, &[&[number]]));
        let (sender, next) = (sender.clone(), commit.next.clone());
        let done = move |outcome| {
            let _ = sender.send((next, outcome));
        };
        engine.ask(Request::from(commit), Box::new(done));
    }
    drop(sender);
    let answered: Vec<_> = receiver.iter().collect();
    let winners: Vec<&Head> = answered
        .iter()
        .filter(|(_, outcome)| *outcome == Ok(Answer::Committed))
        .map(|(next, _)| next)
        .collect();
    let [winner] = winners[..] else {
        panic!("{} commits took effect: {answered:?}", winners.len());
    };
    assert_eq!(answered.len(), 16);
    let is_told =
        |outcome: &Result<Answer, EngineError>| *outcome == Ok(Answer::HeadIs(Some(winner.clone())));
    assert_eq!(
        answered.iter().filter(|(_, outcome)| is_told(outcome)).count(),
        15
    );
    let seen = read(engine, from(1));
    assert_eq!((seen.head.as_ref(), seen.batches.len()), (Some(winner), 1));
}

fn batches_are_read_in_order_and_bounded(engine: &dyn Engine) {
    let mut head = begun(engine);
    // Numbers with more digits sort behind those with fewer.
    for number in 0..20u8 {
        head = append(engine, &head, &[&[number], b"second"]);
    }
    let firsts = |position| {
        let batches = read(engine, position).batches.into_iter();
        batches
            .map(|batch| batch.before().revision.0 + 1)
            .collect::<Vec<_>>()
    };
    let first_page: Vec<u64> = (0..READ_BATCHES_MAX as u64)
        .map(|number| 1 + 2 * number)
        .collect();
    assert_eq!(firsts(from(1)), first_page);
    assert_eq!(firsts(from(35)), [35, 37, 39]);
    assert_eq!(firsts(from(41)), []);
}

fn a_pulse_needs_its_head(engine: &dyn Engine) {
    let head = begun(engine);
    let beats = [
        Beat::Alive {
            term: Term(1),
            count: 3,
        },
        Beat::Resigned {
            term: Term(1),
            next: Some(Replica::new("hub-2").expect("it is valid")),
        },
    ];
    for beat in beats {
        let pulse = Request::Pulse {
            head: head.clone(),
            beat: beat.clone(),
        };
        assert_eq!(ask(engine, pulse), Ok(Answer::Done));
        let seen = read(engine, None);
        assert_eq!((seen.head, seen.beat), (Some(head.clone()), Some(beat)));
    }
    let next = append(engine, &head, &[b"a"]);
    let before = read(engine, None);
    let beat = Beat::Alive {
        term: Term(1),
        count: 4,
    };
    assert_eq!(
        ask(engine, Request::Pulse { head, beat }),
        Ok(Answer::HeadIs(Some(next)))
    );
    assert_eq!(read(engine, None), before);
}

fn a_trim_removes_only_what_is_before_it(engine: &dyn Engine) {
    let first = begun(engine);
    let second = append(engine, &first, &[b"a"]);
    let third = append(engine, &second, &[b"b", b"c"]);
    let head = append(engine, &third, &[b"d"]);
    let trim = |head: &Head, below: u64| Request::Trim {
        head: head.clone(),
        below: from(below).expect("it is a position"),
    };
    assert_eq!(
        ask(engine, trim(&third, 9)),
        Ok(Answer::HeadIs(Some(head.clone())))
    );
    assert_eq!(read(engine, from(1)).batches.len(), 3);
    assert_eq!(ask(engine, trim(&head, 4)), Ok(Answer::Done));
    let seen = read(engine, from(1));
    assert_eq!(
        (seen.head.as_ref(), &seen.batches[..]),
        (Some(&head), &[batch(&third, &[b"d"])][..])
    );
    assert_eq!(
        ask(engine, trim(&head, 4)),
        Ok(Answer::Done),
        "nothing is left to trim"
    );
    append(engine, &head, &[b"e"]);
    assert_eq!(read(engine, from(1)).batches.len(), 2);
}

fn an_epoch_names_its_base(engine: &dyn Engine) {
    let mut head = append(engine, &begun(engine), &[b"a"]);
    for number in 2..4 {
        let epoch = epoch(number);
        let base = Base { epoch, over: head.at };
        let commit = Commit {
            base: Some(base),
            ..Commit::seal(
                head.clone(),
                Head {
                    at: Cursor {
                        epoch,
                        revision: Revision(0),
                        hash: ChainHash::start(&clusterset(), epoch),
                    },
                    ..head.clone()
                },
            )
        };
        assert_eq!(ask(engine, Request::from(commit.clone())), Ok(Answer::Committed));
        let seen = read(engine, from(1));
        assert_eq!((seen.head.as_ref(), seen.base), (Some(&commit.next), Some(base)));
        assert_eq!(seen.batches.len(), number as usize - 1, "batches of all epochs");
        head = append(engine, &commit.next, &[b"b"]);
    }
}

fn announced_hubs_are_named(engine: &dyn Engine) {
    let row = |name: &str, role| HubRow {
        replica: Replica::new(name).expect("it is valid"),
        address: "10.0.0.1:8443".to_owned(),
        version: "0.1.0".to_owned(),
        rules: 1,
        role,
        term: Term(1),
        synced: Some(first_head("hub-0", 1).at),
    };
    let announce = |row: &HubRow| ask(engine, Request::Announce(row.clone()));
    let (one, two) = (row("hub-1", Role::Follows), row("hub-0", Role::Leads));
    assert_eq!(announce(&one), Ok(Answer::Hubs(vec![one.clone()])));
    assert_eq!(announce(&two), Ok(Answer::Hubs(vec![two.clone(), one.clone()])));
    let changed = HubRow {
        synced: None,
        role: Role::Copies,
        ..one
    };
    assert_eq!(announce(&changed), Ok(Answer::Hubs(vec![two, changed.clone()])));
    assert_eq!(read(engine, None).head, None, "announcements need no head");
}
