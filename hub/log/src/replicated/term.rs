//! One term of this hub, as a log. Its calls wait for the hub's part; what it reads it reads beside it.

use std::sync::{Arc, mpsc};

use model::{Clusterset, Cursor, Epoch, UnixMillis};
use replication::engine::{BATCH_BYTES_MAX, BATCH_EVENTS_MAX, EVENT_BYTES_MAX};

use super::calls::{Call, SharedInbox, What};
use crate::{
    AppendError, Batch, Completion, Failure, Limits, Log, LogError, LogReader, ReplicaView, Retention,
    SnapshotCompletion, SnapshotRows, Space, Stats,
};

/// Lets a part that has no thread take what waits.
pub(super) type Drive = Arc<dyn Fn() + Send + Sync>;

pub(super) struct TermLog {
    pub(super) term: u64,
    pub(super) inbox: SharedInbox,
    pub(super) view: ReplicaView,
    /// `None`: the part has a thread.
    pub(super) drive: Option<Drive>,
}

impl TermLog {
    fn call(&self, what: What) {
        let term = self.term;
        if let Err(call) = self.inbox.call(Call { term, what }) {
            call.fail();
        }
        if let Some(drive) = &self.drive {
            drive();
        }
    }
}

impl Call {
    /// Answers a call that nobody takes any more.
    pub(super) fn fail(self) {
        let gone = || Failure("the hub's part in the shared log is over".into());
        match self.what {
            What::Append(_, done) | What::Confirm(done) => done(Err(AppendError::Failed(gone()))),
            What::BeginEpoch(_, _, answer) => drop(answer.send(Err(LogError::Closed))),
            What::WriteSnapshot(_, _, done) | What::Seal(_, _, done) => done(Err(LogError::Closed)),
            What::Retain(..) | What::Resign(_) => {}
        }
    }

    /// Answers a call of a term that is over.
    pub(super) fn fence(self, head: Cursor) {
        match self.what {
            What::Append(_, done) | What::Confirm(done) => done(Err(AppendError::Fenced(head))),
            What::BeginEpoch(_, _, answer) => {
                drop(answer.send(Err(LogError::Term(AppendError::Fenced(head)))));
            }
            What::WriteSnapshot(_, _, done) | What::Seal(_, _, done) => {
                done(Err(LogError::Term(AppendError::Fenced(head))));
            }
            What::Retain(..) | What::Resign(_) => {}
        }
    }
}

impl Log for TermLog {
    fn clusterset(&self) -> &Clusterset {
        self.view.clusterset()
    }

    /// Larger batches would fill the engine's memory.
    fn limits(&self) -> Limits {
        Limits {
            event_bytes: EVENT_BYTES_MAX,
            batch_events: BATCH_EVENTS_MAX,
            batch_bytes: BATCH_BYTES_MAX,
        }
    }

    fn head(&self) -> Cursor {
        self.view.head()
    }

    fn append(&mut self, batch: Batch, done: Completion) {
        self.call(What::Append(batch, done));
    }

    fn write_snapshot(&mut self, at: Cursor, rows: SnapshotRows, done: SnapshotCompletion) {
        self.call(What::WriteSnapshot(at, rows, done));
    }

    fn seal(&mut self, now: UnixMillis, rows: SnapshotRows, done: SnapshotCompletion) {
        self.call(What::Seal(now, rows, done));
    }

    fn retain(&mut self, retention: Retention, now: UnixMillis) {
        self.call(What::Retain(retention, now));
    }

    fn begin_epoch(&mut self, epoch: Epoch, rows: SnapshotRows) -> Result<Cursor, LogError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.call(What::BeginEpoch(epoch, rows, sender));
        let Some(drive) = &self.drive else {
            return receiver.recv().unwrap_or(Err(LogError::Closed));
        };
        drive();
        match receiver.try_recv() {
            Ok(outcome) => outcome,
            Err(mpsc::TryRecvError::Disconnected) => Err(LogError::Closed),
            // A simulation does not wait. It may be begun yet.
            Err(mpsc::TryRecvError::Empty) => Err(LogError::Term(AppendError::Undecided(self.head()))),
        }
    }

    fn term(&self) -> u64 {
        self.term
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn confirm(&mut self, done: Completion) {
        self.call(What::Confirm(done));
    }

    fn resign(&mut self, next: Option<&str>) {
        self.call(What::Resign(next.map(str::to_owned)));
    }

    fn reader(&self) -> LogReader {
        self.view.reader()
    }

    fn cursors(&self) -> LogReader {
        self.view.cursors()
    }

    fn stats(&self) -> Stats {
        self.view.stats()
    }

    fn space(&self) -> Option<Space> {
        self.view.space()
    }
}
