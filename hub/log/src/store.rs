//! The log over any volume, synchronous: stage, commit, snapshots piece by piece, new segments, new epochs. Its owner
//! (a thread, or a test's loop) decides when; it has no thread, queue or clock of its own.

use std::sync::Arc;

use model::{Clusterset, Cursor, Epoch, Revision, UnixMillis};

use super::{
    Batch, SnapshotCompletion, SnapshotRows, Stats,
    error::{AppendError, Failure, LogError},
    group, key,
    reader::{DurableHistory, History},
    record::{self, EpochRow, SegmentRow},
    retention::Keeper,
    rows::{Op, Rows, RowsError, Volume},
    segment::Segment,
    segment_name::SegmentName,
    segments::Segments,
    shared_head::SharedHead,
    snapshot::{self, SnapshotJob, Step},
    start::{self, StartError},
};

/// Commits between two looks at how many bytes the current segment takes.
const MEASURE_EVERY: u64 = 16;

/// A snapshot's completion together with what it is to be told.
pub(super) type Told<Completion, Outcome> = Option<(Completion, Outcome)>;

/// The log itself.
pub(super) struct Store<V: Volume> {
    segments: Segments<V>,
    /// The current segment's store.
    rows: Arc<V::Rows>,
    /// The predecessor of the current segment, and the time of its beginning.
    begins: SegmentRow,
    /// Place of the snapshot, complete or not, with which the current epoch begins in the current segment.
    base: Revision,
    /// The head including staged batches; the one that readers see is in `shared`.
    staged: Cursor,
    staged_payload_bytes: u64,
    shared: Arc<SharedHead>,
    failure: Option<Failure>,
    snapshot: Option<(SnapshotJob, Option<SnapshotCompletion>)>,
}

impl<V: Volume> Store<V> {
    /// Opens the log on a volume, or makes it in `new_epoch`.
    pub(super) fn open(volume: &V, clusterset: &Clusterset, new_epoch: Epoch) -> Result<Self, StartError> {
        let (segments, started) = start::start(volume, clusterset, new_epoch)?;
        let current = segments.current();
        let stats = Stats {
            snapshot_revision: started.snapshot.map(|info| info.at.revision),
            ..Stats::default()
        };
        let store = Self {
            rows: current.rows()?,
            begins: current.row()?,
            base: started.base,
            segments,
            staged: started.head,
            staged_payload_bytes: 0,
            shared: Arc::new(SharedHead::new(started.head, stats)),
            failure: None,
            snapshot: None,
        };
        store.shared.lock().1.snapshot_bytes = started.snapshot.map_or(0, |info| info.bytes);
        store.measure();
        Ok(store)
    }

    /// Its volume.
    pub(super) fn volume(&self) -> V {
        self.segments.volume().clone()
    }

    pub(super) fn clusterset(&self) -> &Clusterset {
        self.segments.clusterset()
    }

    /// Measures the log's content and size, for the figures.
    fn measure(&self) {
        let kept = self.segments.kept();
        let (current, sealed) = kept.split_last().expect("a log has a segment");
        let segment_bytes = current.bytes(false);
        let sealed_bytes: u64 = sealed.iter().map(|segment| segment.bytes(true)).sum();
        let oldest = self.segments.first_revision(self.staged.epoch);
        let mut shared = self.shared.lock();
        let stats = &mut shared.1;
        stats.bytes_on_disk = sealed_bytes + segment_bytes;
        stats.segment_bytes = segment_bytes;
        stats.segment_start = self.begins.start;
        stats.segment_began_at = self.begins.began_at;
        stats.segments = kept.len() as u64;
        stats.oldest_revision = oldest;
    }

    pub(super) fn shared(&self) -> Arc<SharedHead> {
        Arc::clone(&self.shared)
    }

    /// A reader's access to history.
    pub(super) fn history(&self) -> DurableHistory<V> {
        DurableHistory::new(self.segments.clone(), self.shared())
    }

    pub(super) fn alive(&self) -> Result<(), Failure> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Records the first failure; later ones only follow from it.
    fn fail(&mut self, reason: impl ToString) -> Failure {
        let first = || Failure(reason.to_string().into());
        let failure = self.failure.get_or_insert_with(first).clone();
        self.shared.lock().1.failure = Some(failure.clone());
        failure
    }

    /// Writes a batch without waiting for the disk. It is durable after the next [`Store::commit`].
    pub(super) fn stage(&mut self, batch: &Batch) -> Result<Cursor, AppendError> {
        self.alive()?;
        if batch.expected() != self.staged {
            return Err(AppendError::Fenced(self.staged));
        }
        let mut at = self.staged;
        for (hash, payload) in batch.events() {
            // The writer has hashed these bytes; hashing them again here catches what changed in between.
            if record::chain(at.hash, payload) != *hash {
                return Err(self
                    .fail("an event's bytes changed between hashing and writing")
                    .into());
            }
            (at.revision, at.hash) = (at.revision.next(), *hash);
            self.staged_payload_bytes += payload.len() as u64;
        }
        let events = batch
            .events()
            .iter()
            .map(|(hash, payload)| (*hash, payload.as_slice()));
        let packed = group::pack(self.staged.revision.next().0, self.staged.hash, events);
        let ops = packed.into_iter().map(|row| {
            let key = key::event(at.epoch, Revision(row.first), row.part);
            Op::Put(key, row.bytes)
        });
        let ops = ops.collect();
        self.rows.apply(ops).map_err(|error| self.fail(error))?;
        self.staged = at;
        Ok(at)
    }

    /// Makes everything staged durable.
    pub(super) fn commit(&mut self) -> Result<Cursor, Failure> {
        self.alive()?;
        self.rows.sync().map_err(|error| self.fail(error))?;
        let mut shared = self.shared.lock();
        let (head, stats) = &mut *shared;
        stats.sync_count += 1;
        let look = stats.sync_count.is_multiple_of(MEASURE_EVERY);
        stats.events_appended += self.staged.revision.0 - head.revision.0;
        stats.payload_bytes_appended += std::mem::take(&mut self.staged_payload_bytes);
        *head = self.staged;
        drop(shared);
        self.shared.set_synced(self.staged);
        if look {
            self.measure();
        }
        Ok(self.staged)
    }

    /// Appends a batch that is durable elsewhere, and shows it to readers at once. This disk has it after the next
    /// [`Store::commit`]; until then a crash may remove it, the newest events first.
    pub(super) fn apply(&mut self, batch: &Batch) -> Result<Cursor, AppendError> {
        let at = self.stage(batch)?;
        let mut shared = self.shared.lock();
        let (head, stats) = &mut *shared;
        stats.events_appended += at.revision.0 - head.revision.0;
        stats.payload_bytes_appended += std::mem::take(&mut self.staged_payload_bytes);
        *head = at;
        Ok(at)
    }

    /// Returns true if this disk lacks events that were applied.
    pub(super) fn is_behind(&self) -> bool {
        self.shared.synced() != self.staged
    }

    /// Begins to write a snapshot; [`Store::step_snapshot`] continues it. Gives the completion back if there is nothing
    /// to write or it is refused.
    pub(super) fn start_snapshot(
        &mut self,
        at: Cursor,
        rows: SnapshotRows,
        done: SnapshotCompletion,
    ) -> Told<SnapshotCompletion, Result<(), LogError>> {
        match self.check_snapshot(at) {
            Ok(true) => {
                self.snapshot = Some((SnapshotJob::new(at, self.base, rows), Some(done)));
                None
            }
            Ok(false) => Some((done, Ok(()))),
            Err(error) => Some((done, Err(error))),
        }
    }

    /// One whose completion was told is durable; what it still had to remove, its successor removes.
    fn no_snapshot_in_the_making(&self) -> Result<(), LogError> {
        match &self.snapshot {
            Some((_, Some(_))) => Err(LogError::Refused("a snapshot is being written already".into())),
            _ => Ok(()),
        }
    }

    /// False if that very snapshot is there already.
    fn check_snapshot(&self, at: Cursor) -> Result<bool, LogError> {
        self.alive()?;
        self.no_snapshot_in_the_making()?;
        let head = self.shared.head();
        let ours = at.epoch == head.epoch
            && at.revision <= head.revision
            && self.history().hash_at(at.epoch, at.revision)? == Some(at.hash);
        if !ours {
            return Err(LogError::Refused(format!(
                "revision {} of epoch {} with hash {} is not a durable position of this log",
                at.revision, at.epoch, at.hash
            )));
        }
        match snapshot::newest(&self.segments, at.epoch, Revision(u64::MAX))? {
            Some(newest) if newest.at == at => Ok(false),
            Some(newest) if newest.at.revision > at.revision => Err(LogError::Refused(format!(
                "a newer snapshot, at revision {}, is there already",
                newest.at.revision
            ))),
            _ => Ok(true),
        }
    }

    /// Seals the current segment at the head and begins the next one; [`Store::step_snapshot`] continues the snapshot
    /// that it begins with. Gives the completion back if there is nothing to seal or it is refused.
    pub(super) fn seal(
        &mut self,
        now: UnixMillis,
        rows: SnapshotRows,
        done: SnapshotCompletion,
    ) -> Told<SnapshotCompletion, Result<(), LogError>> {
        match self.begin_segment(now) {
            Ok(true) => {
                self.snapshot = Some((SnapshotJob::new(self.staged, self.base, rows), Some(done)));
                None
            }
            Ok(false) => Some((done, Ok(()))),
            Err(error) => Some((done, Err(error))),
        }
    }

    /// False if nothing has happened in the current segment, or since the current epoch began: the state that an epoch
    /// takes over is at its start, and a segment behind it would hide that before it has a snapshot of its own.
    fn begin_segment(&mut self, now: UnixMillis) -> Result<bool, LogError> {
        self.alive()?;
        self.no_snapshot_in_the_making()?;
        if self.shared.head() != self.staged {
            let why = "a segment is sealed at a durable position, and events wait for the disk";
            return Err(LogError::Refused(why.into()));
        }
        if self.staged == self.begins.start || self.staged.revision == Revision(0) {
            return Ok(false);
        }
        if self.is_behind() {
            // A crash removes the newest events of one store. The next segment must not outlive the end of this one.
            self.commit()?;
        }
        let row = SegmentRow {
            start: self.staged,
            began_at: now.max(self.begins.began_at),
        };
        let name = SegmentName::After(row.start.epoch, row.start.revision);
        let rows = self.make_segment(name, &row).map_err(|error| self.fail(error))?;
        let volume = self.segments.volume().clone();
        let segment = Segment::begun(volume, self.clusterset().clone(), row, rows);
        self.rows = segment.rows()?;
        self.segments.push(segment);
        // The remaining removals of an old segment's snapshot go with the segment.
        self.snapshot = None;
        (self.begins, self.base) = (row, row.start.revision);
        self.measure();
        Ok(true)
    }

    /// It is there with its first rows, or it never was: nothing is written to it before they are durable.
    fn make_segment(&self, name: SegmentName, row: &SegmentRow) -> Result<V::Rows, RowsError> {
        let rows = self.segments.volume().create(name)?;
        rows.apply(start::segment_rows(self.clusterset(), row))?;
        rows.sync()?;
        Ok(rows)
    }

    /// Removes the oldest segments that are not to be kept, and that nothing which is kept needs, here and now.
    #[cfg(any(test, feature = "simulated"))]
    pub(super) fn retain(&mut self, retention: &super::Retention, now: UnixMillis) -> Result<(), LogError> {
        self.alive()?;
        let kept = self.keeper().retain(retention, now);
        self.retained();
        kept
    }

    /// Removes segments while appends go on; nobody else removes any.
    pub(super) fn keeper(&self) -> Keeper<V> {
        Keeper::new(self.segments.clone())
    }

    /// A keeper looked, and may have removed some.
    pub(super) fn retained(&self) {
        self.measure();
        self.shared.lock().1.retain_count += 1;
    }

    /// True while a snapshot wants steps.
    pub(super) fn has_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Does one piece of the snapshot that is being written; gives its completion back when it is to be told.
    pub(super) fn step_snapshot(&mut self) -> Told<SnapshotCompletion, Result<(), LogError>> {
        let (mut job, mut done) = self.snapshot.take()?;
        let step = match self.alive() {
            Ok(()) => job.step(&*self.rows),
            Err(failure) => Err(failure.into()),
        };
        match step {
            Ok(Step::Finished) => None,
            Ok(Step::More) => {
                self.snapshot = Some((job, done));
                None
            }
            Ok(Step::Durable) => {
                let mut shared = self.shared.lock();
                shared.1.snapshot_revision = Some(job.at().revision);
                shared.1.snapshot_bytes = job.bytes();
                shared.1.sync_count += 2;
                drop(shared);
                // Asked now, while its store is open: when older segments are to go, this one may be closed.
                let _ = self.segments.current().has_base();
                let told = done.take().map(|done| (done, Ok(())));
                self.snapshot = Some((job, done));
                told
            }
            Err(error) => {
                if let LogError::Failed(failure) = &error {
                    self.fail(&failure.0);
                } else if let Err(error) = job.abandon(&*self.rows) {
                    self.fail(error);
                }
                done.map(|done| (done, Err(error)))
            }
        }
    }

    /// Gives up the snapshot that is being written, if there is one.
    pub(super) fn abandon_snapshot(&mut self) -> Told<SnapshotCompletion, Result<(), LogError>> {
        let (job, done) = self.snapshot.take()?;
        if let Err(error) = job.abandon(&*self.rows) {
            self.fail(error);
        }
        let reason = "the snapshot was given up: a new epoch begins or the log closes";
        done.map(|done| (done, Err(LogError::Refused(reason.into()))))
    }

    /// Switches to a new epoch whose base are the given rows. No snapshot may be in the making.
    pub(super) fn begin_epoch(&mut self, epoch: Epoch, rows: SnapshotRows) -> Result<Cursor, LogError> {
        assert!(self.snapshot.is_none(), "the caller has given it up");
        self.commit()?;
        if epoch <= self.staged.epoch {
            return Err(LogError::Refused(format!(
                "epoch {epoch} is not above the current one, {}",
                self.staged.epoch
            )));
        }
        let base = Cursor {
            epoch,
            revision: Revision(0),
            hash: record::chain_start(self.clusterset(), epoch),
        };
        if let Err(error) = self.write_base(base, rows) {
            if let LogError::Failed(failure) = &error {
                self.fail(&failure.0);
            }
            return Err(error);
        }
        (self.staged, self.base) = (base, base.revision);
        let mut shared = self.shared.lock();
        shared.0 = base;
        shared.1.snapshot_revision = Some(base.revision);
        shared.1.sync_count += 3;
        drop(shared);
        self.shared.set_synced(base);
        self.measure();
        Ok(base)
    }

    fn write_base(&self, base: Cursor, rows: SnapshotRows) -> Result<(), LogError> {
        // An earlier try with this epoch may have left rows.
        snapshot::remove_from(&*self.rows, base.epoch, base.revision)?;
        let mut job = SnapshotJob::new(base, base.revision, rows);
        while job.step(&*self.rows)? == Step::More {}
        let row = EpochRow {
            start: base.hash,
            has_base: true,
        };
        self.rows
            .apply(vec![Op::Put(key::epoch(base.epoch), row.encode())])?;
        Ok(self.rows.sync()?)
    }
}
