//! Opening a log over a volume: make a new one, or verify what is there from the newest snapshot to the head.
//! It refuses what it cannot verify, and repairs nothing; only what an interrupted write left is removed.

use std::ops::ControlFlow;

use model::{Clusterset, Cursor, Epoch, Revision};

use super::{
    epochs::current_epoch,
    error::{Corruption, LogError},
    history, key,
    record::{self, EpochRow, SegmentRow},
    rows::{Op, ReadRows, Rows, RowsError, Volume},
    segment::Segment,
    segment_name::SegmentName,
    segments::Segments,
    snapshot::{self, SnapshotInfo},
};

/// The position of an opened log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Started {
    pub(super) head: Cursor,
    /// Place of the snapshot, complete or not, with which the current epoch begins in the current segment.
    pub(super) base: Revision,
    pub(super) snapshot: Option<SnapshotInfo>,
}

/// Why a store could not be taken as the log of a clusterset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StartError {
    /// Its rows are not what was written.
    Corrupt(Corruption),
    /// It belongs to another clusterset.
    NotOurs(String),
    /// The store itself failed.
    Rows(RowsError),
    /// Any other failure, told by its text.
    Other(String),
}

impl From<LogError> for StartError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Corrupt(corruption) => Self::Corrupt(corruption),
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<Corruption> for StartError {
    fn from(corruption: Corruption) -> Self {
        Self::Corrupt(corruption)
    }
}

impl From<RowsError> for StartError {
    fn from(error: RowsError) -> Self {
        match error {
            RowsError::NotOurs(found) => Self::NotOurs(found),
            other => Self::Rows(other),
        }
    }
}

/// Opens the log, making one in `new_epoch` if there is none.
pub(super) fn start<V: Volume>(
    volume: &V,
    clusterset: &Clusterset,
    new_epoch: Epoch,
) -> Result<(Segments<V>, Started), StartError> {
    let segments = find(volume, clusterset, new_epoch)?;
    let current = segments.current();
    let (rows, begins) = (current.rows()?, current.row()?.start);
    let epoch = current_epoch(&*rows, clusterset, begins.epoch)?;
    let newest = snapshot::newest(&segments, epoch, Revision(u64::MAX))?;
    if newest.is_none() && current.name == SegmentName::After(epoch, Revision(0)) {
        let what =
            "the state that its epoch began with is missing, and the log would be read as an empty one";
        return Err(Corruption::new(format!("the segment {}", current.name), what).into());
    }
    let last = segments.last_revision(epoch)?;
    let mut head = Cursor {
        epoch,
        revision: Revision(0),
        hash: record::chain_start(clusterset, epoch),
    };
    if let Some(info) = &newest {
        verify_snapshot(&segments, info)?;
        head = info.at;
    }
    let (from, before) = (head.revision.next(), Some(head.hash));
    history::walk(&segments, epoch, from, last, before, &mut |revision, hash, _| {
        (head.revision, head.hash) = (revision, hash);
        ControlFlow::Continue(())
    })?;
    let base = if begins.epoch == epoch {
        begins.revision
    } else {
        Revision(0)
    };
    snapshot::remove_leftovers(&*rows, epoch, base)?;
    adopt_format(&*rows, clusterset)?;
    // The last writes of a process that was killed, or whose sync failed, can be read and are perhaps not durable yet:
    // nothing of them may be told before they are.
    rows.sync()?;
    Ok((
        segments,
        Started {
            head,
            base,
            snapshot: newest,
        },
    ))
}

/// Finds the segments of a volume, or makes the first one. The last is the current one; if it was being begun and does
/// not hold a row yet, it never was.
fn find<V: Volume>(volume: &V, clusterset: &Clusterset, new_epoch: Epoch) -> Result<Segments<V>, StartError> {
    let mut names = volume.segments()?;
    let (name, rows) = loop {
        let Some(name) = names.pop() else {
            break (SegmentName::First, volume.create(SegmentName::First)?);
        };
        let rows = volume.open(name)?;
        if names.is_empty() || !is_empty(&rows)? {
            break (name, rows);
        }
        drop(rows);
        volume.remove(name)?;
    };
    if rows.get(&key::format())?.is_none() && name == SegmentName::First {
        create(&rows, clusterset, new_epoch)?;
    }
    if let Some(row) = rows.get(&key::format())? {
        check_format(&row, clusterset)?;
    }
    let current = Segment::opened(volume.clone(), clusterset.clone(), name, rows);
    Ok(Segments::new(volume.clone(), clusterset.clone(), &names, current))
}

pub(super) fn is_empty(rows: &impl ReadRows) -> Result<bool, RowsError> {
    Ok(rows.last(&[0], &[u8::MAX])?.is_none())
}

fn check_format(row: &[u8], clusterset: &Clusterset) -> Result<(), StartError> {
    let found = record::decode_format(row).map_err(|invalid| Corruption::row("the format row", invalid))?;
    if found == clusterset.to_string() {
        Ok(())
    } else {
        Err(StartError::NotOurs(found))
    }
}

/// A log of an older version becomes the first segment of one of this version; an older program refuses it from then on.
fn adopt_format(rows: &impl Rows, clusterset: &Clusterset) -> Result<(), RowsError> {
    match rows.get(&key::format())? {
        Some(row) if record::is_of_older_format(&row) => {
            rows.apply(vec![Op::Put(key::format(), record::encode_format(clusterset))])
        }
        _ => Ok(()),
    }
}

fn create(rows: &impl Rows, clusterset: &Clusterset, epoch: Epoch) -> Result<(), StartError> {
    if !is_empty(rows)? {
        let what = "it is missing, and there are other rows";
        return Err(Corruption::new("the format row", what).into());
    }
    let row = EpochRow {
        start: record::chain_start(clusterset, epoch),
        has_base: false,
    };
    rows.apply(vec![
        Op::Put(key::format(), record::encode_format(clusterset)),
        Op::Put(key::epoch(epoch), row.encode()),
    ])?;
    Ok(rows.sync()?)
}

/// The rows that a segment begins with which follows this position.
pub(super) fn segment_rows(clusterset: &Clusterset, row: &SegmentRow) -> Vec<Op> {
    vec![
        Op::Put(key::format(), record::encode_format(clusterset)),
        Op::Put(key::segment(), row.encode(clusterset)),
    ]
}

/// Verifies a snapshot, and that it is of the position that it says.
pub(super) fn verify_snapshot<V: Volume>(
    segments: &Segments<V>,
    info: &SnapshotInfo,
) -> Result<(), LogError> {
    snapshot::verify(segments, info)?;
    let Cursor {
        epoch,
        revision,
        hash,
    } = info.at;
    let on_record = match segments.start_hash(epoch, revision)? {
        Some(start) => Some(start),
        None => history::hash_at(segments, segments.clusterset(), epoch, revision)?,
    };
    if on_record != Some(hash) {
        let what = "the event it was taken at is missing or another one";
        return Err(Corruption::snapshot(epoch, revision, what).into());
    }
    Ok(())
}
