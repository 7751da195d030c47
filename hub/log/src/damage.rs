//! Tests of what happens when the disk does not keep its word: lost, torn, flipped, missing, full, lying.
//! In memory every single row and bit is tried; on files what STYLE section 5 measured is tried again.

use std::{
    fs,
    path::{Path, PathBuf},
};

use model::{Clusterset, Cursor, Epoch, Revision, UnixMillis};

mod segments;

use super::{
    AppendError, Batch, Faults, Log, LogError, MemoryDisk, MemoryLog, OpenError, ROW_BYTES_MAX, Report,
    verify::{Unchecked, verify_log},
};

fn clusterset() -> Clusterset {
    Clusterset::new("example.org", "default").unwrap()
}

fn epoch(number: u64) -> Epoch {
    Epoch {
        created_at: UnixMillis(number),
        random: 1,
    }
}

fn reopen(disk: &MemoryDisk) -> Result<MemoryLog, LogError> {
    MemoryLog::open(disk, &clusterset(), epoch(1))
}

fn append(log: &mut dyn Log, payload: &[u8]) -> Result<Cursor, AppendError> {
    let batch = Batch::new(log.head(), vec![payload.to_vec()]).unwrap();
    log.append_and_wait(batch)
}

fn rows(texts: &[&[u8]]) -> super::SnapshotRows {
    let rows: Vec<_> = texts.iter().map(|text| text.to_vec()).collect();
    Box::new(rows.into_iter())
}

/// True if the log says that a cursor is of its own history.
fn knows(log: &dyn Log, cursor: Cursor) -> bool {
    let hash = log
        .reader()
        .wait(move |history| history.hash_at(cursor.epoch, cursor.revision));
    hash.unwrap() == Some(cursor.hash)
}

/// A log with something of every kind, and small, so that every bit of it can be tried.
fn one_of_everything() -> (MemoryDisk, Cursor) {
    let disk = MemoryDisk::default();
    let mut log = reopen(&disk).unwrap();
    append(&mut log, b"old").unwrap();
    log.begin_epoch(epoch(2), rows(&[b"base"])).unwrap();
    append(&mut log, b"a").unwrap();
    let at = append(&mut log, b"b").unwrap();
    log.write_snapshot_and_wait(at, rows(&[b"s1", b"s2"])).unwrap();
    append(&mut log, b"c").unwrap();
    let batch = Batch::new(log.head(), vec![b"d".to_vec(), b"e".to_vec()]).unwrap();
    let head = log.append_and_wait(batch).unwrap();
    (disk, head)
}

/// The same, whose segment was sealed, and one more event.
fn two_segments() -> (MemoryDisk, Cursor) {
    let (disk, _) = one_of_everything();
    let mut log = reopen(&disk).unwrap();
    log.seal_and_wait(UnixMillis(9), rows(&[b"t1"])).unwrap();
    let head = append(&mut log, b"f").unwrap();
    (disk, head)
}

fn verified(disk: &MemoryDisk) -> bool {
    verify_log(disk, clusterset().to_string(), &mut |_| {}, &mut Unchecked)
        .corruptions
        .is_empty()
}

#[test]
fn every_flipped_bit_is_found() {
    every_flipped_bit_of(one_of_everything(), 1500, 2);
}

/// Start reads the current segment: the sealed one waits for verify or for a reader.
#[test]
fn every_flipped_bit_of_a_sealed_segment_is_found() {
    every_flipped_bit_of(two_segments(), 3000, 4);
}

fn every_flipped_bit_of((disk, head): (MemoryDisk, Cursor), flips_min: usize, refused_part: usize) {
    assert!(verified(&disk) && reopen(&disk).unwrap().head() == head);
    let (mut flips, mut refused) = (0, 0);
    for index in 0..disk.row_count() {
        for bit in 0.. {
            let damaged = disk.copy();
            if !damaged.flip_bit(index, bit) {
                break;
            }
            assert!(!verified(&damaged), "row {index}, bit {bit}");
            flips += 1;
            refused += usize::from(reopen(&damaged).is_err());
        }
    }
    // Start reads the snapshot and what follows; the old epoch and the events before the snapshot wait for
    // verify or for a reader.
    assert!(
        flips > flips_min && refused > flips / refused_part,
        "{refused} of {flips} refused at start"
    );
}

#[test]
fn a_flipped_event_before_the_snapshot_is_found_when_it_is_read() {
    let (disk, _) = one_of_everything();
    // Rows in key order: format, two epochs, event of the old epoch, events 1 to 4.
    assert!(disk.flip_bit(4, 8 * 47));
    let log = reopen(&disk).unwrap();
    let budget = super::Budget::default();
    let read = log
        .reader()
        .wait(move |history| history.read(epoch(2), Revision(1), budget));
    let Err(LogError::Corrupt(corruption)) = read else {
        panic!("{read:?}");
    };
    assert_eq!(corruption.place, format!("epoch {}, revision 1", epoch(2)));
}

#[test]
fn every_missing_row_is_found_or_shows_in_a_cursor() {
    every_missing_row_of(one_of_everything(), 4);
}

#[test]
fn every_missing_row_of_two_segments_is_found_or_shows_in_a_cursor() {
    every_missing_row_of(two_segments(), 2);
}

fn every_missing_row_of((disk, head): (MemoryDisk, Cursor), replayed_min: usize) {
    let mut shorter = 0;
    for index in 0..disk.row_count() {
        let damaged = disk.copy();
        assert!(damaged.remove_row(index));
        let Ok(log) = reopen(&damaged) else {
            continue;
        };
        let last_event_lost = !knows(&log, head);
        shorter += usize::from(last_event_lost);
        let mut replayed = Vec::new();
        let replay = log.reader().replay(|item| {
            replayed.push(item);
            Ok::<_, LogError>(())
        });
        // Whatever could be opened has a whole state: from the snapshot, or from the base without it.
        assert!(
            replay.is_ok() && replayed.len() >= replayed_min,
            "row {index}: {replayed:?}"
        );
    }
    assert_eq!(
        shorter, 1,
        "only the loss of the last event cannot be seen from inside"
    );
}

#[test]
fn unsynced_batches_are_lost_and_never_acknowledged() {
    for kept in 0..=3 {
        let disk = MemoryDisk::default();
        let mut log = reopen(&disk).unwrap();
        let acknowledged = append(&mut log, b"durable").unwrap();
        log.hold_syncs(true);
        let mut expected = acknowledged;
        for payload in [b"one", b"two", b"six"] {
            let batch = Batch::new(expected, vec![payload.to_vec()]).unwrap();
            expected = batch.head_after();
            log.append(
                batch,
                Box::new(|outcome| panic!("not synced, yet told {outcome:?}")),
            );
        }
        assert_eq!((log.head(), disk.unsynced()), (acknowledged, 3));
        let nothing = log.reader().wait(|history| {
            let budget = super::Budget::default();
            history.read(epoch(1), Revision(2), budget)
        });
        assert_eq!(nothing.unwrap().events, [], "readers see only what is durable");
        disk.crash(kept);
        drop(log);
        let log = reopen(&disk).unwrap();
        assert!(knows(&log, acknowledged));
        assert_eq!(log.head().revision.0, 1 + kept as u64);
    }
}

#[test]
fn what_a_start_found_unsynced_is_durable_before_it_is_told() {
    let disk = MemoryDisk::default();
    let mut log = reopen(&disk).unwrap();
    append(&mut log, b"durable").unwrap();
    disk.set_faults(Faults {
        fail_sync: true,
        ..Faults::default()
    });
    append(&mut log, b"written").unwrap_err();
    drop(log);
    assert!(reopen(&disk).is_err(), "the disk is as sick as before");
    disk.set_faults(Faults::default());
    let told = reopen(&disk).unwrap().head();
    assert_eq!(told.revision, Revision(2), "a process died, not the machine");
    disk.crash(0);
    assert!(knows(&reopen(&disk).unwrap(), told));
}

#[test]
fn a_torn_batch_is_whole_up_to_an_event_or_refused() {
    let mut refused = 0;
    for torn in 0..=4 {
        let disk = MemoryDisk::default();
        let mut log = reopen(&disk).unwrap();
        let acknowledged = append(&mut log, b"durable").unwrap();
        log.hold_syncs(true);
        // Rows: one, then three parts.
        let batch = Batch::new(
            acknowledged,
            vec![b"one".to_vec(), vec![2; 3 * ROW_BYTES_MAX - 200]],
        );
        log.append(batch.unwrap(), Box::new(|_| {}));
        disk.crash_torn(0, torn);
        drop(log);
        match reopen(&disk) {
            Ok(log) => assert!(knows(&log, acknowledged)),
            Err(LogError::Corrupt(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(refused, 2, "after the first and the second of three parts");
}

#[test]
fn failure_is_a_state_with_the_first_reason() {
    let faults = [
        Faults {
            writes_before_full: Some(0),
            ..Faults::default()
        },
        Faults {
            fail_sync: true,
            ..Faults::default()
        },
    ];
    for (faults, reason) in faults.into_iter().zip(["no room", "sync failed"]) {
        let disk = MemoryDisk::default();
        let mut log = reopen(&disk).unwrap();
        let acknowledged = append(&mut log, b"durable").unwrap();
        disk.set_faults(faults);
        let first = append(&mut log, b"fails").unwrap_err();
        assert!(first.to_string().contains(reason), "{first}");
        disk.set_faults(Faults::default());
        assert_eq!(append(&mut log, b"healthy again"), Err(first.clone()));
        let snapshot = log.write_snapshot_and_wait(acknowledged, rows(&[b"s"]));
        let begun = log.begin_epoch(epoch(2), rows(&[]));
        for error in [snapshot.unwrap_err(), begun.unwrap_err()] {
            assert!(matches!(error, LogError::Failed(_)), "{error}");
        }
        assert_eq!(log.stats().failure.map(AppendError::Failed), Some(first));
        disk.crash(0);
        drop(log);
        assert_eq!(reopen(&disk).unwrap().head(), acknowledged);
    }
}

#[test]
fn a_snapshot_or_epoch_that_meets_a_full_disk_leaves_the_old_one() {
    let large = vec![b'x'; 600 * 1024];
    for writes in 0..6 {
        let (disk, head) = one_of_everything();
        let mut log = reopen(&disk).unwrap();
        disk.set_faults(Faults {
            writes_before_full: Some(writes),
            ..Faults::default()
        });
        let outcome = match writes % 2 {
            0 => log.write_snapshot_and_wait(head, rows(&[&large, &large])),
            _ => log.begin_epoch(epoch(3), rows(&[&large, &large])).map(drop),
        };
        disk.set_faults(Faults::default());
        disk.crash(0);
        drop(log);
        assert!(verified(&disk), "after {writes} writes");
        let log = reopen(&disk).unwrap();
        assert_eq!(
            outcome.is_ok(),
            log.head() != head || log.stats().snapshot_revision == Some(head.revision)
        );
        assert!(knows(&log, head));
    }
}

#[test]
fn a_disk_that_lies_about_syncs_shows_in_a_cursor() {
    let disk = MemoryDisk::default();
    let mut log = reopen(&disk).unwrap();
    append(&mut log, b"durable").unwrap();
    disk.set_faults(Faults {
        lie_about_sync: true,
        ..Faults::default()
    });
    let told = append(&mut log, b"gone").unwrap();
    disk.crash(0);
    drop(log);
    disk.set_faults(Faults::default());
    let mut log = reopen(&disk).unwrap();
    assert!(!knows(&log, told), "the cursor is ahead of the head");
    append(&mut log, b"another").unwrap();
    assert!(!knows(&log, told), "the cursor has a foreign hash");
}

/// A data directory with 30 batches of 400-byte events, a snapshot in the middle, closed cleanly.
fn filled(events_per_batch: usize) -> (tempfile::TempDir, Cursor) {
    let dir = tempfile::tempdir().unwrap();
    let mut log = super::open(dir.path(), &clusterset(), epoch(1)).unwrap();
    for number in 0..30u8 {
        let batch = Batch::new(log.head(), vec![vec![number; 400]; events_per_batch]).unwrap();
        let head = log.append_and_wait(batch).unwrap();
        if number == 15 {
            log.write_snapshot_and_wait(head, rows(&[b"s1", b"s2"])).unwrap();
        }
    }
    let head = log.head();
    drop(log);
    (dir, head)
}

fn check(dir: &Path) -> Result<Report, OpenError> {
    super::verify(dir, &mut |_| {})
}

fn store_file(dir: &Path, start: &str) -> PathBuf {
    let entries = fs::read_dir(dir.join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(start);
    entries.into_iter().find(named).unwrap()
}

fn flip(path: &Path, at: usize, count: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes
        .iter_mut()
        .skip(at)
        .take(count)
        .for_each(|byte| *byte ^= 0x55);
    fs::write(path, bytes).unwrap();
}

#[test]
fn what_a_log_makes_is_closed_to_users_outside_its_group() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    drop(super::open(&data, &clusterset(), epoch(1)).unwrap());
    let mut made = vec![data.clone()];
    let entries = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
    made.extend(entries.filter(|path| path.is_dir()));
    assert!(made.len() > 1, "{made:?}");
    for dir in made {
        let mode = fs::metadata(&dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o007, 0, "{}: {mode:o}", dir.display());
    }
}

#[test]
fn a_whole_directory_verifies_with_progress() {
    let (dir, head) = filled(100);
    let mut seen = Vec::new();
    let report = super::verify(dir.path(), &mut |progress| seen.push(progress.revision)).unwrap();
    assert!(report.is_good());
    let found = &report.logs[0].epochs[0];
    assert_eq!((found.events, found.payload_bytes), (3000, 1_200_000));
    assert_eq!(found.snapshots, [Revision(1600)]);
    assert_eq!(seen, [head.revision]);
}

#[test]
fn flipped_bytes_in_the_data_file_are_refused_or_without_effect() {
    // Several of the store's segments: damage in the last one is taken for the end of the file.
    let (dir, head) = filled(2000);
    let length = fs::metadata(store_file(dir.path(), "db")).unwrap().len() as usize;
    let original = fs::read(store_file(dir.path(), "db")).unwrap();
    let used = original.iter().rposition(|&byte| byte != 0).unwrap();
    let mut refused = 0;
    for eighth in 1..8 {
        let path = store_file(dir.path(), "db");
        assert_eq!(original.len(), length);
        let copy = tempfile::tempdir().unwrap();
        copy_dir(dir.path(), copy.path());
        flip(
            &copy.path().join(path.strip_prefix(dir.path()).unwrap()),
            used * eighth / 8,
            64,
        );
        match super::open(copy.path(), &clusterset(), epoch(9)) {
            Ok(log) => {
                // The damage hit bytes that nothing refers to, or the log is a prefix, which cursors show.
                let now = log.head();
                drop(log);
                let report = check(copy.path());
                let whole = report.is_ok_and(|report| report.is_good());
                assert!(now.epoch == epoch(1) && (whole || now != head), "{now:?}");
            }
            Err(error) => {
                assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
                assert!(error.to_string().contains("move it aside"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_damaged_store_snapshot_is_refused_and_can_be_moved_aside() {
    let (dir, head) = filled(100);
    // The store writes that file when it opens.
    drop(super::open(dir.path(), &clusterset(), epoch(9)).unwrap());
    let path = store_file(dir.path(), "snap.");
    flip(&path, fs::metadata(&path).unwrap().len() as usize / 2, 1);
    let error = super::open(dir.path(), &clusterset(), epoch(9)).err().unwrap();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    assert!(
        error.to_string().contains("log/: ") && error.to_string().contains("snap.*"),
        "{error}"
    );
    fs::remove_file(path).unwrap();
    assert_eq!(
        super::open(dir.path(), &clusterset(), epoch(9)).unwrap().head(),
        head
    );
}

#[test]
fn a_cut_tail_is_refused_or_shows_in_a_cursor() {
    let (dir, head) = filled(100);
    let path = store_file(dir.path(), "db");
    let bytes = fs::read(&path).unwrap();
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    fs::write(&path, &bytes[..used - 300_000]).unwrap();
    match super::open(dir.path(), &clusterset(), epoch(9)) {
        Ok(log) => assert!(!knows(&*log, head) && log.head().epoch == epoch(1)),
        Err(error) => assert!(matches!(error, OpenError::Corrupt { .. }), "{error}"),
    }
}

#[test]
fn a_directory_that_is_not_ours_to_open_is_refused_with_advice() {
    let (dir, _) = filled(100);
    let log = super::open(dir.path(), &clusterset(), epoch(1)).unwrap();
    let second = super::open(dir.path(), &clusterset(), epoch(1)).err().unwrap();
    assert!(matches!(second, OpenError::Locked { .. }), "{second}");
    assert!(matches!(check(dir.path()), Err(OpenError::Locked { .. })));
    drop(log);
    let other = Clusterset::new("other.example.org", "default").unwrap();
    let foreign = super::open(dir.path(), &other, epoch(1)).err().unwrap();
    assert!(
        foreign
            .to_string()
            .contains("holds the event log of clusterset example.org/default"),
        "{foreign}"
    );
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(check(empty.path()), Err(OpenError::Missing { .. })));
    let file = empty.path().join("file");
    fs::write(&file, "").unwrap();
    let no_directory = super::open(&file, &clusterset(), epoch(1)).err().unwrap();
    assert!(matches!(no_directory, OpenError::Io { .. }), "{no_directory}");
}
