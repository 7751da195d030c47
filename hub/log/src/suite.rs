//! The contract of [`Log`], run on every implementation: what its law says, tested. It names no store.

use std::sync::{Arc, Mutex, mpsc};

use model::{ChainHash, Clusterset, Cursor, Epoch, Revision, UnixMillis};
use proptest::prelude::*;
use tempfile::TempDir;

mod segments;
mod shared;

use self::segments::{
    NOTHING, a_log_of_version_1_becomes_the_first_segment,
    a_sealed_segment_is_read_as_before_and_the_next_goes_on, a_segment_without_events_is_not_sealed,
    an_epoch_that_just_began_is_not_sealed_away_from_its_state, old_epochs_go_with_their_segments,
    segments_that_are_not_to_be_kept_go_and_what_follows_from_them_stays, with_version_1,
};
use self::shared::{SharedPlace, append_all};
use super::{
    AppendError, BATCH_BYTES_MAX, BATCH_EVENTS_MAX, Batch, Budget, EVENT_BYTES_MAX, InvalidBatch, Log,
    LogError, MemoryDisk, MemoryLog, PAYLOAD_BYTES_MAX, ROW_BYTES_MAX, ReplayItem, chain, chain_start,
    directory::Directory,
};

/// A place where a log lives; opening it again finds what was written.
trait Place {
    fn open_in(&self, epoch: Epoch) -> Box<dyn Log>;

    fn open(&self) -> Box<dyn Log> {
        self.open_in(epoch(1))
    }

    /// Makes every value of a log of one segment what the version before segments would have written.
    fn make_version_1(&self);
}

impl Place for TempDir {
    fn make_version_1(&self) {
        with_version_1(&Directory::open(self.path(), &clusterset()).unwrap());
    }

    fn open_in(&self, epoch: Epoch) -> Box<dyn Log> {
        super::open(self.path(), &clusterset(), epoch).unwrap()
    }
}

impl Place for MemoryDisk {
    fn make_version_1(&self) {
        with_version_1(self);
    }

    fn open_in(&self, epoch: Epoch) -> Box<dyn Log> {
        Box::new(MemoryLog::open(self, &clusterset(), epoch).unwrap())
    }
}

/// Runs each test of the contract on every implementation. Those of `alone` are about a log that one process has.
macro_rules! contract {
    (alone: $($alone:ident),*; $($name:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $alone() { super::$alone(&super::MemoryDisk::default()); })*
            $(#[test] fn $name() { super::$name(&super::MemoryDisk::default()); })*
        }
        mod sled {
            $(#[test] fn $alone() { super::$alone(&tempfile::tempdir().unwrap()); })*
            $(#[test] fn $name() { super::$name(&tempfile::tempdir().unwrap()); })*
        }
        mod replicated {
            $(#[test] fn $name() { super::$name(&super::SharedPlace::default()); })*
        }
    };
}

contract!(
    alone: every_acknowledged_batch_is_synced;
    a_new_log_stands_at_revision_zero_of_its_epoch,
    appended_events_are_read_back_also_after_reopening,
    a_batch_that_follows_another_head_is_fenced_and_writes_nothing,
    a_batch_whose_hashes_are_not_those_of_its_bytes_is_never_written,
    batches_in_flight_complete_in_order,
    payloads_of_every_size_come_back,
    pages_keep_their_budget,
    a_snapshot_replaces_the_events_before_it_in_a_replay,
    a_snapshot_of_no_durable_position_is_refused,
    a_new_epoch_starts_from_its_base_and_keeps_the_old_events,
    a_foreign_hash_or_a_revision_ahead_is_noticed,
    a_sealed_segment_is_read_as_before_and_the_next_goes_on,
    segments_that_are_not_to_be_kept_go_and_what_follows_from_them_stays,
    a_segment_without_events_is_not_sealed,
    an_epoch_that_just_began_is_not_sealed_away_from_its_state,
    old_epochs_go_with_their_segments,
    a_log_of_version_1_becomes_the_first_segment,
    any_sequence_of_calls_reads_back,
);

fn clusterset() -> Clusterset {
    Clusterset::new("example.org", "default").unwrap()
}

fn epoch(number: u64) -> Epoch {
    Epoch {
        created_at: UnixMillis(number),
        random: 7,
    }
}

fn batch(log: &dyn Log, payloads: &[&str]) -> Batch {
    let payloads = payloads.iter().map(|text| text.as_bytes().to_vec()).collect();
    Batch::new(log.head(), payloads).unwrap()
}

fn append(log: &mut dyn Log, payloads: &[&str]) -> Cursor {
    let batch = batch(log, payloads);
    log.append_and_wait(batch).unwrap()
}

fn rows(texts: &[&str]) -> super::SnapshotRows {
    let rows: Vec<_> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    Box::new(rows.into_iter())
}

/// The items of a replay, as text: snapshot rows in brackets, then events.
fn replayed(log: &dyn Log) -> Vec<String> {
    let mut seen = Vec::new();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let take = |item| {
        match item {
            ReplayItem::Snapshot(info) => seen.push(format!("snapshot at {}", info.at.revision)),
            ReplayItem::Row(row) => seen.push(format!("[{}]", text(row))),
            ReplayItem::Event(event) => seen.push(text(event.payload)),
        }
        Ok::<_, LogError>(())
    };
    let head = log.reader().replay(take).unwrap();
    assert_eq!(head, log.head());
    seen
}

fn read(log: &dyn Log, epoch: Epoch, from: u64) -> Vec<String> {
    let read = move |history: &dyn super::History| history.read(epoch, Revision(from), Budget::default());
    let page = log.reader().wait(read).unwrap();
    let events = page.events.into_iter();
    events
        .map(|event| format!("{} {}", event.revision, String::from_utf8(event.payload).unwrap()))
        .collect()
}

fn a_new_log_stands_at_revision_zero_of_its_epoch(place: &dyn Place) {
    let log = place.open();
    let start = Cursor {
        epoch: epoch(1),
        revision: Revision(0),
        hash: chain_start(&clusterset(), epoch(1)),
    };
    assert_eq!(log.head(), start);
    assert_eq!(replayed(&*log), [""; 0]);
    drop(log);
    assert_eq!(
        place.open_in(epoch(2)).head(),
        start,
        "an existing log keeps its epoch"
    );
}

fn appended_events_are_read_back_also_after_reopening(place: &dyn Place) {
    let mut log = place.open();
    let start = log.head();
    append(&mut *log, &["a", "b"]);
    let head = append(&mut *log, &["c"]);
    let hash = ["a", "b", "c"]
        .iter()
        .fold(start.hash, |hash, text| chain(hash, text.as_bytes()));
    let expected = Cursor {
        epoch: epoch(1),
        revision: Revision(3),
        hash,
    };
    assert_eq!((head, log.head()), (expected, expected));
    drop(log);
    let mut log = place.open();
    assert_eq!(log.head(), expected);
    append(&mut *log, &["d"]);
    assert_eq!(replayed(&*log), ["a", "b", "c", "d"]);
    assert_eq!(read(&*log, epoch(1), 3), ["3 c", "4 d"]);
    assert_eq!(read(&*log, epoch(1), 5), [""; 0]);
}

fn a_batch_that_follows_another_head_is_fenced_and_writes_nothing(place: &dyn Place) {
    let mut log = place.open();
    let old = batch(&*log, &["a"]);
    let head = append(&mut *log, &["b"]);
    assert_eq!(log.append_and_wait(old), Err(AppendError::Fenced(head)));
    let mut foreign = head;
    foreign.hash = ChainHash([9; 16]);
    let foreign = Batch::new(foreign, vec![b"c".to_vec()]).unwrap();
    assert_eq!(log.append_and_wait(foreign), Err(AppendError::Fenced(head)));
    append(&mut *log, &["d"]);
    assert_eq!(replayed(&*log), ["b", "d"]);
}

fn a_batch_whose_hashes_are_not_those_of_its_bytes_is_never_written(place: &dyn Place) {
    let mut log = place.open();
    let head = append(&mut *log, &["a"]);
    let good = (chain(head.hash, b"b"), b"b".to_vec());
    let wrong = (chain(good.0, b"c"), b"C".to_vec());
    let batch = Batch::chained(head, vec![good, wrong]).unwrap();
    let failed = log.append_and_wait(batch);
    assert!(matches!(failed, Err(AppendError::Failed(_))), "{failed:?}");
    assert_eq!(log.head(), head);
    drop(log);
    assert_eq!(replayed(&*place.open()), ["a"]);
}

fn batches_in_flight_complete_in_order(place: &dyn Place) {
    let mut log = place.open();
    let done = Arc::new(Mutex::new(Vec::new()));
    let mut expected = log.head();
    let (sender, receiver) = mpsc::channel::<()>();
    for number in 0..200u64 {
        let batch = Batch::new(expected, vec![number.to_be_bytes().to_vec(); 3]).unwrap();
        expected = batch.head_after();
        let (done, sender) = (Arc::clone(&done), sender.clone());
        log.append(
            batch,
            Box::new(move |outcome| {
                done.lock().unwrap().push(outcome.unwrap().revision.0);
                drop(sender);
            }),
        );
    }
    drop(sender);
    assert!(receiver.recv().is_err(), "all completions ran");
    assert_eq!(
        *done.lock().unwrap(),
        (1..=200).map(|n| n * 3).collect::<Vec<_>>()
    );
    assert_eq!(log.head(), expected);
}

fn payloads_of_every_size_come_back(place: &dyn Place) {
    let mut log = place.open();
    let lengths = [
        0,
        1,
        ROW_BYTES_MAX - 26,
        ROW_BYTES_MAX,
        ROW_BYTES_MAX + 1,
        log.limits().event_bytes,
    ];
    let payloads: Vec<Vec<u8>> = lengths
        .iter()
        .map(|&length| (0..length).map(|n| (n % 253) as u8).collect())
        .collect();
    append_all(&mut *log, payloads.clone());
    let mut payloads = payloads;
    if !log.is_shared() {
        // Earlier releases appended larger ones, and what they wrote is read.
        let large = vec![7; PAYLOAD_BYTES_MAX];
        let head = log.head();
        let earlier = Batch {
            expected: head,
            events: vec![(chain(head.hash, &large), large.clone())],
        };
        log.append_and_wait(earlier).unwrap();
        payloads.push(large);
    }
    drop(log);
    let log = place.open();
    let mut events = Vec::new();
    let take = |item| {
        events.push(item);
        Ok::<_, LogError>(())
    };
    log.reader().replay(take).unwrap();
    let read = events.into_iter().map(|item| match item {
        ReplayItem::Event(event) => event.payload,
        other => panic!("{other:?}"),
    });
    assert!(read.eq(payloads));
}

fn pages_keep_their_budget(place: &dyn Place) {
    let mut log = place.open();
    append(&mut *log, &["four", "more", "than", "one!", "page"]);
    let reader = log.reader();
    let revisions = |from: u64, events: usize, bytes: usize| {
        let budget = Budget { events, bytes };
        let page = reader
            .wait(move |history| history.read(epoch(1), Revision(from), budget))
            .unwrap();
        page.events
            .iter()
            .map(|event| event.revision.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(revisions(1, 2, 1000), [1, 2]);
    assert_eq!(revisions(2, 9, 8), [2, 3]);
    assert_eq!(revisions(5, 9, 0), [5], "one event is never too many");
    let unknown = move |history: &dyn super::History| history.read(epoch(9), Revision(1), Budget::default());
    assert!(matches!(reader.wait(unknown), Err(LogError::Refused(_))));
}

fn a_snapshot_replaces_the_events_before_it_in_a_replay(place: &dyn Place) {
    let mut log = place.open();
    let first = append(&mut *log, &["a", "b"]);
    let large = "x".repeat(3 * ROW_BYTES_MAX);
    log.write_snapshot_and_wait(first, rows(&["s1", "", &large]))
        .unwrap();
    log.write_snapshot_and_wait(first, rows(&["not written again"]))
        .unwrap();
    let second = append(&mut *log, &["c"]);
    let with_first = ["snapshot at 2", "[s1]", "[]", &format!("[{large}]"), "c"].map(String::from);
    assert_eq!(replayed(&*log), with_first);
    drop(log);
    let mut log = place.open();
    assert_eq!(replayed(&*log), with_first);
    log.write_snapshot_and_wait(second, rows(&["s2"])).unwrap();
    assert_eq!(log.stats().snapshot_revision, Some(Revision(3)));
    append(&mut *log, &["d"]);
    assert_eq!(replayed(&*log), ["snapshot at 3", "[s2]", "d"]);
    let refused = log.write_snapshot_and_wait(first, rows(&["older"]));
    assert!(matches!(refused, Err(LogError::Refused(_))), "{refused:?}");
    drop(log);
    let log = place.open();
    assert_eq!(replayed(&*log), ["snapshot at 3", "[s2]", "d"]);
    assert_eq!(
        read(&*log, epoch(1), 1),
        ["1 a", "2 b", "3 c", "4 d"],
        "history stays"
    );
}

fn a_snapshot_of_no_durable_position_is_refused(place: &dyn Place) {
    let mut log = place.open();
    let head = append(&mut *log, &["a"]);
    let ahead = Cursor {
        revision: Revision(2),
        ..head
    };
    let foreign = Cursor {
        hash: ChainHash([1; 16]),
        ..head
    };
    for at in [ahead, foreign] {
        let refused = log.write_snapshot_and_wait(at, rows(&["s"]));
        assert!(matches!(refused, Err(LogError::Refused(_))), "{refused:?}");
    }
    let huge = Box::new(std::iter::once(vec![0; PAYLOAD_BYTES_MAX + 1]));
    assert!(matches!(
        log.write_snapshot_and_wait(head, huge),
        Err(LogError::Refused(_))
    ));
    log.write_snapshot_and_wait(head, rows(&["s"])).unwrap();
    assert_eq!(replayed(&*log), ["snapshot at 1", "[s]"]);
}

fn a_new_epoch_starts_from_its_base_and_keeps_the_old_events(place: &dyn Place) {
    let mut log = place.open();
    let old = append(&mut *log, &["a", "b"]);
    assert!(matches!(
        log.begin_epoch(epoch(1), rows(&[])),
        Err(LogError::Refused(_))
    ));
    let base = log.begin_epoch(epoch(5), rows(&["base"])).unwrap();
    assert_eq!((base.epoch, base.revision), (epoch(5), Revision(0)));
    let late = Batch::new(old, vec![b"late".to_vec()]).unwrap();
    assert_eq!(log.append_and_wait(late), Err(AppendError::Fenced(base)));
    append(&mut *log, &["c"]);
    let head = append(&mut *log, &["d"]);
    log.write_snapshot_and_wait(head, rows(&["s"])).unwrap();
    drop(log);
    let log = place.open();
    assert_eq!(log.head(), head);
    assert_eq!(replayed(&*log), ["snapshot at 2", "[s]"]);
    assert_eq!(read(&*log, epoch(1), 1), ["1 a", "2 b"]);
    assert_eq!(
        log.reader().wait(|history| history.epochs()).unwrap(),
        [epoch(1), epoch(5)]
    );
    let mut past = Vec::new();
    let mut take = |item| {
        past.push(item);
        Ok::<_, LogError>(())
    };
    log.reader().replay_to(epoch(5), Revision(1), &mut take).unwrap();
    assert!(matches!(&past[..], [_, ReplayItem::Row(base), ReplayItem::Event(_)] if base == b"base"));
}

fn a_foreign_hash_or_a_revision_ahead_is_noticed(place: &dyn Place) {
    let mut log = place.open();
    let first = append(&mut *log, &["a"]);
    append(&mut *log, &["b"]);
    let reader = log.reader();
    let hash_at = |epoch: Epoch, revision: u64| {
        reader
            .wait(move |history| history.hash_at(epoch, Revision(revision)))
            .unwrap()
    };
    assert_eq!(hash_at(epoch(1), 1), Some(first.hash));
    assert_eq!(hash_at(epoch(1), 0), Some(chain_start(&clusterset(), epoch(1))));
    assert_eq!(hash_at(epoch(1), 3), None);
    assert_eq!(hash_at(epoch(2), 1), None);
}

fn every_acknowledged_batch_is_synced(place: &dyn Place) {
    let mut log = place.open();
    for number in 1..=5 {
        append(&mut *log, &["event"]);
        assert_eq!(log.stats().sync_count, number);
    }
    let stats = log.stats();
    assert_eq!((stats.events_appended, stats.payload_bytes_appended), (5, 25));
    assert!(stats.bytes_on_disk > 25 && stats.failure.is_none());
}

/// One call of the property test.
#[derive(Clone)]
enum Call {
    Append(Vec<Vec<u8>>),
    Snapshot(Vec<Vec<u8>>),
    Seal(Vec<Vec<u8>>),
    Retain,
    BeginEpoch(Vec<Vec<u8>>),
    Reopen,
}

impl std::fmt::Debug for Call {
    /// Sizes only: what fails does so by the order of calls and the sizes, and bytes fill the screen.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sizes = |payloads: &[Vec<u8>]| payloads.iter().map(Vec::len).collect::<Vec<_>>();
        match self {
            Self::Append(payloads) => write!(f, "Append{:?}", sizes(payloads)),
            Self::Snapshot(rows) => write!(f, "Snapshot{:?}", sizes(rows)),
            Self::Seal(rows) => write!(f, "Seal{:?}", sizes(rows)),
            Self::Retain => f.write_str("Retain"),
            Self::BeginEpoch(rows) => write!(f, "BeginEpoch{:?}", sizes(rows)),
            Self::Reopen => f.write_str("Reopen"),
        }
    }
}

fn payloads(count: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let small = prop::collection::vec(any::<u8>(), 0..50);
    let large = (any::<u8>(), ROW_BYTES_MAX - 30..3 * ROW_BYTES_MAX).prop_map(|(byte, n)| vec![byte; n]);
    prop::collection::vec(prop_oneof![9 => small, 1 => large], count)
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        6 => payloads(1..8).prop_map(Call::Append),
        2 => payloads(0..8).prop_map(Call::Snapshot),
        2 => payloads(0..8).prop_map(Call::Seal),
        1 => Just(Call::Retain),
        1 => payloads(0..8).prop_map(Call::BeginEpoch),
        1 => Just(Call::Reopen),
    ];
    prop::collection::vec(call, 1..25)
}

/// The payloads of the current epoch's events that are kept.
fn kept(log: &dyn Log) -> Vec<Vec<u8>> {
    let (mut payloads, mut from) = (Vec::new(), Revision(0));
    loop {
        let epoch = log.head().epoch;
        let read = move |history: &dyn super::History| history.read(epoch, from, Budget::default());
        let events = log.reader().wait(read).unwrap().events;
        let Some(last) = events.last() else {
            return payloads;
        };
        from = last.revision.next();
        payloads.extend(events.into_iter().map(|event| event.payload));
    }
}

/// Holds a log against the plainest model: the base, and the events after it, per epoch.
fn any_sequence_of_calls_reads_back(place: &dyn Place) {
    // One place for all cases: every case begins an epoch of its own, as a log with a past.
    let latest = Mutex::new(place.open().head().epoch);
    let config = ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let outcome = runner.run(&calls(), |calls| {
        let mut log = Some(place.open());
        let next_epoch = || {
            let mut latest = latest.lock().unwrap();
            *latest = latest.next(UnixMillis(0), 3);
            *latest
        };
        let opened = log.as_mut().unwrap();
        opened.begin_epoch(next_epoch(), rows(&[])).unwrap();
        // Snapshot rows (with the revision they stand for), and all events of the epoch.
        let (mut snapshot, mut events) = ((0, Vec::new()), Vec::new());
        for call in calls {
            let opened = log.as_mut().unwrap();
            match call {
                Call::Append(payloads) => {
                    events.extend(payloads.clone());
                    append_all(&mut **opened, payloads);
                }
                Call::Snapshot(rows) => {
                    let at = opened.head();
                    if at.revision.0 > snapshot.0 {
                        snapshot = (at.revision.0, rows.clone());
                    }
                    prop_assert_eq!(
                        opened.write_snapshot_and_wait(at, Box::new(rows.into_iter())),
                        Ok(())
                    );
                }
                Call::Seal(rows) => {
                    let at = opened.head();
                    if at != opened.stats().segment_start && at.revision.0 > 0 {
                        snapshot = (at.revision.0, rows.clone());
                    }
                    prop_assert_eq!(
                        opened.seal_and_wait(UnixMillis(0), Box::new(rows.into_iter())),
                        Ok(())
                    );
                }
                Call::Retain => opened.retain(NOTHING, UnixMillis(0)),
                Call::BeginEpoch(rows) => {
                    (snapshot, events) = ((0, rows.clone()), Vec::new());
                    opened
                        .begin_epoch(next_epoch(), Box::new(rows.into_iter()))
                        .unwrap();
                }
                Call::Reopen => {
                    drop(log.take());
                    log = Some(place.open());
                }
            }
            let (mut read_rows, mut read_events) = (Vec::new(), Vec::new());
            let take = |item| {
                match item {
                    ReplayItem::Snapshot(_) => {}
                    ReplayItem::Row(row) => read_rows.push(row),
                    ReplayItem::Event(event) => read_events.push(event.payload),
                }
                Ok::<_, LogError>(())
            };
            log.as_ref().unwrap().reader().replay(take).unwrap();
            prop_assert!(read_rows == snapshot.1, "the snapshot's rows differ");
            prop_assert!(read_events == events[snapshot.0 as usize..], "the events differ");
            let log = log.as_ref().unwrap();
            // A removal may be under way: what is kept ends at the head, and what the state needs is there.
            let kept = kept(&**log);
            prop_assert!(
                events.ends_with(&kept),
                "what is kept is not the end of the history"
            );
            prop_assert!(
                kept.len() >= events.len() - snapshot.0 as usize,
                "what is needed went"
            );
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_batch_outside_its_bounds_is_not_made() {
    let head = Cursor::default();
    assert_eq!(Batch::new(head, vec![]), Err(InvalidBatch::Empty));
    let large = vec![vec![], vec![0; EVENT_BYTES_MAX + 1]];
    let bytes = EVENT_BYTES_MAX + 1;
    assert_eq!(
        Batch::new(head, large),
        Err(InvalidBatch::EventTooLarge { index: 1, bytes })
    );
    let events = BATCH_EVENTS_MAX + 1;
    assert_eq!(
        Batch::new(head, vec![vec![]; events]),
        Err(InvalidBatch::TooLarge { events, bytes: 0 })
    );
    let events = BATCH_BYTES_MAX / EVENT_BYTES_MAX + 1;
    let bytes = events * EVENT_BYTES_MAX;
    let refused = Batch::new(head, vec![vec![0; EVENT_BYTES_MAX]; events]);
    assert_eq!(refused, Err(InvalidBatch::TooLarge { events, bytes }));
}
