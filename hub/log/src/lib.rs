//! The event log: gapless, hash-chained, durable before it says so. It knows bytes, not facts.
//!
//! * `mod.rs`: the trait [`Log`] and its law. `error.rs`: what can go wrong.
//! * `key.rs`, `group.rs`, `record.rs`: the frozen bytes of keys and values, the chain.
//! * `rows.rs`: what a store must do, and the place that holds several. `sled.rs` in `directory.rs`, and `memory.rs`:
//!   the two kinds.
//! * `segment.rs`, `segments.rs`: one store each, read as if they were one; `retention.rs`: which of them go.
//! * `store.rs`, `history.rs`, `snapshot.rs`, `start.rs`, `epochs.rs`: the log itself over any volume.
//! * `backup.rs`: what a copy of a log has in it; `copy.rs`: how it is put together on a disk.
//! * `limits.rs`: how people write what is to be kept.
//! * `thread.rs`: the thread that owns a log; `reader.rs`: reading beside it. `verify.rs`, `contents.rs`:
//!   check everything, or look at it.
//! * `replica.rs`: a log on this disk that follows one elsewhere; `copying.rs`: the copy that it begins with.
//!   `replicated`: the log that several hubs share, behind the same trait.
//!
//! It never decodes a payload, reads a clock or makes randomness; epochs are given to it.

mod backup;
mod contents;
mod copy;
mod copy_end;
mod copying;
#[cfg(test)]
mod damage;
mod directory;
mod epochs;
mod error;
mod give_back;
mod group;
mod history;
mod key;
pub mod limits;
#[cfg(any(test, feature = "simulated"))]
mod memory;
mod reader;
mod record;
mod replica;
pub mod replicated;
mod retention;
mod rows;
mod segment;
mod segment_name;
mod segments;
mod shared_head;
mod sled;
mod snapshot;
mod start;
mod store;
#[cfg(test)]
mod suite;
mod thread;
mod verify;

use std::sync::mpsc;

use model::{ChainHash, Clusterset, Cursor, Epoch, Revision, UnixMillis};

pub use backup::{BackupPage, BackupPlan, SegmentPlan};
pub use contents::{Contents, NEWEST_EVENTS_MAX, SegmentContents, contents};
pub use copy::{LogCopy, restore};
pub use copy_end::CopyEnd;
pub use copying::{CopyBegin, IncompleteCopy, Receiving, copying_dir, replace};
pub use directory::space_of;
pub use error::{AppendError, Corruption, Failure, InvalidBatch, LogError, OpenError};
#[cfg(any(test, feature = "simulated"))]
pub use memory::{Faults, MemoryDisk, MemoryLog};
pub use reader::{Budget, History, LogReader, PAGE_BYTES_MAX, Page, READS_WAITING_MAX, ReplayItem};
pub use record::{FORMAT_VERSION, PAYLOAD_BYTES_MAX, ROW_BYTES_MAX, chain, chain_start};
pub use replica::{Replica, ReplicaView, has_log};
pub use retention::Retention;
pub use snapshot::{SNAPSHOT_ROWS_MAX, SnapshotInfo, SnapshotPage};
pub use thread::{APPENDS_WAITING_MAX, open, open_replica};
pub use verify::clusterset;
pub use verify::{
    EpochReport, LogReport, PayloadCheck, PayloadKind, Progress, Report, Unchecked, verify, verify_payloads,
};

/// The largest payload of an event that any log takes. Larger ones, up to [`PAYLOAD_BYTES_MAX`], stand in logs that
/// earlier releases wrote, and are read.
pub const EVENT_BYTES_MAX: usize = 1024 * 1024;
/// Most events in one batch.
pub const BATCH_EVENTS_MAX: usize = 16 * 1024;
/// Most payload bytes in one batch. At least one event of the largest size fits.
pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

const _: () = assert!(EVENT_BYTES_MAX <= PAYLOAD_BYTES_MAX && EVENT_BYTES_MAX <= BATCH_BYTES_MAX);

/// Limits of one append. A caller checks them first, and nothing larger reaches an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest payload of one event, in bytes; at most [`EVENT_BYTES_MAX`].
    pub event_bytes: usize,
    /// Most events in one batch; at most [`BATCH_EVENTS_MAX`].
    pub batch_events: usize,
    /// Most payload bytes in one batch; at most [`BATCH_BYTES_MAX`].
    pub batch_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            event_bytes: EVENT_BYTES_MAX,
            batch_events: BATCH_EVENTS_MAX,
            batch_bytes: BATCH_BYTES_MAX,
        }
    }
}

/// Events to be appended together: all of them become durable, or none.
/// It is within the bounds by construction, and knows its chain hashes before it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    expected: Cursor,
    events: Vec<(ChainHash, Vec<u8>)>,
}

impl Batch {
    /// Takes payloads that follow `expected`: they get the revisions after it, without a gap.
    pub fn new(expected: Cursor, payloads: Vec<Vec<u8>>) -> Result<Self, InvalidBatch> {
        let mut previous = expected.hash;
        let chained = payloads.into_iter().map(|payload| {
            previous = chain(previous, &payload);
            (previous, payload)
        });
        Self::chained(expected, chained.collect())
    }

    /// As [`Batch::new`], for payloads that are chained already. Hashes that are not those of the bytes are found when
    /// the batch is written: nothing is appended then.
    pub fn chained(expected: Cursor, events: Vec<(ChainHash, Vec<u8>)>) -> Result<Self, InvalidBatch> {
        if events.is_empty() {
            return Err(InvalidBatch::Empty);
        }
        let bytes = events.iter().map(|(_, payload)| payload.len()).sum();
        for (index, (_, payload)) in events.iter().enumerate() {
            let bytes = payload.len();
            if bytes > EVENT_BYTES_MAX {
                return Err(InvalidBatch::EventTooLarge { index, bytes });
            }
        }
        let count = events.len();
        if count > BATCH_EVENTS_MAX || bytes > BATCH_BYTES_MAX {
            return Err(InvalidBatch::TooLarge { events: count, bytes });
        }
        Ok(Self { expected, events })
    }

    /// The head this batch must meet.
    pub fn expected(&self) -> Cursor {
        self.expected
    }

    /// The head once it is durable.
    pub fn head_after(&self) -> Cursor {
        let (hash, _) = self.events.last().expect("a batch is never empty");
        Cursor {
            epoch: self.expected.epoch,
            revision: Revision(self.expected.revision.0 + self.events.len() as u64),
            hash: *hash,
        }
    }

    /// The events: chain hash at each, and payload.
    pub fn events(&self) -> &[(ChainHash, Vec<u8>)] {
        &self.events
    }
}

/// One event as it was read back, its hash verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its number within the epoch.
    pub revision: Revision,
    /// The chain hash at it.
    pub hash: ChainHash,
    /// The bytes appended.
    pub payload: Vec<u8>,
}

/// Told once, when the fate of a batch is known: the new head, or why not.
/// It runs on the log's own thread: it hands over and returns, and never blocks.
pub type Completion = Box<dyn FnOnce(Result<Cursor, AppendError>) + Send>;

/// Told once, when a snapshot is durable or given up.
pub type SnapshotCompletion = Box<dyn FnOnce(Result<(), LogError>) + Send>;

/// The rows of a snapshot in the order they will be read back. Pulled in pieces, on the log's own thread.
pub type SnapshotRows = Box<dyn Iterator<Item = Vec<u8>> + Send>;

/// Figures for metrics, and for the decision when a segment is full. Counters count since the log was opened; sizes on
/// disk are looked at every few commits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// Bytes that all segments take on their volume.
    pub bytes_on_disk: u64,
    /// Number of segments, with the current one.
    pub segments: u64,
    /// Bytes that the current segment takes.
    pub segment_bytes: u64,
    /// The position that the current segment's first event follows.
    pub segment_start: Cursor,
    /// Time at which the current segment was begun.
    pub segment_began_at: UnixMillis,
    /// The first revision of the current epoch that is kept, or will be.
    pub oldest_revision: Revision,
    /// Bytes of the newest complete snapshot's rows.
    pub snapshot_bytes: u64,
    /// Events made durable.
    pub events_appended: u64,
    /// Their payload bytes.
    pub payload_bytes_appended: u64,
    /// Number of syncs of the store.
    pub sync_count: u64,
    /// Number of retention runs; each removes the segments that are due, if it can.
    pub retain_count: u64,
    /// The revision of the newest complete snapshot of the current epoch.
    pub snapshot_revision: Option<Revision>,
    /// Set once the log has failed.
    pub failure: Option<Failure>,
}

/// The volume that a log lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes that may still be written.
    pub free: u64,
    /// These, and all further ones.
    pub total: u64,
}

/// An append-only log of one clusterset.
///
/// # Law
///
/// * **Durable before done.** A completion with `Ok` means: the batch survives the process and the machine.
/// * **Gapless.** Within an epoch revisions count from 1; the hash at each is chained over all before it.
/// * **Fenced.** A batch names the head it follows. If the log's head differs, nothing is written. So a log that
///   somebody else may write too (a replicated one) fits behind this trait.
/// * **Within its limits.** A batch within [`Log::limits`] is accepted; callers keep to them.
/// * **In order.** Batches are taken in the order of the calls, completions come in that order. A batch may
///   be appended before the one before it is done; it names that one's [`Batch::head_after`].
/// * **Failure is a state.** After the first failed write every append answers with that first reason, and nothing is
///   written any more. The fate of unfinished batches is unknown; the process ends and reads.
/// * **Readers see only what is durable**, and every byte they get has been verified.
/// * **An epoch is never resumed.** A new one starts at revision 0 with a snapshot of the state it takes
///   over. Events and base snapshot of earlier epochs stay, as history, until retention removes them.
/// * **Whole segments go, and nothing that is needed.** The log is a row of segments; the last is the current one, and
///   there is exactly one, whatever crashed when. A segment begins with what the chain is there and with a snapshot of
///   the state, so that the ones before it can go. The head and the state at it never go.
pub trait Log: Send {
    /// The clusterset whose log this is.
    fn clusterset(&self) -> &Clusterset;

    /// Limits of one append.
    fn limits(&self) -> Limits;

    /// The last durable position. At revision 0 of an epoch the hash is [`chain_start`].
    fn head(&self) -> Cursor;

    /// Appends a batch. It may block while [`APPENDS_WAITING_MAX`] calls are waiting, otherwise it returns
    /// at once; `done` is called exactly once.
    fn append(&mut self, batch: Batch, done: Completion);

    /// Writes a snapshot of the state at `at`, which must be durable, in pieces between appends. Once it is
    /// durable, older ones of this epoch are removed, but never its base at revision 0.
    fn write_snapshot(&mut self, at: Cursor, rows: SnapshotRows, done: SnapshotCompletion);

    /// Seals the current segment at the head, which must be durable, and begins the next one with a snapshot of the
    /// state there; appends go to the new one at once, the snapshot is written in pieces between them. `done` is called
    /// when it is durable; until then the sealed segment is not removable. Without a new event nothing is done.
    fn seal(&mut self, now: UnixMillis, rows: SnapshotRows, done: SnapshotCompletion);

    /// Removes the oldest segments beyond what is to be kept. A failure shows in [`Log::stats`] once it fails appends;
    /// until then it is tried again.
    fn retain(&mut self, retention: Retention, now: UnixMillis);

    /// Starts a new, higher epoch whose base is the state given as rows; returns its head at revision 0.
    /// Batches that wait are done before; a snapshot that is being written is given up. The switch is one
    /// atomic row: after a crash either the old epoch is the current one, or the new one with its base.
    fn begin_epoch(&mut self, epoch: Epoch, rows: SnapshotRows) -> Result<Cursor, LogError>;

    /// Grows whenever another hub begins to write; 1 where no other can.
    fn term(&self) -> u64 {
        1
    }

    /// Returns true if another hub may begin to write at any time. Nothing is released on the word of this process alone
    /// then: a batch without events waits for [`Log::confirm`].
    fn is_shared(&self) -> bool {
        false
    }

    /// `done` is called with the head once it was answered, to a question asked after this call, that this hub still
    /// leads; otherwise as an append's.
    fn confirm(&mut self, done: Completion) {
        done(Ok(self.head()));
    }

    /// Takes nothing more, and gives the lead up after everything before; the hub of this name may take it first.
    fn resign(&mut self, _next: Option<&str>) {}

    /// A handle for reading, beside the writer and from any thread.
    fn reader(&self) -> LogReader;

    /// A reader of its own for the positions of members that connect again: readers of history do not delay them.
    fn cursors(&self) -> LogReader {
        self.reader()
    }

    /// Figures for metrics.
    fn stats(&self) -> Stats;

    /// The volume at this moment; `None` where that cannot be told.
    fn space(&self) -> Option<Space>;

    /// Appends a batch and waits for its fate. Not for a memory log whose syncs are held back.
    fn append_and_wait(&mut self, batch: Batch) -> Result<Cursor, AppendError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let done = move |outcome| {
            // The receiver waits below and goes away only after it got this.
            let _ = sender.send(outcome);
        };
        self.append(batch, Box::new(done));
        let lost = || AppendError::Failed(Failure("its thread ended without an answer".into()));
        receiver.recv().unwrap_or_else(|_| Err(lost()))
    }

    /// Writes a snapshot and waits until it is durable. Not for a memory log whose syncs are held back.
    fn write_snapshot_and_wait(&mut self, at: Cursor, rows: SnapshotRows) -> Result<(), LogError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let done = move |outcome| {
            let _ = sender.send(outcome);
        };
        self.write_snapshot(at, rows, Box::new(done));
        receiver.recv().unwrap_or(Err(LogError::Closed))
    }

    /// Removes what is not to be kept and waits until that was tried.
    fn retain_and_wait(&mut self, retention: Retention, now: UnixMillis) {
        let before = self.stats().retain_count;
        self.retain(retention, now);
        // A log that has failed removes nothing more.
        while self.stats().retain_count == before && self.stats().failure.is_none() {
            std::thread::yield_now();
        }
    }

    /// Seals the current segment and waits until the next one has its snapshot. Not for a memory log whose syncs are
    /// held back.
    fn seal_and_wait(&mut self, now: UnixMillis, rows: SnapshotRows) -> Result<(), LogError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let done = move |outcome| {
            let _ = sender.send(outcome);
        };
        self.seal(now, rows, Box::new(done));
        receiver.recv().unwrap_or(Err(LogError::Closed))
    }
}
