//! A volume in memory and a log over it that runs in its caller's thread: for simulations, where one loop
//! decides what happens when. It can lose unsynced writes, tear a batch, lie about a sync and fail a write.
//! It never blocks, and nothing in it depends on time or chance.

use std::{
    collections::BTreeMap,
    io,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use model::{Clusterset, Cursor, Epoch, UnixMillis};

use super::{
    AppendError, Batch, Completion, Limits, Log, LogReader, Replica, ReplicaView, Retention,
    SnapshotCompletion, SnapshotRows, Space, Stats,
    error::LogError,
    reader::{DurableHistory, ReadJob, ReadQueue},
    rows::{Op, ReadRows, Row, Rows, RowsError, Visit, Volume},
    segment_name::SegmentName,
    start::StartError,
    store::{Store, Told},
};

/// Faults of the disk. Everything off is an honest disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Writes that still succeed before one fails with a full volume; `None`: no limit.
    pub writes_before_full: Option<u64>,
    /// The next sync fails.
    pub fail_sync: bool,
    /// Syncs answer that all is well and make nothing durable.
    pub lie_about_sync: bool,
}

/// A key, and the value it had before.
type Undo = (Vec<u8>, Option<Vec<u8>>);

/// The rows of one segment.
type Stored = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug, Clone, Default)]
struct Disk {
    segments: BTreeMap<SegmentName, Stored>,
    /// The undo record of each unsynced batch, oldest first.
    unsynced: Vec<(SegmentName, Vec<Undo>)>,
    faults: Faults,
    space: Option<Space>,
    /// The engine that a replica was marked with.
    mark: Option<String>,
}

impl Disk {
    fn take_back(&mut self, name: SegmentName, undo: Vec<Undo>) {
        let Some(rows) = self.segments.get_mut(&name) else {
            return;
        };
        for (key, before) in undo.into_iter().rev() {
            match before {
                Some(value) => rows.insert(key, value),
                None => rows.remove(&key),
            };
        }
    }

    /// A change of any kind, as far as the volume has room for it.
    fn write(&mut self) -> Result<(), RowsError> {
        match &mut self.faults.writes_before_full {
            Some(0) => return Err(RowsError::Full("the simulated volume has no room".into())),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }

    fn rows(&self, name: SegmentName) -> Result<&Stored, RowsError> {
        let missing = || RowsError::Damaged(format!("the segment {name} is missing"));
        self.segments.get(&name).ok_or_else(missing)
    }
}

/// A disk in memory. Clones are the same disk; it survives the logs that are opened on it.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<Disk>>);

impl MemoryDisk {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.disk().faults = faults;
    }

    /// Says how large the volume is, and how much of it is free.
    pub fn set_space(&self, space: Option<Space>) {
        self.disk().space = space;
    }

    /// Number of batches that are written and not synced.
    pub fn unsynced(&self) -> usize {
        self.disk().unsynced.len()
    }

    /// The machine stops: unsynced batches are lost, but for the oldest `kept`. The log that was open on this
    /// disk must be dropped and opened again.
    pub fn crash(&self, kept: usize) {
        let mut disk = self.disk();
        while disk.unsynced.len() > kept
            && let Some((name, undo)) = disk.unsynced.pop()
        {
            disk.take_back(name, undo);
        }
        disk.unsynced.clear();
    }

    /// As [`MemoryDisk::crash`], but of the oldest lost batch the first `rows` changes stay: what a store
    /// without atomic batches would do. A log opened on it notices, or is whole up to an event.
    pub fn crash_torn(&self, kept: usize, rows: usize) {
        let mut disk = self.disk();
        while disk.unsynced.len() > kept + 1
            && let Some((name, undo)) = disk.unsynced.pop()
        {
            disk.take_back(name, undo);
        }
        if disk.unsynced.len() > kept
            && let Some((name, mut undo)) = disk.unsynced.pop()
        {
            let lost = undo.split_off(undo.len().min(rows));
            disk.take_back(name, lost);
        }
        disk.unsynced.clear();
    }

    /// A copy of the disk as it is now: a backup, to be opened later as a log with an old copy of its data.
    pub fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.disk().clone())))
    }

    /// Flips one bit of the value of the `index`-th row (by segments, in key order); false if there is no such row or
    /// bit.
    pub fn flip_bit(&self, index: usize, bit: usize) -> bool {
        let mut disk = self.disk();
        let byte = disk
            .segments
            .values_mut()
            .flat_map(BTreeMap::values_mut)
            .nth(index)
            .and_then(|value| value.get_mut(bit / 8));
        byte.map(|byte| *byte ^= 1 << (bit % 8)).is_some()
    }

    /// Removes the `index`-th row (by segments, in key order); false if there is none.
    pub fn remove_row(&self, mut index: usize) -> bool {
        for rows in self.disk().segments.values_mut() {
            if let Some(key) = rows.keys().nth(index).cloned() {
                return rows.remove(&key).is_some();
            }
            index -= rows.len();
        }
        false
    }

    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.disk().segments.values().map(BTreeMap::len).sum()
    }

    /// Number of segments.
    pub fn segment_count(&self) -> usize {
        self.disk().segments.len()
    }
}

/// The store of one segment on a disk in memory.
#[derive(Clone)]
pub(super) struct MemoryRows {
    disk: MemoryDisk,
    name: SegmentName,
}

impl ReadRows for MemoryRows {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, RowsError> {
        Ok(self.disk.disk().rows(self.name)?.get(key).cloned())
    }

    fn last(&self, from: &[u8], to: &[u8]) -> Result<Option<Row>, RowsError> {
        let disk = self.disk.disk();
        let last = disk
            .rows(self.name)?
            .range(from.to_vec()..to.to_vec())
            .next_back();
        Ok(last.map(|(key, value)| (key.clone(), value.clone())))
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), RowsError> {
        if from >= to {
            return Ok(());
        }
        for (key, value) in self
            .disk
            .disk()
            .rows(self.name)?
            .range(from.to_vec()..to.to_vec())
        {
            if visit(key, value) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}

impl Rows for MemoryRows {
    fn apply(&self, ops: Vec<Op>) -> Result<(), RowsError> {
        let mut disk = self.disk.disk();
        disk.write()?;
        disk.rows(self.name)?;
        let rows = disk.segments.entry(self.name).or_default();
        let mut undo = Vec::with_capacity(ops.len());
        for op in ops {
            let (key, before) = match op {
                Op::Put(key, value) => (key.clone(), rows.insert(key, value)),
                Op::Remove(key) => (key.clone(), rows.remove(&key)),
            };
            undo.push((key, before));
        }
        disk.unsynced.push((self.name, undo));
        Ok(())
    }

    /// The batches of this segment: those of others are as unsynced as before.
    fn sync(&self) -> Result<(), RowsError> {
        let mut disk = self.disk.disk();
        if disk.faults.fail_sync {
            return Err(RowsError::Io("the simulated sync failed".into()));
        }
        if !disk.faults.lie_about_sync {
            disk.unsynced.retain(|(name, _)| *name != self.name);
        }
        Ok(())
    }
}

impl Volume for MemoryDisk {
    type Rows = MemoryRows;

    fn segments(&self) -> Result<Vec<SegmentName>, RowsError> {
        Ok(self.disk().segments.keys().copied().collect())
    }

    fn open(&self, name: SegmentName) -> Result<MemoryRows, RowsError> {
        self.disk().rows(name)?;
        let disk = self.clone();
        Ok(MemoryRows { disk, name })
    }

    fn create(&self, name: SegmentName) -> Result<MemoryRows, RowsError> {
        let mut disk = self.disk();
        disk.write()?;
        disk.segments.entry(name).or_default();
        drop(disk);
        self.open(name)
    }

    fn remove(&self, name: SegmentName) -> Result<(), RowsError> {
        let mut disk = self.disk();
        disk.write()?;
        disk.segments.remove(&name);
        disk.unsynced.retain(|(of, _)| *of != name);
        Ok(())
    }

    fn bytes_on_disk(&self, name: SegmentName) -> u64 {
        let disk = self.disk();
        let rows = disk.segments.get(&name).into_iter().flatten();
        rows.map(|(key, value)| key.len() + value.len()).sum::<usize>() as u64
    }

    fn space(&self) -> Option<Space> {
        self.disk().space
    }
}

/// A log in memory that does everything within the call, or, with held syncs, within [`MemoryLog::sync`].
/// A clone is another handle of the same log: the simulated hub has one, the simulator another.
#[derive(Clone)]
pub struct MemoryLog {
    clusterset: Clusterset,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    store: Store<MemoryDisk>,
    limits: Limits,
    hold_syncs: bool,
    held: Vec<(Result<Cursor, AppendError>, Completion)>,
}

impl MemoryLog {
    /// Opens the log of a clusterset on a disk, making it in `new_epoch` if the disk is empty. The text of an
    /// error is the reason; there is no directory to give advice about.
    pub fn open(disk: &MemoryDisk, clusterset: &Clusterset, new_epoch: Epoch) -> Result<Self, LogError> {
        let store = Store::open(disk, clusterset, new_epoch).map_err(|error| match error {
            StartError::Corrupt(corruption) => LogError::Corrupt(corruption),
            StartError::Rows(error) => error.into(),
            StartError::NotOurs(found) => LogError::Refused(format!("the disk is clusterset {found}'s")),
            StartError::Other(reason) => LogError::Refused(reason),
        })?;
        Ok(Self {
            clusterset: clusterset.clone(),
            inner: Arc::new(Mutex::new(Inner {
                store,
                limits: Limits::default(),
                hold_syncs: false,
                held: Vec::new(),
            })),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets a lower limit of an append, as another kind of log may have.
    pub fn limit(&self, limits: Limits) {
        self.inner().limits = limits;
    }

    /// Appends that are staged and not done.
    pub fn held(&self) -> usize {
        self.inner().held.len()
    }

    /// From now on appends are staged only and done in [`MemoryLog::sync`], so that a crash can come between.
    pub fn hold_syncs(&self, hold: bool) {
        self.inner().hold_syncs = hold;
    }

    /// Makes everything staged durable, completes it in order, and finishes a snapshot in the making.
    pub fn sync(&self) {
        let mut inner = self.inner();
        let held = std::mem::take(&mut inner.held);
        let any_staged = held.iter().any(|(staged, _)| staged.is_ok());
        let committed = if any_staged {
            inner.store.commit().map(drop)
        } else {
            Ok(())
        };
        let mut told = Vec::new();
        while inner.store.has_snapshot() {
            told.extend(inner.store.step_snapshot());
        }
        // Completions may call this log: not under its lock.
        drop(inner);
        for (staged, done) in held {
            done(staged.and_then(|head| committed.clone().map(|()| head).map_err(Into::into)));
        }
        tell(told);
    }

    /// Makes everything durable that was applied.
    pub fn sync_applied(&self) {
        let mut inner = self.inner();
        if inner.store.is_behind() {
            // A failure is a state of the log.
            let _ = inner.store.commit();
        }
    }

    fn sync_unless_held(&self) {
        let held = self.inner().hold_syncs;
        if !held {
            self.sync();
        }
    }
}

fn tell(told: impl IntoIterator<Item = (SnapshotCompletion, Result<(), LogError>)>) {
    for (done, outcome) in told {
        done(outcome);
    }
}

impl Log for MemoryLog {
    fn clusterset(&self) -> &Clusterset {
        &self.clusterset
    }

    fn limits(&self) -> Limits {
        self.inner().limits
    }

    fn head(&self) -> Cursor {
        self.inner().store.shared().head()
    }

    fn append(&mut self, batch: Batch, done: Completion) {
        let mut inner = self.inner();
        let staged = inner.store.stage(&batch);
        inner.held.push((staged, done));
        drop(inner);
        self.sync_unless_held();
    }

    fn write_snapshot(&mut self, at: Cursor, rows: SnapshotRows, done: SnapshotCompletion) {
        let told: Told<_, _> = self.inner().store.start_snapshot(at, rows, done);
        tell(told);
        self.sync_unless_held();
    }

    fn seal(&mut self, now: UnixMillis, rows: SnapshotRows, done: SnapshotCompletion) {
        let told: Told<_, _> = self.inner().store.seal(now, rows, done);
        tell(told);
        self.sync_unless_held();
    }

    fn retain(&mut self, retention: Retention, now: UnixMillis) {
        // A segment that could not be removed is removed another time, and a volume that takes nothing fails the next
        // append.
        let _ = self.inner().store.retain(&retention, now);
    }

    fn begin_epoch(&mut self, epoch: Epoch, rows: SnapshotRows) -> Result<Cursor, LogError> {
        let told = self.inner().store.abandon_snapshot();
        tell(told);
        self.sync();
        self.inner().store.begin_epoch(epoch, rows)
    }

    fn reader(&self) -> LogReader {
        LogReader::new(ReadAtOnce(self.inner().store.history()))
    }

    fn space(&self) -> Option<Space> {
        self.inner().store.volume().space()
    }

    fn stats(&self) -> Stats {
        self.inner().store.shared().stats()
    }
}

/// With held syncs, what was applied is durable after [`MemoryLog::sync_applied`].
impl Replica for MemoryLog {
    fn apply(&mut self, batch: Batch) -> Result<Cursor, AppendError> {
        self.inner().store.apply(&batch)
    }

    fn begin_sync(&mut self) {
        let held = self.inner().hold_syncs;
        if !held {
            self.sync_applied();
        }
    }

    fn synced(&self) -> Cursor {
        self.inner().store.shared().synced()
    }

    fn view(&self) -> ReplicaView {
        let volume = self.inner().store.volume();
        // The lock is free again before the reader is made.
        let shared = self.inner().store.shared();
        ReplicaView {
            clusterset: self.clusterset.clone(),
            shared,
            reader: self.reader(),
            cursors: self.reader(),
            space: Arc::new(move || volume.space()),
        }
    }

    fn mark(&mut self, engine: &str) -> io::Result<()> {
        let volume = self.inner().store.volume();
        volume.disk().mark = Some(engine.to_owned());
        Ok(())
    }

    fn marked(&self) -> io::Result<Option<String>> {
        let volume = self.inner().store.volume();
        let mark = volume.disk().mark.clone();
        Ok(mark)
    }
}

/// Reads in memory run within the call, so that a simulation stays one loop.
struct ReadAtOnce(DurableHistory<MemoryDisk>);

impl ReadQueue for ReadAtOnce {
    fn try_submit(&self, job: ReadJob) -> Result<(), LogError> {
        job(&self.0);
        Ok(())
    }

    fn submit(&self, job: ReadJob) -> Result<(), LogError> {
        self.try_submit(job)
    }
}
