//! One segment of a log: its name, and its store, which is open only while somebody reads it or writes to it.
//! It knows what its segment follows, and nothing of the other segments.

use std::{
    fmt,
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use shared::model::{Clusterset, Cursor, Epoch, Revision};

use super::{
    error::{Corruption, LogError},
    key,
    record::{self, SegmentRow},
    rows::{ReadRows, RowsError, Volume},
    start,
};

/// Which segment: the position that its first event follows. Names sort as the segments do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SegmentName {
    /// The first one that a log ever had, from the start of its first epoch. A log of format version 1 is one such
    /// segment.
    First,
    /// One that was begun behind an event.
    After(Epoch, Revision),
}

const FIRST: &str = "log";

impl fmt::Display for SegmentName {
    /// Frozen: directories are called so.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str(FIRST),
            Self::After(epoch, revision) => write!(f, "{FIRST}.{epoch}.{revision}"),
        }
    }
}

/// The text is not the name of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoSegment;

impl FromStr for SegmentName {
    type Err = NoSegment;

    fn from_str(text: &str) -> Result<Self, NoSegment> {
        if text == FIRST {
            return Ok(Self::First);
        }
        let position = text.strip_prefix(FIRST).and_then(|rest| rest.strip_prefix('.'));
        let (epoch, revision) = position.and_then(|rest| rest.split_once('.')).ok_or(NoSegment)?;
        let (epoch, revision) = (epoch.parse().ok(), revision.parse().ok());
        let name = epoch
            .zip(revision)
            .map(|(epoch, revision)| Self::After(epoch, Revision(revision)));
        // One way to write each name: what reads alike is not alike on disk.
        name.filter(|name| name.to_string() == text).ok_or(NoSegment)
    }
}

/// The store of a segment, as far as it is there.
enum Handle<R> {
    Closed,
    Open(Arc<R>),
    Removed,
}

/// One segment.
pub(super) struct Segment<V: Volume> {
    volume: V,
    clusterset: Clusterset,
    pub(super) name: SegmentName,
    /// Known once it was open.
    row: OnceLock<SegmentRow>,
    /// Its store. Handles of it are made and counted under this lock only, so that it is closed when nobody has one.
    store: Mutex<Handle<V::Rows>>,
    /// Bytes that it takes, once nothing is written to it any more.
    bytes: OnceLock<u64>,
}

impl<V: Volume> Segment<V> {
    /// A segment that is there, closed.
    pub(super) fn closed(volume: V, clusterset: Clusterset, name: SegmentName) -> Self {
        Self {
            volume,
            clusterset,
            name,
            row: OnceLock::new(),
            store: Mutex::new(Handle::Closed),
            bytes: OnceLock::new(),
        }
    }

    /// A segment whose store is open already.
    pub(super) fn opened(volume: V, clusterset: Clusterset, name: SegmentName, rows: V::Rows) -> Self {
        let segment = Self::closed(volume, clusterset, name);
        *segment.lock() = Handle::Open(Arc::new(rows));
        segment
    }

    fn lock(&self) -> MutexGuard<'_, Handle<V::Rows>> {
        // The store is there or not, whatever panicked.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its store, opened if it is not.
    pub(super) fn rows(&self) -> Result<Arc<V::Rows>, RowsError> {
        let mut store = self.lock();
        match &*store {
            Handle::Open(rows) => Ok(Arc::clone(rows)),
            Handle::Closed => {
                let rows = Arc::new(self.volume.open(self.name)?);
                *store = Handle::Open(Arc::clone(&rows));
                Ok(rows)
            }
            Handle::Removed => Err(RowsError::Removed(format!("the segment {}", self.name))),
        }
    }

    /// What it follows, read once.
    pub(super) fn row(&self) -> Result<SegmentRow, LogError> {
        if let Some(row) = self.row.get() {
            return Ok(*row);
        }
        let row = self.read_row(&*self.rows()?)?;
        Ok(*self.row.get_or_init(|| row))
    }

    fn read_row(&self, rows: &V::Rows) -> Result<SegmentRow, LogError> {
        let place = format!("the segment {}", self.name);
        check_format(rows, &self.clusterset, &place)?;
        let SegmentName::After(epoch, revision) = self.name else {
            return first_row(rows, &self.clusterset);
        };
        let missing = || Corruption::new(&place, "the row that says what it follows is missing");
        let row = rows.get(&key::segment())?.ok_or_else(missing)?;
        let row =
            SegmentRow::decode(&row, &self.clusterset).map_err(|invalid| Corruption::row(&place, invalid))?;
        if (row.start.epoch, row.start.revision) != (epoch, revision) {
            let what = format!(
                "it follows revision {} of epoch {}",
                row.start.revision, row.start.epoch
            );
            return Err(Corruption::new(place, what).into());
        }
        Ok(row)
    }

    /// Whether the snapshot that it begins with is complete: then nothing before it is needed.
    pub(super) fn has_base(&self) -> Result<bool, LogError> {
        let Cursor { epoch, revision, .. } = self.row()?.start;
        Ok(self
            .rows()?
            .get(&key::snapshot_marker(epoch, revision))?
            .is_some())
    }

    /// Bytes that it takes; asked again until it is `sealed`.
    pub(super) fn bytes(&self, sealed: bool) -> u64 {
        let measure = || self.volume.bytes_on_disk(self.name);
        match sealed {
            true => *self.bytes.get_or_init(measure),
            false => measure(),
        }
    }

    /// Closes its store; false if somebody uses it, and it stays open.
    pub(super) fn close(&self) -> bool {
        close(&mut self.lock())
    }

    /// Removes it from its volume; false if somebody reads it, and it stays.
    pub(super) fn remove(&self) -> Result<bool, RowsError> {
        let mut store = self.lock();
        if matches!(*store, Handle::Removed) || !close(&mut store) {
            return Ok(false);
        }
        self.volume.remove(self.name)?;
        *store = Handle::Removed;
        Ok(true)
    }
}

/// Under the lock of the handle: what is closed then may be opened again.
fn close<R>(store: &mut Handle<R>) -> bool {
    match store {
        Handle::Open(rows) if Arc::strong_count(rows) > 1 => false,
        Handle::Open(_) => {
            *store = Handle::Closed;
            true
        }
        _ => true,
    }
}

/// What the first segment follows: nothing, from the start of its first epoch.
fn first_row(rows: &impl ReadRows, clusterset: &Clusterset) -> Result<SegmentRow, LogError> {
    let missing = || Corruption::new("the epochs' rows", "there is none");
    let epoch = *start::epochs(rows, clusterset)?.first().ok_or_else(missing)?;
    Ok(SegmentRow {
        start: Cursor {
            epoch,
            revision: Revision(0),
            hash: record::chain_start(clusterset, epoch),
        },
        began_at: epoch.created_at,
    })
}

fn check_format(rows: &impl ReadRows, clusterset: &Clusterset, place: &str) -> Result<(), LogError> {
    let place = || format!("{place}, the format row");
    let missing = || Corruption::new(place(), "it is missing");
    let row = rows.get(&key::format())?.ok_or_else(missing)?;
    let found = record::decode_format(&row).map_err(|invalid| Corruption::row(place(), invalid))?;
    if found != clusterset.to_string() {
        return Err(Corruption::new(place(), format!("it is clusterset {found}'s")).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use shared::model::UnixMillis;

    use super::*;

    #[test]
    fn names_are_frozen_and_sort_as_segments_do() {
        let after = |millis, revision| {
            let epoch = Epoch {
                created_at: UnixMillis(millis),
                random: 0x1234,
            };
            SegmentName::After(epoch, Revision(revision))
        };
        assert_eq!(SegmentName::First.to_string(), "log");
        assert_eq!(after(17, 5).to_string(), "log.17-0000000000001234.5");
        let names = [SegmentName::First, after(9, 10), after(17, 5), after(17, 10)];
        assert!(names.is_sorted());
        for name in names {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        for text in [
            "log.lock",
            "log.",
            "log.17-12.5",
            "log.17-0000000000001234.05",
            "removed.log",
        ] {
            assert_eq!(text.parse::<SegmentName>(), Err(NoSegment), "{text}");
        }
    }
}
