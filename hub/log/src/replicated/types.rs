//! The words that a hub's part and its owner share.

use model::Cursor;
use replication::{engine::Head, machine::TermEnd};

use crate::{Log, LogError, LogReader, Replica, SnapshotRows, StoredEvent};

/// Folds the events of a replica as they come, so that its hub can lead at once.
pub trait Fold: Send + 'static {
    /// Takes the next event; `is_level`: this hub had everything that was committed a moment ago. An error is the reason why
    /// this build cannot fold it: the hub follows on, and does not lead.
    fn take(&mut self, event: StoredEvent, is_level: bool) -> Result<(), String>;

    /// The state after all events that were taken, as rows of a snapshot.
    fn rows(&self) -> SnapshotRows;

    /// An epoch begins at this position, over the present state.
    fn begin_epoch(&mut self, head: Cursor);

    /// The newest term in the events.
    fn term(&self) -> u64;
}

/// Folds everything that a log has.
pub type Refold<F> = Box<dyn FnMut(LogReader) -> Result<F, LogError> + Send>;

/// Makes the replica of a hub that has none, in the epoch of a position.
pub type NewReplica = Box<dyn FnMut(Cursor) -> Result<Box<dyn Replica>, LogError> + Send>;

/// Something that the hub's owner must know of.
pub enum Happened<F> {
    /// This hub leads.
    Leads(Lead<F>),
    /// It leads no longer, and follows.
    Ended(TermEnd),
    /// The log must be copied from the leader; then call `copied`.
    MustCopy {
        /// The log on this disk has events that the shared log never had: they are set aside.
        diverged: bool,
    },
    /// The replica failed: this hub takes no further part.
    Failed(LogError),
}

/// A term of this hub.
pub struct Lead<F> {
    /// The head with which it begins.
    pub head: Head,
    /// The state at the head.
    pub fold: F,
    /// The log, for this term only: later calls are fenced.
    pub log: Box<dyn Log>,
}
