//! Hubs over one simulated engine: what follows, who leads, and what becomes of calls when a term ends.

pub(crate) mod hubs;

use std::sync::{Arc, Mutex};

use model::{Cursor, Revision, UnixMillis};
use replication::machine::{Standing, TermEnd};

use self::hubs::{Hubs, epoch, texts};
use crate::{AppendError, Batch, Log, LogError, Replica};

type Outcome = Arc<Mutex<Option<Result<Cursor, AppendError>>>>;

fn append(log: &mut dyn Log, payloads: &[&str]) -> Cursor {
    let payloads = payloads.iter().map(|text| text.as_bytes().to_vec()).collect();
    let batch = Batch::new(log.head(), payloads).unwrap();
    log.append_and_wait(batch).unwrap()
}

fn watched() -> (Outcome, crate::Completion) {
    let outcome = Outcome::default();
    let told = Arc::clone(&outcome);
    let done = move |answer| {
        let before = told.lock().unwrap().replace(answer);
        assert!(before.is_none(), "a completion is called once");
    };
    (outcome, Box::new(done))
}

fn said(outcome: &Outcome) -> Option<Result<Cursor, AppendError>> {
    outcome.lock().unwrap().clone()
}

#[test]
fn a_standby_has_the_same_events_segments_and_state() {
    let mut hubs = Hubs::new(&["a", "b"]);
    let mut log = hubs.lead(0);
    append(&mut *log, &["1", "2"]);
    hubs.pass(300);
    let rows = Box::new(["1", "2"].map(|row| row.as_bytes().to_vec()).into_iter());
    log.seal_and_wait(UnixMillis(9), rows).unwrap();
    let head = append(&mut *log, &["3"]);
    hubs.pass(300);
    for index in 0..2 {
        let replica = hubs.replica(index);
        assert_eq!(texts(replica), ["1", "2", "3"], "hub {index}");
        let stats = replica.stats();
        assert_eq!((stats.segments, stats.segment_start.revision), (2, Revision(2)));
        assert_eq!((replica.head(), replica.synced()), (head, head));
    }
    assert_eq!(hubs.standing(1), Standing::Follows { is_level: true });
    assert_eq!((log.term(), log.is_shared(), log.head()), (1, true, head));
}

#[test]
fn a_hub_that_takes_the_lead_has_the_state_and_fences_the_one_before() {
    let mut hubs = Hubs::new(&["a", "b"]);
    let mut old = hubs.lead(0);
    let head = append(&mut *old, &["1", "2"]);
    hubs.pass(300);
    hubs.pause(0);
    let mut new = hubs.lead(1);
    assert_eq!((new.term(), new.head()), (2, head));
    assert_eq!(hubs.folded(1), ["1", "2"], "the state is there at once");
    append(&mut *new, &["3"]);
    // On waking the old one asks, and is told. Nothing of what it was asked is written.
    let (confirmed, done) = watched();
    old.confirm(done);
    let (appended, done) = watched();
    old.append(Batch::new(old.head(), vec![b"never".to_vec()]).unwrap(), done);
    hubs.resume(0);
    hubs.pass(1_000);
    assert_eq!(hubs.ends(0).len(), 1);
    assert!(said(&confirmed).unwrap().unwrap_err().ends_term());
    assert!(said(&appended).unwrap().unwrap_err().ends_term());
    assert_eq!(texts(hubs.replica(0)), ["1", "2", "3"]);
    let (again, done) = watched();
    old.confirm(done);
    hubs.pass(50);
    assert!(matches!(said(&again), Some(Err(AppendError::Fenced(_)))));
}

#[test]
fn what_was_not_answered_is_undecided_and_is_there_once() {
    let mut hubs = Hubs::new(&["a", "b"]);
    let mut log = hubs.lead(0);
    append(&mut *log, &["1"]);
    hubs.pass(300);
    hubs.lose_answers(0);
    let (appended, done) = watched();
    log.append(Batch::new(log.head(), vec![b"2".to_vec()]).unwrap(), done);
    hubs.pass(2_300);
    assert_eq!(said(&appended), None, "the identical commit is repeated");
    hubs.pass(1_000);
    assert!(matches!(said(&appended), Some(Err(AppendError::Undecided(_)))));
    assert_eq!(hubs.ends(0), [TermEnd::Undecided]);
    assert_eq!(texts(hubs.replica(1)), ["1", "2"], "it was written, and once");
    hubs.resume(0);
    hubs.pass(1_000);
    assert_eq!(texts(hubs.replica(0)), ["1", "2"]);
}

#[test]
fn a_confirm_is_answered_by_a_question_that_was_asked_after_it() {
    let mut hubs = Hubs::new(&["a", "b"]);
    let mut log = hubs.lead(0);
    let head = append(&mut *log, &["1"]);
    let asked = hubs.asked(0);
    let (confirmed, done) = watched();
    log.confirm(done);
    assert_eq!(said(&confirmed), Some(Ok(head)));
    assert!(hubs.asked(0) > asked, "the engine was asked");
    hubs.lose_answers(0);
    let (unconfirmed, done) = watched();
    log.confirm(done);
    hubs.pass(500);
    assert_eq!(said(&unconfirmed), None);
    hubs.pass(3_500);
    assert!(matches!(said(&unconfirmed), Some(Err(AppendError::Undecided(_)))));
}

#[test]
fn an_epoch_is_begun_on_every_disk_over_its_own_state() {
    let mut hubs = Hubs::new(&["a", "b"]);
    let mut log = hubs.lead(0);
    append(&mut *log, &["1", "2"]);
    hubs.pass(300);
    let rows = Box::new(["1", "2"].map(|row| row.as_bytes().to_vec()).into_iter());
    let base = log.begin_epoch(epoch(5), rows).unwrap();
    append(&mut *log, &["3"]);
    hubs.pass(300);
    for index in 0..2 {
        let replica = hubs.replica(index);
        assert_eq!(replica.head().epoch, base.epoch);
        assert_eq!(texts(replica), ["1", "2", "3"], "base and events of hub {index}");
    }
    let refused = log.begin_epoch(epoch(5), Box::new(std::iter::empty()));
    assert!(matches!(refused, Err(LogError::Refused(_))));
}

#[test]
fn a_hub_without_a_log_copies_the_leaders_and_follows_on() {
    let mut hubs = Hubs::new(&["a"]);
    let mut log = hubs.lead(0);
    append(&mut *log, &["1", "2"]);
    let index = hubs.join("c");
    hubs.pass(300);
    assert_eq!(hubs.standing(index), Standing::Copies);
    hubs.copy(0, index);
    append(&mut *log, &["3"]);
    hubs.pass(300);
    assert_eq!(hubs.standing(index), Standing::Follows { is_level: true });
    assert_eq!(texts(hubs.replica(index)), ["1", "2", "3"]);
    hubs.pause(0);
    let next = hubs.lead(index);
    assert_eq!(
        (next.term(), hubs.folded(index)),
        (2, vec!["1".into(), "2".into(), "3".into()])
    );
}

#[test]
fn a_disk_that_lost_its_newest_events_gets_them_again() {
    let mut hubs = Hubs::new(&["a", "b"]);
    let mut log = hubs.lead(0);
    append(&mut *log, &["1"]);
    hubs.pass(300);
    hubs.hold_syncs(1);
    append(&mut *log, &["2"]);
    append(&mut *log, &["3"]);
    hubs.pass(300);
    assert_eq!(texts(hubs.replica(1)), ["1", "2", "3"]);
    hubs.crash(1);
    assert_eq!(texts(hubs.replica(1)), ["1"]);
    hubs.pass(300);
    assert_eq!(texts(hubs.replica(1)), ["1", "2", "3"]);
}

#[test]
fn a_hub_that_cannot_fold_an_event_follows_and_does_not_lead() {
    let mut hubs = Hubs::new(&["a", "b"]);
    let mut log = hubs.lead(0);
    append(&mut *log, &["1", hubs::NEWER, "3"]);
    hubs.pass(300);
    assert_eq!(texts(hubs.replica(1)), ["1", hubs::NEWER, "3"]);
    hubs.pause(0);
    hubs.pass(10_000);
    assert_eq!(hubs.standing(1), Standing::Follows { is_level: true });
}

#[test]
fn a_hub_whose_disk_fails_takes_no_further_part_and_another_one_leads() {
    let mut hubs = Hubs::new(&["a", "b"]);
    let mut log = hubs.lead(0);
    append(&mut *log, &["1"]);
    hubs.pass(300);
    hubs.fill_disk(0);
    let batch = Batch::new(log.head(), vec![b"2".to_vec()]).unwrap();
    assert!(matches!(
        log.append_and_wait(batch.clone()),
        Err(AppendError::Failed(_))
    ));
    assert!(matches!(log.append_and_wait(batch), Err(AppendError::Failed(_))));
    hubs.pass(25);
    assert!(hubs.has_failed(0));
    // It was committed, and nobody was told.
    let mut next = hubs.lead(1);
    append(&mut *next, &["3"]);
    assert_eq!(texts(hubs.replica(1)), ["1", "2", "3"]);
}

#[test]
fn who_resigns_is_followed_at_once() {
    let mut hubs = Hubs::new(&["a", "b"]);
    let mut log = hubs.lead(0);
    append(&mut *log, &["1"]);
    hubs.pass(300);
    log.resign(Some("b"));
    hubs.pass(300);
    assert_eq!(hubs.ends(0), [TermEnd::Resigned]);
    let next = hubs.lead(1);
    assert_eq!(next.term(), 2);
    assert!(hubs.now() < 3_000, "after {} ms", hubs.now());
    // It leads again later: the log of its first term does not.
    hubs.pause(1);
    let again = hubs.lead(0);
    assert_eq!((log.term(), again.term()), (1, 3));
    let (confirmed, done) = watched();
    log.confirm(done);
    assert!(matches!(said(&confirmed), Some(Err(AppendError::Fenced(_)))));
}

#[test]
fn a_part_on_a_thread_over_a_disk_appends_confirms_and_ends() {
    let directory = tempfile::tempdir().unwrap();
    for term in 1..3 {
        let (running, mut log) = hubs::running(directory.path(), term);
        assert_eq!(log.term(), term);
        let head = append(&mut *log, &["1", "2"]);
        let (confirmed, done) = watched();
        log.confirm(done);
        while said(&confirmed).is_none() {
            std::thread::yield_now();
        }
        assert_eq!(said(&confirmed), Some(Ok(head)));
        drop(running);
        let batch = Batch::new(head, vec![b"late".to_vec()]).unwrap();
        assert!(matches!(log.append_and_wait(batch), Err(AppendError::Failed(_))));
    }
    let unshared = crate::open(directory.path(), &hubs::clusterset(), epoch(1));
    assert!(unshared.is_err(), "it belongs to an engine");
    let log = crate::open_replica(directory.path(), &hubs::clusterset(), epoch(1)).unwrap();
    assert_eq!(log.head().revision, Revision(4));
}
