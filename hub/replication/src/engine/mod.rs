//! The contract of an engine: a replicated register that compares before it writes.
//! It knows no implementation.

mod batch;
mod head;
mod hub_row;
mod keys;
mod names;
mod text;

#[cfg(test)]
mod tests;

pub use batch::{BATCH_BYTES_MAX, BATCH_EVENTS_MAX, EVENT_BYTES_MAX, EngineBatch, InvalidEngineBatch};
pub use head::{Base, Beat, Head};
pub use hub_row::{HubRow, Role};
pub use keys::{KeyRange, Keys, LogName};
pub use names::{EngineId, Instance, InvalidReplica, Replica, Term};
pub use text::Unreadable;

use model::{Epoch, Revision};

/// Most batches in one answer to [`Request::Read`].
pub const READ_BATCHES_MAX: usize = 8;
/// Most hubs that an answer names. An engine refuses to read more.
pub const HUBS_MAX: usize = 64;
/// Seconds for which an announcement stays.
pub const ANNOUNCED_SECONDS: u32 = 15;

/// The place of an event: its epoch and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The life of the log.
    pub epoch: Epoch,
    /// The number of the event.
    pub revision: Revision,
}

/// A replicated store of one log's head and newest batches, shared by all hubs of a clusterset.
///
/// # Laws
///
/// * A commit whose comparison fails changes nothing.
/// * Of two commits with the same expected head, at most one takes effect.
/// * A read sees every commit that was answered before the read was asked.
/// * [`EngineError::Refused`] means that nothing was changed and nothing will be.
///   Every other failure is [`EngineError::Unanswered`].
pub trait Engine: Send + Sync + 'static {
    /// Takes a request and returns at once. `done` is called exactly once, on any thread.
    fn ask(&self, request: Request, done: Answered);
}

/// Receives the outcome of a request.
pub type Answered = Box<dyn FnOnce(Result<Answer, EngineError>) + Send>;

/// A question or a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Reads head, pulse, the newest base, and at most [`READ_BATCHES_MAX`] batches from a position on, as of one moment
    /// after the question was asked.
    Read {
        /// The first event wanted; without one no batch is read.
        from: Option<Position>,
    },
    /// Moves the head, if it is exactly as expected.
    Commit(Box<Commit>),
    /// Writes the pulse, if the head is exactly this.
    Pulse {
        /// The expected head.
        head: Head,
        /// The new pulse.
        beat: Beat,
    },
    /// Removes all batches before a position, if the head is exactly this. The engine may then reclaim their space.
    Trim {
        /// The expected head.
        head: Head,
        /// The first position that stays.
        below: Position,
    },
    /// Announces a hub for [`ANNOUNCED_SECONDS`], and asks which hubs are announced.
    Announce(HubRow),
    /// Asks for space, version and alarms.
    Status,
}

/// A change of the head, with what the new head names. All of it takes effect, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The head that must be there; `None`: there must be none.
    pub expected: Option<Head>,
    /// The head from then on.
    pub next: Head,
    /// The events that lead there.
    pub batch: Option<EngineBatch>,
    /// The position whose state a new epoch begins with.
    pub base: Option<Base>,
}

impl Commit {
    /// Begins a term over the same events.
    pub fn seal(expected: Head, next: Head) -> Self {
        Self {
            expected: Some(expected),
            next,
            batch: None,
            base: None,
        }
    }

    /// Appends a batch within a term.
    pub fn append(expected: &Head, batch: EngineBatch) -> Self {
        let next = Head {
            at: batch.after(),
            ..expected.clone()
        };
        Self {
            batch: Some(batch),
            ..Self::seal(expected.clone(), next)
        }
    }
}

impl From<Commit> for Request {
    fn from(commit: Commit) -> Self {
        Self::Commit(Box::new(commit))
    }
}

/// An answer of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`Request::Read`].
    Read(Seen),
    /// The commit took effect.
    Committed,
    /// Nothing was changed, because the head is this.
    HeadIs(Option<Head>),
    /// The pulse was written, or the batches were removed.
    Done,
    /// To [`Request::Announce`]: every announced hub, by name.
    Hubs(Vec<HubRow>),
    /// To [`Request::Status`].
    Status(EngineStatus),
}

/// The contents of an engine at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// The head, if there is one.
    pub head: Option<Head>,
    /// The newest pulse.
    pub beat: Option<Beat>,
    /// Batches in the order of their positions.
    pub batches: Vec<EngineBatch>,
    /// The base of the newest epoch that has one.
    pub base: Option<Base>,
}

/// Space and health of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EngineStatus {
    /// Its version, as it names it.
    pub version: String,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Bytes that it accepts; 0: unknown.
    pub quota_bytes: u64,
    /// Its alarms, in its own words.
    pub alarms: Vec<String>,
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The request may have taken effect, may still take effect, or never will.
    #[error("the engine did not answer: {0}")]
    Unanswered(Box<str>),
    /// The request changed nothing and never will.
    #[error("the engine refused: {0}")]
    Refused(Refusal),
}

/// Why an engine refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request is larger than the engine accepts.
    #[error("the request is too large")]
    TooLarge,
    /// The engine's quota is used up.
    #[error("its space is used up: raise its quota, or compact and defragment it and disarm the alarm")]
    NoRoom,
    /// The client may not do this.
    #[error("this hub has no right to do that: {0}")]
    NoRight(Box<str>),
    /// The engine holds a value that this release cannot read.
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
}
