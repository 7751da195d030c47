//! What a store must be able to do to hold a log: ordered rows, atomic batches, a sync that means it.
//! It knows no event and no snapshot; `store.rs` builds those on top, the same for every store.

use std::ops::ControlFlow;

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
    /// Anything else the system refused.
    #[error("{0}")]
    Io(String),
}

/// A row: key, value.
pub(super) type Row = (Vec<u8>, Vec<u8>);

/// Visits one row: key, value. `Break` ends the scan. It must not call the rows it is visiting.
pub(super) type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// An ordered set of rows. A clone is another handle of the same rows.
///
/// Law: [`Rows::apply`] is atomic and visible at once to every handle; after [`Rows::sync`] returned `Ok`,
/// everything applied before it survives the process and the machine; before that it may be lost, but only
/// from the newest batch backwards.
pub(super) trait Rows: Clone + Send + 'static {
    /// One row.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, RowsError>;
    /// The last row with `from <= key < to`.
    fn last(&self, from: &[u8], to: &[u8]) -> Result<Option<Row>, RowsError>;
    /// Rows with `from <= key < to` in order.
    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), RowsError>;
    /// All of it or nothing.
    fn apply(&self, ops: Vec<Op>) -> Result<(), RowsError>;
    /// Returns when everything applied is durable.
    fn sync(&self) -> Result<(), RowsError>;
    /// Bytes the store takes on its volume.
    fn bytes_on_disk(&self) -> u64;
}
