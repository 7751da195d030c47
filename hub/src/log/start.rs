//! Opening a log over a store: make a new one, or verify what is there from the newest snapshot to the head.
//! It refuses what it cannot verify, and repairs nothing; only what an interrupted write left is removed.

use std::ops::ControlFlow;

use shared::model::{Clusterset, Cursor, Epoch, Revision};

use super::{
    error::{Corruption, LogError},
    history,
    key::{self, KeyKind},
    record::{self, EpochRow},
    rows::{Op, Rows, RowsError},
    snapshot::{self, SnapshotInfo},
};

/// Where a log stands after it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Started {
    pub(super) head: Cursor,
    pub(super) snapshot: Option<SnapshotInfo>,
}

/// Why a store could not be taken as the log of a clusterset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StartError {
    /// Its rows are not what was written.
    Corrupt(Corruption),
    /// It is another clusterset's.
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
        Self::Rows(error)
    }
}

/// Opens the log, making one in `new_epoch` if the store is empty.
pub(super) fn start(
    rows: &impl Rows,
    clusterset: &Clusterset,
    new_epoch: Epoch,
) -> Result<Started, StartError> {
    match rows.get(&key::format())? {
        Some(row) => check_format(&row, clusterset)?,
        None => return create(rows, clusterset, new_epoch),
    }
    let epoch = current_epoch(rows, clusterset)?;
    let newest = snapshot::newest(rows, epoch, Revision(u64::MAX))?;
    let last = history::last_revision(rows, epoch)?;
    let mut head = Cursor {
        epoch,
        revision: Revision(0),
        hash: record::chain_start(clusterset, epoch),
    };
    if let Some(info) = &newest {
        snapshot::verify(rows, info)?;
        let at_event = history::hash_at(rows, clusterset, epoch, info.at.revision)?;
        if at_event != Some(info.at.hash) {
            let what = "the event it was taken at is missing or another one";
            return Err(Corruption::snapshot(epoch, info.at.revision, what).into());
        }
        head = info.at;
    }
    let (from, before) = (head.revision.next(), Some(head.hash));
    history::walk(rows, epoch, from, last, before, &mut |revision, hash, _| {
        (head.revision, head.hash) = (revision, hash);
        ControlFlow::Continue(())
    })?;
    snapshot::remove_leftovers(rows, epoch, newest.as_ref())?;
    // What a process that was killed, or whose sync failed, wrote last can be read and is perhaps not durable yet:
    // nothing of it may be told before it is.
    rows.sync()?;
    Ok(Started {
        head,
        snapshot: newest,
    })
}

fn check_format(row: &[u8], clusterset: &Clusterset) -> Result<(), StartError> {
    let found = record::decode_format(row).map_err(|invalid| Corruption::row("the format row", invalid))?;
    match found == clusterset.to_string() {
        true => Ok(()),
        false => Err(StartError::NotOurs(found)),
    }
}

fn create(rows: &impl Rows, clusterset: &Clusterset, epoch: Epoch) -> Result<Started, StartError> {
    if rows.last(&[0], &[u8::MAX])?.is_some() {
        let what = "it is missing, and there are other rows";
        return Err(Corruption::new("the format row", what).into());
    }
    let hash = record::chain_start(clusterset, epoch);
    let row = EpochRow {
        start: hash,
        has_base: false,
    };
    rows.apply(vec![
        Op::Put(key::format(), record::encode_format(clusterset)),
        Op::Put(key::epoch(epoch), row.encode()),
    ])?;
    rows.sync()?;
    let revision = Revision(0);
    Ok(Started {
        head: Cursor {
            epoch,
            revision,
            hash,
        },
        snapshot: None,
    })
}

/// The epochs a store holds, ascending, each row checked.
pub(super) fn epochs(rows: &impl Rows, clusterset: &Clusterset) -> Result<Vec<Epoch>, LogError> {
    let (from, to) = key::kind_range(KeyKind::Epoch);
    let mut found = Vec::new();
    rows.scan(&from, &to, &mut |key, value| {
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })?;
    let checked = found
        .iter()
        .map(|(key, value)| check_epoch(rows, key, value, clusterset));
    checked.collect()
}

fn check_epoch(
    rows: &impl Rows,
    key: &[u8],
    value: &[u8],
    clusterset: &Clusterset,
) -> Result<Epoch, LogError> {
    let wrong = || Corruption::new("an epoch's row", "its key has the wrong length");
    let epoch = key::parse_epoch(key).ok_or_else(wrong)?;
    let corrupt = |what: String| Corruption::new(format!("the row of epoch {epoch}"), what);
    let start = record::chain_start(clusterset, epoch);
    let row = EpochRow::decode(value, start).map_err(|invalid| corrupt(invalid.to_string()))?;
    if row.has_base && rows.get(&key::snapshot_marker(epoch, Revision(0)))?.is_none() {
        return Err(corrupt("the epoch's base snapshot, which it names, is missing".into()).into());
    }
    Ok(epoch)
}

fn current_epoch(rows: &impl Rows, clusterset: &Clusterset) -> Result<Epoch, StartError> {
    let epochs = epochs(rows, clusterset)?;
    let missing = || Corruption::new("the epochs' rows", "there is none");
    let current = *epochs.last().ok_or_else(missing)?;
    let (from, to) = key::kind_range(KeyKind::Event);
    if let Some((key, _)) = rows.last(&from, &to)? {
        let newest = key::parse_event(&key).map(|(epoch, ..)| epoch);
        if newest.is_none_or(|newest| newest > current) {
            let what = format!("it is missing: there are events behind those of epoch {current}");
            return Err(Corruption::new("the newest epoch's row", what).into());
        }
    }
    Ok(current)
}
