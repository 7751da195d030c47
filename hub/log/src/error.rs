//! Errors of a log, as types that a caller branches on, and the advice for the operator. Nothing here retries or
//! repairs.

use std::{path::PathBuf, sync::Arc};

use model::{Cursor, Epoch, Revision, advice};

use super::{record::InvalidRow, rows::RowsError};

/// A place in the log whose bytes are not what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the event log is corrupt at {place}: {what}")]
pub struct Corruption {
    /// The place, as a person can look it up: epoch and revision, snapshot and row, or the store's files.
    pub place: String,
    /// The finding.
    pub what: String,
}

impl Corruption {
    pub(super) fn new(place: impl Into<String>, what: impl ToString) -> Self {
        Self {
            place: place.into(),
            what: what.to_string(),
        }
    }

    /// An event of the log that cannot be read, and why.
    pub fn event(epoch: Epoch, revision: Revision, what: impl ToString) -> Self {
        Self::new(format!("epoch {epoch}, revision {revision}"), what)
    }

    pub(super) fn snapshot(epoch: Epoch, revision: Revision, what: impl ToString) -> Self {
        Self::new(format!("epoch {epoch}, snapshot at revision {revision}"), what)
    }

    pub(super) fn row(place: impl Into<String>, invalid: InvalidRow) -> Self {
        Self::new(place, invalid)
    }
}

/// The first reason why this log can no longer write. It does not go away; the process must end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the event log failed and takes no more events: {0}; free or repair the volume, then start the hub again: every acknowledged event is kept"
)]
pub struct Failure(pub Arc<str>);

/// Why a batch did not become durable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Somebody else wrote, or the caller's idea of the head is old. Nothing was written.
    #[error("the log's head is revision {} of epoch {}, not what the batch expects", .0.revision, .0.epoch)]
    Fenced(Cursor),
    /// The engine did not say for too long whether it was written. It may be, or become, part of the log: the log tells. The
    /// caller drops what it decided, as if fenced, and never decides it anew.
    #[error("nobody knows yet whether the batch behind revision {} of epoch {} was written: the engine does not answer", .0.revision, .0.epoch)]
    Undecided(Cursor),
    /// The log is in its failed state. Whether the batch is on disk is unknown.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl AppendError {
    /// Returns true if this hub leads no longer, while its log has not failed.
    pub fn ends_term(&self) -> bool {
        matches!(self, Self::Fenced(_) | Self::Undecided(_))
    }
}

/// Why a batch was not even taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBatch {
    /// There is nothing in it.
    #[error("a batch holds at least one event")]
    Empty,
    /// One event is larger than [`super::EVENT_BYTES_MAX`].
    #[error(
        "event {index} of the batch is {bytes} bytes, the limit is {} bytes",
        super::EVENT_BYTES_MAX
    )]
    EventTooLarge {
        /// The event's index, from 0.
        index: usize,
        /// Its size.
        bytes: usize,
    },
    /// More events than [`super::BATCH_EVENTS_MAX`] or bytes than [`super::BATCH_BYTES_MAX`].
    #[error(
        "a batch of {events} events and {bytes} bytes is above the limit of {} events or {} bytes: append it in pieces",
        super::BATCH_EVENTS_MAX,
        super::BATCH_BYTES_MAX
    )]
    TooLarge {
        /// Number of events.
        events: usize,
        /// Their payload bytes.
        bytes: usize,
    },
}

/// Why the log could not answer or do something other than an append.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Stored bytes are not what was written.
    #[error(
        "{0}; stop the hub, run `{verify}`, and restore a backup or start with an empty directory",
        verify = advice::log_verify("DIR")
    )]
    Corrupt(#[from] Corruption),
    /// The log is in its failed state.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// This hub leads no longer.
    #[error(transparent)]
    Term(AppendError),
    /// The request itself cannot be answered; the text says why.
    #[error("{0}")]
    Refused(String),
    /// The events asked for are not kept any more.
    #[error(
        "revision {asked} of epoch {epoch} is no longer in the event log: the oldest kept revision is {oldest}, ask from there"
    )]
    Forgotten {
        /// The epoch that was asked for.
        epoch: Epoch,
        /// The revision that was asked for.
        asked: Revision,
        /// The oldest revision of that epoch that is kept, or will be.
        oldest: Revision,
    },
    /// Too many reads are waiting. Try again later.
    #[error("too many reads of the event log are waiting: try again later")]
    Busy,
    /// The log has been closed.
    #[error("the event log is closed")]
    Closed,
}

impl From<RowsError> for LogError {
    fn from(error: RowsError) -> Self {
        match error {
            RowsError::Damaged(what) => Corruption::new("the store's files", what).into(),
            RowsError::NotOurs(_) => Corruption::new("the store's files", error).into(),
            RowsError::Removed(_) => LogError::Refused(error.to_string()),
            RowsError::Full(_) | RowsError::Io(_) => Failure(error.to_string().into()).into(),
        }
    }
}

/// Why a log could not be opened. The text is what an operator reads, place and advice included.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The log is damaged.
    #[error(
        "{corruption}. Directory: {}. The hub does not start on a damaged log. Either restore a backup of the directory, or move it aside and start with an empty one: every member lists its cluster again, nothing that lives is deleted; only history is lost. `{verify}` shows what can still be read",
        .dir.display(),
        verify = advice::log_verify(&.dir.display().to_string())
    )]
    Corrupt {
        /// The directory.
        dir: PathBuf,
        /// Place and finding.
        corruption: Corruption,
    },
    /// Another process holds it.
    #[error("{} is in use by another process: stop the other hub, or give this one a --data directory of its own", .dir.display())]
    Locked {
        /// The directory.
        dir: PathBuf,
    },
    /// The volume is full.
    #[error("{} is on a full volume ({reason}): free some space and start again", .dir.display())]
    Full {
        /// The directory.
        dir: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// It holds another clusterset.
    #[error(
        "{} holds the event log of clusterset {found}, this hub serves {wanted}: give it another --data directory, or the certificate of {found}", .dir.display()
    )]
    NotOurs {
        /// The directory.
        dir: PathBuf,
        /// The clusterset found.
        found: String,
        /// The clusterset expected.
        wanted: String,
    },
    /// There is a log, and another one was to be put there.
    #[error("{} holds an event log already, and it stays as it is: name another directory, or move that log aside", .dir.display())]
    Occupied {
        /// The directory.
        dir: PathBuf,
    },
    /// The log is a replica of one that several hubs share.
    #[error("{} holds a replica of a log that several hubs share through the engine {engine}: start the hub with --engine. Alone it would continue a log that others continue too", .dir.display())]
    Shared {
        /// The directory.
        dir: PathBuf,
        /// The engine's id.
        engine: String,
    },
    /// A log was being put back there, and that was interrupted.
    #[error("in {} a backup is being restored, or that was interrupted: run `{}` again", .dir.display(), advice::log_restore("BACKUP", &.dir.display().to_string()))]
    Restoring {
        /// The directory.
        dir: PathBuf,
    },
    /// There is no log, and none was to be made.
    #[error("{} holds no event log: name the --data directory of a hub", .dir.display())]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// The system refused.
    #[error("cannot open the event log in {}: {reason}; check that the directory exists and may be written", .dir.display())]
    Io {
        /// The directory.
        dir: PathBuf,
        /// The system's error.
        reason: String,
    },
}
