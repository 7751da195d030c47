//! Storage of snapshots: many small rows written in pieces, complete only by a last marker row that holds
//! their digest. Older ones go only after the new one is durable; the base of an epoch, at revision 0, and the one that
//! a segment begins with stay (without it the history behind it cannot be replayed). It knows no state: rows are opaque.

use std::ops::ControlFlow;

use model::{Cursor, Epoch, Revision};

use super::{
    SnapshotRows,
    error::{Corruption, LogError},
    group::{self, Joiner},
    key::{self, KeyKind},
    record::{Marker, PAYLOAD_BYTES_MAX, digest_row},
    rows::{Op, ReadRows, Rows, RowsError},
};

/// Most rows of one snapshot.
pub const SNAPSHOT_ROWS_MAX: u32 = 16 * 1024 * 1024;
/// Snapshot rows written in one piece, so that appends between pieces wait briefly.
const PIECE_ROWS_MAX: usize = 4096;
/// Rows of the store removed in one piece.
const PIECE_REMOVED_MAX: usize = 256;
/// Row bytes after which a piece is written; the last row may pass it.
const PIECE_BYTES_MAX: usize = 512 * 1024;

/// A complete snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// The position whose state it holds.
    pub at: Cursor,
    /// Number of its rows.
    pub rows: u32,
    /// Their bytes.
    pub bytes: u64,
    pub(super) digest: [u8; 32],
}

/// Some rows of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotPage {
    /// Rows in order.
    pub rows: Vec<Vec<u8>>,
    /// The row to continue from, if there are more.
    pub next: Option<u32>,
}

/// The newest complete snapshot of an epoch at or before a revision.
pub(super) fn newest(
    rows: &impl ReadRows,
    epoch: Epoch,
    up_to: Revision,
) -> Result<Option<SnapshotInfo>, LogError> {
    let (from, _) = key::epoch_range(KeyKind::SnapshotMarker, epoch);
    let to = key::behind(&key::snapshot_marker(epoch, up_to));
    let Some((key, value)) = rows.last(&from, &to)? else {
        return Ok(None);
    };
    let place = || format!("epoch {epoch}, a snapshot's marker");
    let wrong = || Corruption::new(place(), "its key has the wrong length");
    let (_, revision) = key::parse_snapshot_marker(&key).ok_or_else(wrong)?;
    let marker = Marker::decode(&value).map_err(|invalid| Corruption::new(place(), invalid))?;
    let Marker {
        hash,
        rows,
        bytes,
        digest,
    } = marker;
    let at = Cursor {
        epoch,
        revision,
        hash,
    };
    Ok(Some(SnapshotInfo {
        at,
        rows,
        bytes,
        digest,
    }))
}

/// Sees one row of a snapshot: its number and bytes.
type VisitRow<'a> = dyn FnMut(u32, &[u8]) -> ControlFlow<()> + 'a;

/// Visits a snapshot's rows from a number on; a missing row is corruption, the digest is not checked.
fn walk(
    rows: &impl ReadRows,
    info: &SnapshotInfo,
    from: u32,
    visit: &mut VisitRow<'_>,
) -> Result<(), LogError> {
    let Cursor {
        epoch,
        revision,
        hash,
    } = info.at;
    let wrong = |row: u64, what: String| Corruption::snapshot(epoch, revision, format!("row {row}: {what}"));
    let key_of = |row| key::snapshot_row(epoch, revision, row, 0);
    let group_end = key::behind(&key::snapshot_row(epoch, revision, from, u16::MAX));
    let place = |key: &[u8]| key::parse_snapshot_row(key).ok_or("its key has the wrong length".to_owned());
    let first = match rows.last(&key_of(0), &group_end)? {
        Some((key, _)) => place(&key).map_err(|what| wrong(from.into(), what))?.2,
        None => from,
    };
    let mut joiner = Joiner::new(first.into());
    let mut push = |joiner: &mut Joiner, key: &[u8], value: &[u8]| -> Result<ControlFlow<()>, String> {
        let (_, _, first, part) = place(key)?;
        let Some(group) = joiner.push(first.into(), part, value)? else {
            return Ok(ControlFlow::Continue(()));
        };
        if (group.before, group.after) != (hash, hash) {
            return Err("its header belongs to another snapshot".into());
        }
        for (number, row) in (first..).zip(group.payloads()) {
            if number >= from && visit(number, row) == ControlFlow::Break(()) {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    };
    let mut outcome = Ok(ControlFlow::Continue(()));
    let to_key = key::snapshot_row(epoch, revision.next(), 0, 0);
    rows.scan(&key_of(first), &to_key, &mut |key, value| {
        let next = joiner.next;
        outcome = push(&mut joiner, key, value).map_err(|what| wrong(next, what));
        match outcome {
            Ok(flow) => flow,
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    let whole = joiner.next == u64::from(info.rows) && joiner.is_between();
    if outcome? == ControlFlow::Continue(()) && !whole {
        let what = format!("it is missing, the snapshot has {} rows", info.rows);
        return Err(wrong(joiner.next, what).into());
    }
    Ok(())
}

/// Reads rows from a number on until `bytes` are reached; at least one row if there is one.
pub(super) fn page(
    rows: &impl ReadRows,
    info: &SnapshotInfo,
    from: u32,
    bytes: usize,
) -> Result<SnapshotPage, LogError> {
    let mut page = SnapshotPage {
        rows: Vec::new(),
        next: None,
    };
    let mut taken = 0;
    walk(rows, info, from, &mut |number, row| {
        if taken > 0 && taken + row.len() > bytes {
            page.next = Some(number);
            return ControlFlow::Break(());
        }
        taken += row.len().max(1);
        page.rows.push(row.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(page)
}

/// Reads all rows of a snapshot and holds them against its marker.
pub(super) fn verify(rows: &impl ReadRows, info: &SnapshotInfo) -> Result<(), LogError> {
    let mut digest = Digest::default();
    walk(rows, info, 0, &mut |_, row| {
        digest.add(row);
        ControlFlow::Continue(())
    })?;
    Ok(digest.check(info)?)
}

/// The digest in a snapshot's marker, built row by row: by the writer, and again by every reader.
#[derive(Default)]
pub(super) struct Digest {
    hasher: blake3::Hasher,
    rows: u32,
    bytes: u64,
}

impl Digest {
    /// Counts in the next row.
    pub(super) fn add(&mut self, row: &[u8]) {
        digest_row(&mut self.hasher, row);
        self.rows += 1;
        self.bytes += row.len() as u64;
    }

    /// Holds what was read against the marker.
    pub(super) fn check(&self, info: &SnapshotInfo) -> Result<(), Corruption> {
        let digest = *self.hasher.finalize().as_bytes();
        if (self.rows, self.bytes, digest) == (info.rows, info.bytes, info.digest) {
            return Ok(());
        }
        let Cursor { epoch, revision, .. } = info.at;
        let what = "its rows do not match the digest in its marker";
        Err(Corruption::snapshot(epoch, revision, what))
    }
}

/// Removes all rows with `from <= key < to`, in pieces. Not synced: what comes back after a crash is removed
/// again at the next start.
pub(super) fn remove_range(rows: &impl Rows, from: &[u8], to: &[u8]) -> Result<(), RowsError> {
    while remove_piece(rows, from, to)? {}
    Ok(())
}

/// Removes one piece of a range; true if there may be more.
fn remove_piece(rows: &impl Rows, from: &[u8], to: &[u8]) -> Result<bool, RowsError> {
    let mut ops = Vec::new();
    rows.scan(from, to, &mut |key, _| {
        ops.push(Op::Remove(key.to_vec()));
        if ops.len() < PIECE_REMOVED_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    let more = ops.len() == PIECE_REMOVED_MAX;
    if !ops.is_empty() {
        rows.apply(ops)?;
    }
    Ok(more)
}

/// A snapshot that is being written. The owner of the store calls [`SnapshotJob::step`] between appends.
pub(super) struct SnapshotJob {
    at: Cursor,
    /// Snapshots of this epoch that are older than `at` go, but for the base, which is at this revision.
    base: Revision,
    rows: SnapshotRows,
    digest: Digest,
    phase: Phase,
}

enum Phase {
    Writing,
    Removing,
}

/// The outcome of a step of a snapshot.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A piece; there is more to do.
    More,
    /// The snapshot is complete and durable; older ones are to be removed yet.
    Durable,
    /// Everything is done.
    Finished,
}

impl SnapshotJob {
    pub(super) fn new(at: Cursor, base: Revision, rows: SnapshotRows) -> Self {
        Self {
            at,
            base,
            rows,
            digest: Digest::default(),
            phase: Phase::Writing,
        }
    }

    pub(super) fn at(&self) -> Cursor {
        self.at
    }

    /// Bytes of the rows written so far.
    pub(super) fn bytes(&self) -> u64 {
        self.digest.bytes
    }

    /// Does one piece.
    pub(super) fn step(&mut self, rows: &impl Rows) -> Result<Step, LogError> {
        match self.phase {
            Phase::Writing => self.write_piece(rows),
            Phase::Removing => self.remove_older(rows),
        }
    }

    fn write_piece(&mut self, rows: &impl Rows) -> Result<Step, LogError> {
        let Cursor {
            epoch,
            revision,
            hash,
        } = self.at;
        let first = self.digest.rows;
        let (mut piece, mut bytes, mut more) = (Vec::new(), 0, true);
        while piece.len() < PIECE_ROWS_MAX && bytes < PIECE_BYTES_MAX {
            let Some(row) = self.rows.next() else {
                more = false;
                break;
            };
            if row.len() > PAYLOAD_BYTES_MAX || self.digest.rows == SNAPSHOT_ROWS_MAX {
                return Err(LogError::Refused(format!(
                    "row {} of the snapshot at revision {revision} has {} bytes: the limits are {PAYLOAD_BYTES_MAX} bytes and {SNAPSHOT_ROWS_MAX} rows",
                    self.digest.rows,
                    row.len()
                )));
            }
            bytes += row.len();
            self.digest.add(&row);
            piece.push(row);
        }
        let packed = group::pack(first.into(), hash, piece.iter().map(|row| (hash, row.as_slice())));
        let ops = packed.into_iter().map(|row| {
            let first = u32::try_from(row.first).expect("SNAPSHOT_ROWS_MAX is below");
            Op::Put(key::snapshot_row(epoch, revision, first, row.part), row.bytes)
        });
        let ops: Vec<_> = ops.collect();
        if !ops.is_empty() {
            rows.apply(ops)?;
        }
        if more { Ok(Step::More) } else { self.complete(rows) }
    }

    /// Rows first and durable, the marker only then: a marker on disk proves its rows.
    fn complete(&mut self, rows: &impl Rows) -> Result<Step, LogError> {
        let Cursor {
            epoch,
            revision,
            hash,
        } = self.at;
        rows.sync()?;
        let marker = Marker {
            hash,
            rows: self.digest.rows,
            bytes: self.digest.bytes,
            digest: *self.digest.hasher.finalize().as_bytes(),
        };
        let key = key::snapshot_marker(epoch, revision);
        rows.apply(vec![Op::Put(key, marker.encode())])?;
        rows.sync()?;
        self.phase = Phase::Removing;
        Ok(Step::Durable)
    }

    fn remove_older(&mut self, rows: &impl Rows) -> Result<Step, LogError> {
        let Cursor { epoch, revision, .. } = self.at;
        let first = self.base.next();
        if revision <= first {
            return Ok(Step::Finished);
        }
        // Markers first: rows without a marker are no snapshot, a marker without its rows is corruption.
        let marker = |revision| key::snapshot_marker(epoch, revision);
        remove_range(rows, &marker(first), &marker(revision))?;
        let row = |revision| key::snapshot_row(epoch, revision, 0, 0);
        if remove_piece(rows, &row(first), &row(revision))? {
            Ok(Step::More)
        } else {
            Ok(Step::Finished)
        }
    }

    /// Gives the snapshot up and removes what was written of it.
    pub(super) fn abandon(self, rows: &impl Rows) -> Result<(), RowsError> {
        if matches!(self.phase, Phase::Removing) {
            return Ok(());
        }
        let row = |revision| key::snapshot_row(self.at.epoch, revision, 0, 0);
        remove_range(rows, &row(self.at.revision), &row(self.at.revision.next()))
    }
}

/// Removes what interrupted writes and removals left in the current segment, given its epoch, and where that one's base
/// in this segment is.
pub(super) fn remove_leftovers(rows: &impl Rows, epoch: Epoch, base: Revision) -> Result<(), LogError> {
    let row = |revision| key::snapshot_row(epoch, revision, 0, 0);
    let marker = |revision| key::snapshot_marker(epoch, revision);
    let first = base.next();
    if rows.get(&marker(base))?.is_none() {
        remove_range(rows, &row(base), &row(first))?;
    }
    let newest = newest(rows, epoch, Revision(u64::MAX))?;
    let kept = newest.map_or(base, |info| info.at.revision);
    if kept > first {
        remove_range(rows, &marker(first), &marker(kept))?;
        remove_range(rows, &row(first), &row(kept))?;
    }
    // Behind the newest, and in epochs that were being begun and are not: nothing of it counts.
    Ok(remove_from(rows, epoch, kept.next())?)
}

/// Removes every snapshot, complete or not, from a position on, later epochs included.
pub(super) fn remove_from(rows: &impl Rows, epoch: Epoch, revision: Revision) -> Result<(), RowsError> {
    let marker = key::snapshot_marker(epoch, revision);
    remove_range(rows, &marker, &key::kind_range(KeyKind::SnapshotMarker).1)?;
    let row = key::snapshot_row(epoch, revision, 0, 0);
    remove_range(rows, &row, &key::kind_range(KeyKind::SnapshotRow).1)
}
