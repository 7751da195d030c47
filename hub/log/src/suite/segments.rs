//! The part of the contract that is about segments: sealed, read, not kept, and the one that a log of version 1 becomes.

use std::ops::ControlFlow;

use model::{ChainHash, Epoch, Revision, UnixMillis};

use super::{
    super::{
        Budget, FORMAT_VERSION, History, Log, LogError, ReplayItem, Retention,
        rows::{Op, ReadRows, Rows, Volume},
        segment_name::SegmentName,
    },
    Place, append, epoch, read, replayed, rows,
};

/// Keeps what it must, and no more.
pub(super) const NOTHING: Retention = Retention {
    age_millis: 0,
    bytes: 0,
};
/// Keeps what it has.
const EVERYTHING: Retention = Retention {
    age_millis: u64::MAX,
    bytes: u64::MAX,
};

/// Seals and waits. What follows has a new segment.
fn seal(log: &mut dyn Log, now: u64, texts: &[&str]) {
    log.seal_and_wait(UnixMillis(now), rows(texts)).unwrap();
}

/// Has removed what is not to be kept, which is done beside everything else; then there is a snapshot.
fn retain(log: &mut dyn Log, retention: Retention, now: u64) {
    log.retain_and_wait(retention, UnixMillis(now));
    let at = log.head();
    // It fails where the log has failed.
    let _ = log.write_snapshot_and_wait(at, rows(&["behind"]));
}

fn hash_at(log: &dyn Log, epoch: Epoch, revision: u64) -> Option<ChainHash> {
    let question = move |history: &dyn History| history.hash_at(epoch, Revision(revision));
    log.reader().wait(question).unwrap()
}

fn read_error(log: &dyn Log, epoch: Epoch, from: u64) -> Option<LogError> {
    let read = move |history: &dyn History| history.read(epoch, Revision(from), Budget::default());
    log.reader().wait(read).err()
}

pub(super) fn a_sealed_segment_is_read_as_before_and_the_next_goes_on(place: &dyn Place) {
    let mut log = place.open();
    append(&mut *log, &["a", "b"]);
    seal(&mut *log, 10, &["s2"]);
    let stats = log.stats();
    assert_eq!((stats.segments, stats.snapshot_revision), (2, Some(Revision(2))));
    assert_eq!(
        (stats.segment_start, stats.segment_began_at),
        (log.head(), UnixMillis(10))
    );
    append(&mut *log, &["c"]);
    seal(&mut *log, 20, &["s3"]);
    append(&mut *log, &["d", "e"]);
    let all = ["1 a", "2 b", "3 c", "4 d", "5 e"];
    for _ in 0..2 {
        assert_eq!(read(&*log, epoch(1), 1), all);
        assert_eq!(read(&*log, epoch(1), 3), all[2..], "from the first of a segment");
        assert_eq!(replayed(&*log), ["snapshot at 3", "[s3]", "d", "e"]);
        let mut past = Vec::new();
        let mut take = |item| {
            past.push(item);
            Ok::<_, LogError>(())
        };
        log.reader().replay_to(epoch(1), Revision(2), &mut take).unwrap();
        assert!(
            matches!(&past[..], [_, ReplayItem::Row(row)] if row == b"s2"),
            "{past:?}"
        );
        drop(log);
        log = place.open();
    }
    retain(&mut *log, EVERYTHING, u64::MAX);
    assert_eq!(log.stats().segments, 3);
}

pub(super) fn segments_that_are_not_to_be_kept_go_and_what_follows_from_them_stays(place: &dyn Place) {
    let mut log = place.open();
    let old = append(&mut *log, &["a", "b"]);
    seal(&mut *log, 10, &["s2"]);
    let kept = append(&mut *log, &["c"]);
    seal(&mut *log, 20, &["s3"]);
    append(&mut *log, &["d"]);
    let of_age = |age_millis| Retention {
        age_millis,
        ..EVERYTHING
    };
    retain(&mut *log, of_age(11), 20);
    assert_eq!(log.stats().segments, 3, "its last event is ten old at most");
    retain(&mut *log, of_age(10), 20);
    for _ in 0..2 {
        let stats = log.stats();
        assert_eq!((stats.segments, stats.oldest_revision), (2, Revision(3)));
        assert_eq!(replayed(&*log), ["snapshot at 4", "[behind]"]);
        assert_eq!(read(&*log, epoch(1), 0), ["3 c", "4 d"], "0 is the oldest");
        let forgotten = LogError::Forgotten {
            epoch: epoch(1),
            asked: Revision(2),
            oldest: Revision(3),
        };
        assert_eq!(read_error(&*log, epoch(1), 2), Some(forgotten));
        // The position that what is kept follows is known; one before it proves nothing.
        assert_eq!(hash_at(&*log, epoch(1), 2), Some(old.hash));
        assert_eq!(hash_at(&*log, epoch(1), 1), None);
        assert_eq!(hash_at(&*log, epoch(1), 3), Some(kept.hash));
        drop(log);
        log = place.open();
    }
    retain(&mut *log, NOTHING, 20);
    assert_eq!(log.stats().segments, 1, "the current one stays");
    assert_eq!(read(&*log, epoch(1), 0), ["4 d"]);
    append(&mut *log, &["e"]);
    drop(log);
    assert_eq!(replayed(&*place.open()), ["snapshot at 4", "[behind]", "e"]);
}

pub(super) fn a_segment_without_events_is_not_sealed(place: &dyn Place) {
    let mut log = place.open();
    seal(&mut *log, 10, &["nothing"]);
    assert_eq!(log.stats().segments, 1);
    append(&mut *log, &["a"]);
    seal(&mut *log, 20, &["s1"]);
    seal(&mut *log, 30, &["s1 again"]);
    assert_eq!(log.stats().segments, 2);
    assert_eq!(replayed(&*log), ["snapshot at 1", "[s1]"]);
}

pub(super) fn an_epoch_that_just_began_is_not_sealed_away_from_its_state(place: &dyn Place) {
    let mut log = place.open();
    append(&mut *log, &["a"]);
    seal(&mut *log, 10, &["s1"]);
    append(&mut *log, &["b"]);
    log.begin_epoch(epoch(5), rows(&["base"])).unwrap();
    seal(&mut *log, 20, &["base again"]);
    assert_eq!(log.stats().segments, 2, "nothing happened in the epoch");
    for _ in 0..2 {
        assert_eq!(replayed(&*log), ["snapshot at 0", "[base]"]);
        drop(log);
        log = place.open();
    }
    append(&mut *log, &["c"]);
    seal(&mut *log, 30, &["t1"]);
    assert_eq!(log.stats().segments, 3);
}

pub(super) fn old_epochs_go_with_their_segments(place: &dyn Place) {
    let mut log = place.open();
    append(&mut *log, &["a"]);
    seal(&mut *log, 10, &["s1"]);
    append(&mut *log, &["b"]);
    log.begin_epoch(epoch(5), rows(&["base"])).unwrap();
    append(&mut *log, &["c"]);
    let epochs = |log: &dyn Log| log.reader().wait(|history| history.epochs()).unwrap();
    seal(&mut *log, 20, &["t1"]);
    let head = append(&mut *log, &["d"]);
    assert_eq!(epochs(&*log), [epoch(1), epoch(5)]);
    assert_eq!(read(&*log, epoch(1), 1), ["1 a", "2 b"]);
    drop(log);
    let mut log = place.open();
    assert_eq!((log.head(), epochs(&*log)), (head, vec![epoch(1), epoch(5)]));
    retain(&mut *log, NOTHING, 20);
    assert_eq!(epochs(&*log), [epoch(5)]);
    assert_eq!(hash_at(&*log, epoch(1), 1), None);
    assert!(matches!(
        read_error(&*log, epoch(1), 1),
        Some(LogError::Refused(_))
    ));
    drop(log);
    let log = place.open();
    assert_eq!((log.head(), epochs(&*log)), (head, vec![epoch(5)]));
    assert_eq!(read(&*log, epoch(5), 0), ["2 d"]);
}

pub(super) fn a_log_of_version_1_becomes_the_first_segment(place: &dyn Place) {
    let mut log = place.open();
    append(&mut *log, &["a", "b"]);
    let at = log.begin_epoch(epoch(2), rows(&["base"])).unwrap();
    let head = append(&mut *log, &["c"]);
    log.write_snapshot_and_wait(head, rows(&["s1"])).unwrap();
    drop(log);
    place.make_version_1();
    let mut log = place.open();
    assert_eq!(log.head(), head);
    assert_eq!(replayed(&*log), ["snapshot at 1", "[s1]"]);
    let stats = log.stats();
    assert_eq!((stats.segments, stats.segment_began_at), (1, UnixMillis(1)));
    append(&mut *log, &["d"]);
    seal(&mut *log, 10, &["s2"]);
    append(&mut *log, &["e"]);
    drop(log);
    let mut log = place.open();
    assert_eq!(read(&*log, epoch(1), 1), ["1 a", "2 b"]);
    assert_eq!(read(&*log, epoch(2), 1), ["1 c", "2 d", "3 e"]);
    assert_eq!(hash_at(&*log, epoch(2), 0), Some(at.hash));
    retain(&mut *log, NOTHING, 10);
    assert_eq!(read(&*log, epoch(2), 0), ["3 e"]);
}

/// Makes every value of a log of one segment what the version before segments would have written.
pub(super) fn with_version_1(volume: &impl Volume) {
    let rows = volume.open(SegmentName::First).unwrap();
    let mut ops = Vec::new();
    let version_1 = |key: &[u8], value: &[u8]| {
        assert_eq!(value[0], FORMAT_VERSION);
        ops.push(Op::Put(key.to_vec(), [&[1], &value[1..]].concat()));
        ControlFlow::Continue(())
    };
    rows.scan(&[0], &[u8::MAX], &mut { version_1 }).unwrap();
    rows.apply(ops).unwrap();
    rows.sync().unwrap();
}
