//! The inputs and outputs of the machine.

use bytes::Bytes;
use model::{Clusterset, Cursor, Epoch, UnixMillis};

use crate::engine::{
    Answer, Base, EngineBatch, EngineError, EngineId, Head, Instance, Position, Refusal, Replica, Request,
    Term,
};

/// A moment of the caller's two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds of a clock that never goes back and stands for this process only.
    pub ticks: u64,
    /// The time of day; only new epochs need it.
    pub time: UnixMillis,
}

/// A request to the engine, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskId(pub u64);

/// A call of the log's user, which is released with its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u64);

/// The settings of a hub at its start.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whose log this is.
    pub clusterset: Clusterset,
    /// This hub's name.
    pub replica: Replica,
    /// This process.
    pub instance: Instance,
    /// The address at which other hubs reach it, one word.
    pub address: String,
    /// Its release, one word.
    pub version: String,
    /// The newest rules that it folds by.
    pub rules: u32,
    /// Milliseconds of silence after which another hub takes the lead.
    pub takeover_after_millis: u64,
    /// The id of the engine that it may make the first head with; absent: it may make none.
    pub origin: Option<EngineId>,
    /// Random bits for epochs that it begins.
    pub random: u64,
    /// Bytes of batches that stay in the engine, [`super::TAIL_BYTES`] where the engine has one log.
    pub tail_bytes: u64,
    /// Bytes above which the oldest go although a hub lacks them, at most [`super::TAIL_BYTES_MAX`].
    pub tail_bytes_max: u64,
}

/// The log that a hub has on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// Its head, if there is a log.
    pub at: Option<Cursor>,
    /// The newest term in it.
    pub term: Term,
    /// The engine that it belongs to, if it belongs to one.
    pub engine: Option<EngineId>,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// Time went on. It comes every [`super::TICK_MILLIS`] or more often.
    Tick,
    /// The engine answered, or did not.
    Answered {
        /// The request.
        ask: AskId,
        /// Its outcome.
        outcome: Result<Answer, EngineError>,
    },
    /// Events to append behind a position.
    Append {
        /// The call.
        token: Token,
        /// The position that they follow.
        before: Cursor,
        /// Their payloads.
        payloads: Vec<Bytes>,
    },
    /// A new epoch over the state at the end of the log.
    BeginEpoch {
        /// The call.
        token: Token,
        /// The epoch.
        epoch: Epoch,
    },
    /// A question whether this hub still leads.
    Confirm {
        /// The call.
        token: Token,
    },
    /// The next batch begins a segment of the log.
    BeginSegment,
    /// The lead is to be given up, after what is queued.
    Resign {
        /// The hub that may take it first.
        next: Option<Replica>,
    },
    /// True if this hub could lead: it is healthy, folds all events, and does not end.
    Able(bool),
    /// The log is on disk up to here.
    Synced(Cursor),
    /// The log was copied from the leader.
    Copied {
        /// Its head.
        at: Cursor,
        /// The newest term in it.
        term: Term,
    },
}

/// Something to do, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Ask the engine.
    Ask {
        /// The request's number.
        ask: AskId,
        /// The request.
        request: Request,
    },
    /// Append a committed batch to the log on disk.
    Apply(EngineBatch),
    /// Begin a committed epoch there, over the state at its head.
    BeginEpoch(Base),
    /// Make an empty log there, in the epoch of this position.
    NewLog(Cursor),
    /// Set the log on disk aside, and copy that of the leader.
    Copy {
        /// The log has events that the engine's log never had.
        diverged: bool,
    },
    /// The engine removed the batches before a position.
    Trimmed(Position),
    /// The batches before a position are about to go, although a hub lacks some: until it has copied the log, there is one
    /// copy fewer.
    LeavesBehind(Position),
    /// This hub leads from here on.
    Lead(Head),
    /// A call has its outcome.
    Released {
        /// The call.
        token: Token,
        /// The end of what was written, or the head that was confirmed.
        outcome: Result<Cursor, WriteError>,
    },
    /// This hub leads no longer. Every call was released before.
    Ended(TermEnd),
}

/// Why a call did nothing, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Nothing of it was written, and nothing will be: another hub leads, or the events follow another position.
    #[error("another hub writes this log; its head here is {0}")]
    Fenced(Cursor),
    /// It was written or will be, or not: the log tells.
    #[error("nobody knows whether this was written; the last known head is {0}")]
    Undecided(Cursor),
    /// Nothing of it was written: the engine refused.
    #[error("{0}")]
    Refused(Refusal),
    /// Too many calls wait. The caller looks at [`super::Machine::has_room`] before.
    #[error("too many appends wait")]
    Full,
}

/// Why a term ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TermEnd {
    /// Another hub leads, or the engine's contents went back.
    Fenced,
    /// The engine did not confirm the lead in time.
    Undecided,
    /// The lead was given up.
    Resigned,
    /// The engine refused a commit.
    Refused(Refusal),
}

/// The part of a hub, for readiness and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is known of the engine yet, or it has no head.
    Waits,
    /// The engine is another one than this hub's log belongs to.
    Foreign,
    /// A value in the engine cannot be read.
    Unreadable(Refusal),
    /// It follows.
    Follows {
        /// Its log is level with the head.
        is_level: bool,
    },
    /// It waits for the copy of a log.
    Copies,
    /// Its log has events that the engine lost.
    Ahead,
    /// It takes the lead.
    Seals,
    /// It leads.
    Leads,
}
