//! The calls of a term's user and the answers of the engine, until the hub's part takes them.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc::SyncSender},
    time::Duration,
};

use model::{Cursor, Epoch, UnixMillis};
use replication::{
    engine::{Answer, EngineError},
    machine::AskId,
};

use crate::{
    APPENDS_WAITING_MAX, Batch, Completion, LogError, Replica, Retention, SnapshotCompletion, SnapshotRows,
};

/// A call of a term.
pub(super) struct Call {
    pub(super) term: u64,
    pub(super) what: What,
}

pub(super) enum What {
    Append(Batch, Completion),
    Confirm(Completion),
    BeginEpoch(Epoch, SnapshotRows, SyncSender<Result<Cursor, LogError>>),
    WriteSnapshot(Cursor, SnapshotRows, SnapshotCompletion),
    Seal(UnixMillis, SnapshotRows, SnapshotCompletion),
    Retain(Retention, UnixMillis),
    Resign(Option<String>),
}

/// A word of the hub's owner.
pub(super) enum Word {
    Able(bool),
    Copied(Box<dyn Replica>),
    Stop,
}

/// Everything that waits for a hub's part.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) answers: VecDeque<(AskId, Result<Answer, EngineError>)>,
    pub(super) words: VecDeque<Word>,
    pub(super) calls: VecDeque<Call>,
    /// The part ended: calls find nobody.
    pub(super) is_over: bool,
}

/// The place where it waits.
#[derive(Default)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    taken: Condvar,
}

impl Inbox {
    pub(super) fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer of the engine. There are never more than questions under way.
    pub(super) fn answer(&self, ask: AskId, outcome: Result<Answer, EngineError>) {
        self.lock().answers.push_back((ask, outcome));
        self.changed.notify_one();
    }

    /// A word of the owner, who has few.
    pub(super) fn say(&self, word: Word) {
        self.lock().words.push_back(word);
        self.changed.notify_one();
    }

    /// Hands a call over; waits while too many wait. Gives it back if nobody takes any.
    pub(super) fn call(&self, call: Call) -> Result<(), Call> {
        let mut waiting = self.lock();
        while waiting.calls.len() >= APPENDS_WAITING_MAX && !waiting.is_over {
            waiting = self.taken.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.is_over {
            return Err(call);
        }
        waiting.calls.push_back(call);
        drop(waiting);
        self.changed.notify_one();
        Ok(())
    }

    /// Takes the oldest call, if `may` says so.
    pub(super) fn next_call(&self, may: impl FnOnce(&Call) -> bool) -> Option<Call> {
        let call = self.lock().calls.pop_front_if(|call| may(call))?;
        self.taken.notify_all();
        Some(call)
    }

    /// Waits until something comes, or this time is over.
    pub(super) fn wait(&self, time: Duration) {
        let waiting = self.lock();
        let is_empty = |waiting: &mut Waiting| waiting.answers.is_empty() && waiting.words.is_empty();
        if waiting.calls.is_empty() {
            let nothing = |waiting: &mut Waiting| is_empty(waiting) && waiting.calls.is_empty();
            drop(self.changed.wait_timeout_while(waiting, time, nothing));
        } else {
            // Calls that could not be taken yet.
            drop(self.changed.wait_timeout_while(waiting, time, is_empty));
        }
    }

    /// Nobody takes anything any more. Gives back the calls that wait.
    pub(super) fn close(&self) -> Vec<Call> {
        let mut waiting = self.lock();
        waiting.is_over = true;
        let calls = waiting.calls.drain(..).collect();
        drop(waiting);
        self.taken.notify_all();
        calls
    }
}

/// Shared by a part and the terms that it had.
pub(super) type SharedInbox = Arc<Inbox>;
