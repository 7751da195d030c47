//! Crashes while a segment is sealed, the next one is begun, and old ones go: cut at every step of writing.

use model::{Cursor, Revision, UnixMillis};

use super::{
    super::{
        Budget, Faults, Log, LogError, MemoryDisk, MemoryLog, ReplayItem, Retention, SnapshotRows,
        record::SegmentRow,
        rows::{Rows, Volume},
        segment_name::SegmentName,
        start::segment_rows,
    },
    append, clusterset, epoch, knows, reopen, rows, verified,
};

/// Events whose payload is their number, and the row of every snapshot is the number of its event.
struct Counting {
    log: MemoryLog,
    acknowledged: Cursor,
}

impl Counting {
    fn over(disk: &MemoryDisk) -> Self {
        let log = reopen(disk).unwrap();
        let acknowledged = log.head();
        Self { log, acknowledged }
    }

    fn number(revision: Revision) -> Vec<u8> {
        revision.0.to_be_bytes().to_vec()
    }

    /// More than a piece, so that there are steps between the first row and the last.
    fn snapshot(at: Cursor) -> SnapshotRows {
        Box::new(std::iter::once(Self::number(at.revision)).chain(std::iter::repeat_n(vec![0; 300_000], 4)))
    }

    fn append(&mut self) -> bool {
        let next = self.log.head().revision.next();
        let appended = append(&mut self.log, &Self::number(next));
        self.acknowledged = appended.clone().unwrap_or(self.acknowledged);
        appended.is_ok()
    }

    fn seal(&mut self) -> bool {
        let rows = Self::snapshot(self.log.head());
        self.log.seal_and_wait(UnixMillis(0), rows).is_ok()
    }

    fn retain(&mut self) -> bool {
        let nothing = Retention {
            age_millis: 0,
            bytes: 0,
        };
        self.log.retain(nothing, UnixMillis(0));
        self.log.stats().segments == 1
    }

    /// The state that a replay gives is the number of the last event, and what is kept reads on to it.
    fn check(&self) {
        let mut state = Revision(0);
        let replay = self.log.reader().replay(|item| {
            match item {
                ReplayItem::Snapshot(info) => state = info.at.revision,
                ReplayItem::Row(row) => assert!(row.len() > 8 || row == Self::number(state)),
                ReplayItem::Event(event) => {
                    state = state.next();
                    assert_eq!(event.payload, Self::number(state));
                }
            }
            Ok::<_, LogError>(())
        });
        assert_eq!(replay.unwrap().revision, state);
        let (epoch, oldest) = (self.log.head().epoch, self.log.stats().oldest_revision);
        let whole = Budget {
            events: usize::MAX,
            bytes: usize::MAX,
        };
        let read = self
            .log
            .reader()
            .wait(move |history| history.read(epoch, oldest, whole));
        let read = read.unwrap().events;
        assert_eq!(read.len() as u64, state.next().0 - oldest.0);
    }
}

/// Sealing, the next segment's beginning and the removal of what is not kept, cut at every step of writing; then what was
/// not synced is lost but for the oldest so many batches.
#[test]
fn a_crash_at_any_step_of_sealing_and_removing_loses_nothing_acknowledged() {
    let (mut crashes, mut cut) = (0, true);
    for writes in 0.. {
        if !cut {
            break;
        }
        let disk = MemoryDisk::default();
        let mut counting = Counting::over(&disk);
        assert!(counting.append() && counting.seal() && counting.append());
        disk.set_faults(Faults {
            writes_before_full: Some(writes),
            ..Faults::default()
        });
        let steps = counting.seal() && counting.append() && counting.append();
        let done = steps && counting.seal() && counting.append() && counting.retain() && counting.append();
        cut = !done;
        disk.set_faults(Faults::default());
        for kept in 0..=disk.unsynced() {
            let crashed = disk.copy();
            crashed.crash(kept);
            let again = Counting::over(&crashed);
            assert!(
                knows(&again.log, counting.acknowledged),
                "{writes} writes, {kept} batches kept"
            );
            again.check();
            drop(again);
            assert!(verified(&crashed), "{writes} writes, {kept} batches kept");
            let mut again = Counting::over(&crashed);
            assert!(again.append() && again.seal() && again.append() && again.retain());
            again.check();
            drop(again);
            assert_eq!(crashed.segment_count(), 1, "nothing is left behind");
            assert!(verified(&crashed));
            crashes += 1;
        }
    }
    assert!(crashes >= 20, "{crashes}");
}

#[test]
fn a_segment_whose_snapshot_was_cut_needs_the_one_before_it() {
    let disk = MemoryDisk::default();
    let mut counting = Counting::over(&disk);
    assert!(counting.append());
    counting.log.hold_syncs(true);
    let rows = Counting::snapshot(counting.log.head());
    counting.log.seal(
        UnixMillis(0),
        rows,
        Box::new(|outcome| panic!("told {outcome:?}")),
    );
    disk.crash(usize::MAX);
    drop(counting);
    let mut again = Counting::over(&disk);
    assert!(!again.retain() && again.append() && !again.retain());
    again.check();
    assert!(again.seal() && again.retain(), "both go together");
    again.check();
}

/// No hub seals there; one that did, and was cut before its snapshot, is not to be read as an empty log.
#[test]
fn a_segment_at_the_start_of_an_epoch_without_its_state_is_refused() {
    let disk = MemoryDisk::default();
    let mut log = reopen(&disk).unwrap();
    append(&mut log, b"old").unwrap();
    let start = log.begin_epoch(epoch(2), rows(&[b"base"])).unwrap();
    drop(log);
    let next = disk
        .create(SegmentName::After(start.epoch, start.revision))
        .unwrap();
    let row = SegmentRow {
        start,
        began_at: UnixMillis(0),
    };
    next.apply(segment_rows(&clusterset(), &row)).unwrap();
    let refused = reopen(&disk).map(drop).unwrap_err().to_string();
    assert!(
        refused.contains("the state that its epoch began with is missing"),
        "{refused}"
    );
}
