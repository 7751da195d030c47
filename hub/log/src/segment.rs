//! One segment of a log: its store, which is open only while somebody reads it or writes to it.
//! It knows what its segment follows, and nothing of the other segments.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use model::{Clusterset, Cursor, Revision};

use super::{
    epochs::epochs,
    error::{Corruption, LogError},
    key,
    record::{self, SegmentRow},
    rows::{ReadRows, RowsError, Volume},
    segment_name::SegmentName,
};

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
    /// Set once the snapshot at its beginning is complete.
    has_base: OnceLock<()>,
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
            has_base: OnceLock::new(),
        }
    }

    /// A segment whose store is open already.
    pub(super) fn opened(volume: V, clusterset: Clusterset, name: SegmentName, rows: V::Rows) -> Self {
        let segment = Self::closed(volume, clusterset, name);
        *segment.lock() = Handle::Open(Arc::new(rows));
        segment
    }

    /// One that begins now, with this row: nobody has to open it again to know what it follows.
    pub(super) fn begun(volume: V, clusterset: Clusterset, row: SegmentRow, rows: V::Rows) -> Self {
        let name = SegmentName::After(row.start.epoch, row.start.revision);
        let segment = Self::opened(volume, clusterset, name, rows);
        let _ = segment.row.set(row);
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

    /// The segment before it, if that was read.
    pub(super) fn known_row(&self) -> Option<SegmentRow> {
        self.row.get().copied()
    }

    /// Returns the segment before it, read once; `rows` are its own.
    pub(super) fn row_in(&self, rows: &V::Rows) -> Result<SegmentRow, LogError> {
        if let Some(row) = self.known_row() {
            return Ok(row);
        }
        let row = self.read_row(rows)?;
        Ok(*self.row.get_or_init(|| row))
    }

    /// Returns the segment before it. The store stays open: for a caller that has this segment alone, or writes to it.
    pub(super) fn row(&self) -> Result<SegmentRow, LogError> {
        match self.known_row() {
            Some(row) => Ok(row),
            None => self.row_in(&*self.rows()?),
        }
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

    /// Returns true if it is known that the snapshot which it begins with is complete.
    pub(super) fn is_known_to_have_a_base(&self) -> bool {
        self.has_base.get().is_some()
    }

    /// Returns true if the snapshot that it begins with is complete: then nothing before it is needed. `rows` are its own.
    pub(super) fn has_base_in(&self, rows: &V::Rows) -> Result<bool, LogError> {
        if !self.is_known_to_have_a_base() {
            let Cursor { epoch, revision, .. } = self.row_in(rows)?.start;
            if rows.get(&key::snapshot_marker(epoch, revision))?.is_none() {
                return Ok(false);
            }
            let _ = self.has_base.set(());
        }
        Ok(true)
    }

    /// The same for a caller that has this segment alone, or writes to it: its store stays open.
    pub(super) fn has_base(&self) -> Result<bool, LogError> {
        Ok(self.is_known_to_have_a_base() || self.has_base_in(&*self.rows()?)?)
    }

    /// Bytes that it takes; asked again until it is `sealed`.
    pub(super) fn bytes(&self, sealed: bool) -> u64 {
        let measure = || self.volume.bytes_on_disk(self.name);
        if sealed {
            *self.bytes.get_or_init(measure)
        } else {
            measure()
        }
    }

    /// Returns true if its store is open.
    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        matches!(*self.lock(), Handle::Open(_))
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

/// The predecessor of the first segment: nothing, from the start of its first epoch.
fn first_row(rows: &impl ReadRows, clusterset: &Clusterset) -> Result<SegmentRow, LogError> {
    let missing = || Corruption::new("the epochs' rows", "there is none");
    let epoch = *epochs(rows, clusterset)?.first().ok_or_else(missing)?;
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
