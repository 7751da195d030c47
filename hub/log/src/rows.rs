//! Requirements on a store that holds a segment of a log: ordered rows, atomic batches, a true sync; and on the place
//! that holds several stores. It knows no event and no snapshot; `store.rs` builds those on top, the same for every
//! store.

use std::ops::ControlFlow;

use super::{Space, segment_name::SegmentName};

/// One change within an atomic batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Op {
    /// Write a row.
    Put(Vec<u8>, Vec<u8>),
    /// Remove a row; one that is not there is no error.
    Remove(Vec<u8>),
}

/// Why a store could not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RowsError {
    /// The volume has no room.
    #[error("the volume is full ({0})")]
    Full(String),
    /// The store found its own files damaged.
    #[error("{0}")]
    Damaged(String),
    /// The store is another clusterset's.
    #[error("it is clusterset {0}'s")]
    NotOurs(String),
    /// It was removed since the caller learned of it.
    #[error("{0} was removed meanwhile: read again")]
    Removed(String),
    /// Anything else the system refused.
    #[error("{0}")]
    Io(String),
}

/// A row: key, value.
pub(super) type Row = (Vec<u8>, Vec<u8>);

/// Visits one row: key, value. `Break` ends the scan. It must not call the rows it is visiting.
pub(super) type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// An ordered set of rows that can be looked at.
pub(super) trait ReadRows {
    /// One row.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, RowsError>;
    /// The last row with `from <= key < to`.
    fn last(&self, from: &[u8], to: &[u8]) -> Result<Option<Row>, RowsError>;
    /// Rows with `from <= key < to` in order.
    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), RowsError>;
}

/// An ordered set of rows. A clone is another handle of the same rows.
///
/// Law: [`Rows::apply`] is atomic and visible at once to every handle; after [`Rows::sync`] returned `Ok`,
/// everything applied before it survives the process and the machine; before that it may be lost, but only
/// from the newest batch backwards.
pub(super) trait Rows: ReadRows + Clone + Send + Sync + 'static {
    /// All of it or nothing.
    fn apply(&self, ops: Vec<Op>) -> Result<(), RowsError>;
    /// Returns when everything applied is durable.
    fn sync(&self) -> Result<(), RowsError>;
}

/// A place that holds the stores of one log side by side: one for each segment. A clone is another handle of the
/// same place.
///
/// Law: a store is open once at a time; a closed one may be opened again. The effects of [`Volume::create`] and
/// [`Volume::remove`] survive a crash of the machine.
pub(super) trait Volume: Clone + Send + Sync + 'static {
    /// The store of one segment.
    type Rows: Rows;
    /// The segments there are, ascending. One whose creation was interrupted may be among them, without rows.
    fn segments(&self) -> Result<Vec<SegmentName>, RowsError>;
    /// Opens the store of a segment that is there.
    fn open(&self, name: SegmentName) -> Result<Self::Rows, RowsError>;
    /// Makes the store of a segment that is not there, without rows.
    fn create(&self, name: SegmentName) -> Result<Self::Rows, RowsError>;
    /// Removes a segment whose store is closed: the whole of it, or nothing.
    fn remove(&self, name: SegmentName) -> Result<(), RowsError>;
    /// Bytes that a segment takes.
    fn bytes_on_disk(&self, name: SegmentName) -> u64;
    /// Its size and free space; `None` if unknown.
    fn space(&self) -> Option<Space>;
}
