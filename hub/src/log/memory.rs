//! The memory store and a log over it that runs in its caller's thread: for simulations, where one loop
//! decides what happens when. It can lose unsynced writes, tear a batch, lie about a sync and fail a write.
//! It never blocks, and nothing in it depends on time or chance.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use shared::model::{Clusterset, Cursor, Epoch};

use super::{
    AppendError, Batch, Completion, Log, LogReader, SnapshotCompletion, SnapshotRows, Stats,
    error::LogError,
    reader::{ReadJob, ReadQueue, View},
    rows::{Op, Row, Rows, RowsError, Visit},
    start::{self, StartError},
    store::{Store, Told},
};

/// What the disk does wrong. Everything off is an honest disk.
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

#[derive(Debug, Clone, Default)]
struct Disk {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    /// How to take back each unsynced batch, oldest first.
    unsynced: Vec<Vec<Undo>>,
    faults: Faults,
}

impl Disk {
    fn take_back(&mut self, undo: Vec<Undo>) {
        for (key, before) in undo.into_iter().rev() {
            match before {
                Some(value) => self.rows.insert(key, value),
                None => self.rows.remove(&key),
            };
        }
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

    /// How many batches are written and not synced.
    pub fn unsynced(&self) -> usize {
        self.disk().unsynced.len()
    }

    /// The machine stops: unsynced batches are lost, but for the oldest `kept`. The log that was open on this
    /// disk must be dropped and opened again.
    pub fn crash(&self, kept: usize) {
        let mut disk = self.disk();
        while disk.unsynced.len() > kept
            && let Some(undo) = disk.unsynced.pop()
        {
            disk.take_back(undo);
        }
        disk.unsynced.clear();
    }

    /// As [`MemoryDisk::crash`], but of the oldest lost batch the first `rows` changes stay: what a store
    /// without atomic batches would do. A log opened on it notices, or is whole up to an event.
    pub fn crash_torn(&self, kept: usize, rows: usize) {
        let mut disk = self.disk();
        while disk.unsynced.len() > kept + 1
            && let Some(undo) = disk.unsynced.pop()
        {
            disk.take_back(undo);
        }
        if disk.unsynced.len() > kept
            && let Some(mut undo) = disk.unsynced.pop()
        {
            let lost = undo.split_off(undo.len().min(rows));
            disk.take_back(lost);
        }
        disk.unsynced.clear();
    }

    /// A copy of the disk as it is now: a backup, to be opened later as a log with an old copy of its data.
    pub fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.disk().clone())))
    }

    /// Flips one bit of the value of the `index`-th row (in key order); false if there is no such row or bit.
    pub fn flip_bit(&self, index: usize, bit: usize) -> bool {
        let mut disk = self.disk();
        let byte = disk
            .rows
            .values_mut()
            .nth(index)
            .and_then(|value| value.get_mut(bit / 8));
        byte.map(|byte| *byte ^= 1 << (bit % 8)).is_some()
    }

    /// Removes the `index`-th row (in key order); false if there is none.
    pub fn remove_row(&self, index: usize) -> bool {
        let mut disk = self.disk();
        let key = disk.rows.keys().nth(index).cloned();
        key.is_some_and(|key| disk.rows.remove(&key).is_some())
    }

    /// How many rows there are.
    pub fn row_count(&self) -> usize {
        self.disk().rows.len()
    }
}

impl Rows for MemoryDisk {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, RowsError> {
        Ok(self.disk().rows.get(key).cloned())
    }

    fn last(&self, from: &[u8], to: &[u8]) -> Result<Option<Row>, RowsError> {
        let disk = self.disk();
        let last = disk.rows.range(from.to_vec()..to.to_vec()).next_back();
        Ok(last.map(|(key, value)| (key.clone(), value.clone())))
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), RowsError> {
        if from >= to {
            return Ok(());
        }
        for (key, value) in self.disk().rows.range(from.to_vec()..to.to_vec()) {
            if visit(key, value) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn apply(&self, ops: Vec<Op>) -> Result<(), RowsError> {
        let mut disk = self.disk();
        match &mut disk.faults.writes_before_full {
            Some(0) => return Err(RowsError::Full("the simulated volume has no room".into())),
            Some(left) => *left -= 1,
            None => {}
        }
        let mut undo = Vec::with_capacity(ops.len());
        for op in ops {
            match op {
                Op::Put(key, value) => {
                    let before = disk.rows.insert(key.clone(), value);
                    undo.push((key, before));
                }
                Op::Remove(key) => {
                    let before = disk.rows.remove(&key);
                    undo.push((key, before));
                }
            }
        }
        disk.unsynced.push(undo);
        Ok(())
    }

    fn sync(&self) -> Result<(), RowsError> {
        let mut disk = self.disk();
        if disk.faults.fail_sync {
            return Err(RowsError::Io("the simulated sync failed".into()));
        }
        if !disk.faults.lie_about_sync {
            disk.unsynced.clear();
        }
        Ok(())
    }

    fn bytes_on_disk(&self) -> u64 {
        let disk = self.disk();
        let sizes = disk.rows.iter().map(|(key, value)| key.len() + value.len());
        sizes.sum::<usize>() as u64
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
    hold_syncs: bool,
    held: Vec<(Result<Cursor, AppendError>, Completion)>,
}

impl MemoryLog {
    /// Opens the log of a clusterset on a disk, making it in `new_epoch` if the disk is empty. The text of an
    /// error is the reason; there is no directory to give advice about.
    pub fn open(disk: &MemoryDisk, clusterset: &Clusterset, new_epoch: Epoch) -> Result<Self, LogError> {
        let started = start::start(disk, clusterset, new_epoch).map_err(|error| match error {
            StartError::Corrupt(corruption) => LogError::Corrupt(corruption),
            StartError::Rows(error) => error.into(),
            StartError::NotOurs(found) => LogError::Refused(format!("the disk is clusterset {found}'s")),
            StartError::Other(reason) => LogError::Refused(reason),
        })?;
        Ok(Self {
            clusterset: clusterset.clone(),
            inner: Arc::new(Mutex::new(Inner {
                store: Store::new(clusterset.clone(), disk.clone(), started),
                hold_syncs: false,
                held: Vec::new(),
            })),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn begin_epoch(&mut self, epoch: Epoch, rows: SnapshotRows) -> Result<Cursor, LogError> {
        let told = self.inner().store.abandon_snapshot();
        tell(told);
        self.sync();
        self.inner().store.begin_epoch(epoch, rows)
    }

    fn reader(&self) -> LogReader {
        LogReader::new(ReadAtOnce(self.inner().store.view()))
    }

    fn stats(&self) -> Stats {
        self.inner().store.shared().stats()
    }
}

/// Reads in memory run within the call, so that a simulation stays one loop.
struct ReadAtOnce(View<MemoryDisk>);

impl ReadQueue for ReadAtOnce {
    fn try_submit(&self, job: ReadJob) -> Result<(), LogError> {
        job(&self.0);
        Ok(())
    }

    fn submit(&self, job: ReadJob) -> Result<(), LogError> {
        self.try_submit(job)
    }
}
