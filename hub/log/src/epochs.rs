//! The epochs that a store holds, each row checked.

use std::ops::ControlFlow;

use model::{Clusterset, Epoch, Revision};

use super::{
    error::{Corruption, LogError},
    key::{self, KeyKind},
    record::{self, EpochRow},
    rows::ReadRows,
};

/// The epochs a store holds, ascending, each row checked.
pub(super) fn epochs(rows: &impl ReadRows, clusterset: &Clusterset) -> Result<Vec<Epoch>, LogError> {
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
    rows: &impl ReadRows,
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

/// The current epoch: the last one that began in the current segment, or the one that this segment begins in.
pub(super) fn current_epoch(
    rows: &impl ReadRows,
    clusterset: &Clusterset,
    begins_in: Epoch,
) -> Result<Epoch, LogError> {
    let current = epochs(rows, clusterset)?
        .last()
        .map_or(begins_in, |&last| last.max(begins_in));
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
