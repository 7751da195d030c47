//! A copy of a log as of one durable position, while events are appended behind it: which segments, and which of their
//! rows. The copy has the rows as they are; its receiver verifies them. It writes nothing.

use std::{ops::ControlFlow, sync::Arc};

use model::{Cursor, Epoch, Revision};

use super::{
    error::LogError,
    key::{self, KeyKind},
    rows::{ReadRows, Volume},
    segment::Segment,
    segment_name::SegmentName,
    segments::Segments,
};

/// The parts of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupPlan {
    /// The position of the last event in it.
    pub up_to: Cursor,
    /// Its segments, oldest first.
    pub segments: Vec<SegmentPlan>,
}

/// A segment of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentPlan {
    /// Name of its directory.
    pub name: String,
    /// True if the snapshot that it begins with was complete when the copy was planned: then it is copied.
    has_base: bool,
}

/// Some rows of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupPage {
    /// Rows by key: key, value.
    pub rows: Vec<(Vec<u8>, Vec<u8>)>,
    /// The key to continue from, if there may be more.
    pub next: Option<Vec<u8>>,
}

impl SegmentPlan {
    /// A segment as it belongs to a copy up to `up_to`; none if it was begun behind that.
    pub(super) fn of<V: Volume>(
        segments: &Segments<V>,
        segment: &Arc<Segment<V>>,
        up_to: Cursor,
    ) -> Result<Option<Self>, LogError> {
        if let SegmentName::After(epoch, revision) = segment.name
            && (epoch, revision) > (up_to.epoch, up_to.revision)
        {
            return Ok(None);
        }
        Ok(Some(Self {
            name: segment.name.to_string(),
            has_base: segments.has_base(segment)?,
        }))
    }

    /// Rows from a key on until about `bytes` of the segment were looked at, those left out that are not to be copied.
    pub(super) fn page(
        &self,
        rows: &impl ReadRows,
        from: &[u8],
        up_to: Cursor,
        bytes: usize,
    ) -> Result<BackupPage, LogError> {
        let (mut copied, mut next, mut looked_at) = (Vec::new(), None, 0);
        rows.scan(from, &[u8::MAX], &mut |key, value| {
            if looked_at >= bytes {
                next = Some(key.to_vec());
                return ControlFlow::Break(());
            }
            looked_at += key.len() + value.len();
            if self.belongs(key, up_to) {
                copied.push((key.to_vec(), value.to_vec()));
            }
            ControlFlow::Continue(())
        })?;
        Ok(BackupPage { rows: copied, next })
    }

    /// Of the snapshots only the one that the segment begins with and the bases of epochs, which never go; another one
    /// may be incomplete, or replaced meanwhile. A row of unknown kind belongs too: verifying finds it.
    fn belongs(&self, key: &[u8], up_to: Cursor) -> bool {
        let is_behind = |epoch: Epoch, revision: Revision| (epoch, revision) > (up_to.epoch, up_to.revision);
        if let Some(epoch) = key::parse_epoch(key) {
            return epoch <= up_to.epoch;
        }
        if let Some((epoch, first, _)) = key::parse_event(key) {
            return !is_behind(epoch, first);
        }
        let of_snapshot = match key::spread_kind(key) {
            Some(KeyKind::SnapshotRow) => {
                key::parse_snapshot_row(key).map(|(epoch, revision, ..)| (epoch, revision))
            }
            Some(KeyKind::SnapshotMarker) => key::parse_snapshot_marker(key),
            _ => None,
        };
        of_snapshot
            .is_none_or(|(epoch, revision)| self.is_base(epoch, revision) && !is_behind(epoch, revision))
    }

    fn is_base(&self, epoch: Epoch, revision: Revision) -> bool {
        let begins_with = SegmentName::After(epoch, revision).to_string() == self.name;
        if begins_with {
            self.has_base
        } else {
            revision == Revision(0)
        }
    }
}
