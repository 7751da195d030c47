//! The segments of a log, read as if they were one store: each has the events behind its start and the snapshots from
//! it on, so that keys say where a row is. It decides nothing about which segments there should be.

use std::{
    collections::{BTreeSet, VecDeque},
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use model::{ChainHash, Clusterset, Epoch, Revision};

use super::{
    epochs::epochs,
    error::LogError,
    history,
    key::{self, KeyKind},
    record::SegmentRow,
    rows::{ReadRows, Row, RowsError, Visit, Volume},
    segment::Segment,
    segment_name::SegmentName,
};

/// Sealed segments that are open at once; another one that is read closes the one that was not read for longest.
const SEALED_OPEN_MAX: usize = 4;

/// The segments that are kept. Clones are handles of the same ones.
pub(super) struct Segments<V: Volume> {
    volume: V,
    clusterset: Clusterset,
    list: Arc<Mutex<List<V>>>,
}

impl<V: Volume> Clone for Segments<V> {
    fn clone(&self) -> Self {
        Self {
            volume: self.volume.clone(),
            clusterset: self.clusterset.clone(),
            list: Arc::clone(&self.list),
        }
    }
}

struct List<V: Volume> {
    /// Ascending; the last one is the current one. Never empty.
    kept: Vec<Arc<Segment<V>>>,
    /// No longer kept, and not removed yet, because somebody may read them.
    retired: Vec<Arc<Segment<V>>>,
    /// The segments read last, the newest at the end.
    read: VecDeque<Arc<Segment<V>>>,
}

/// A part of a range of keys, and the segment that has its rows.
struct Part<V: Volume> {
    segment: Arc<Segment<V>>,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl<V: Volume> Segments<V> {
    /// Takes the segments of a volume by their names, ascending; the last one is open already.
    pub(super) fn new(
        volume: V,
        clusterset: Clusterset,
        sealed: &[SegmentName],
        current: Segment<V>,
    ) -> Self {
        let closed = |&name| Segment::closed(volume.clone(), clusterset.clone(), name);
        let sealed = sealed.iter().map(closed);
        let list = List {
            kept: sealed.chain([current]).map(Arc::new).collect(),
            retired: Vec::new(),
            read: VecDeque::new(),
        };
        Self {
            volume,
            clusterset,
            list: Arc::new(Mutex::new(list)),
        }
    }

    fn list(&self) -> MutexGuard<'_, List<V>> {
        // Nothing panics while it holds the lock.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn volume(&self) -> &V {
        &self.volume
    }

    pub(super) fn clusterset(&self) -> &Clusterset {
        &self.clusterset
    }

    /// All that are kept, ascending.
    pub(super) fn kept(&self) -> Vec<Arc<Segment<V>>> {
        self.list().kept.clone()
    }

    /// The one that is written to.
    pub(super) fn current(&self) -> Arc<Segment<V>> {
        let list = self.list();
        Arc::clone(list.kept.last().expect("a log has a segment"))
    }

    /// Makes a new segment the current one.
    pub(super) fn push(&self, segment: Segment<V>) {
        let mut list = self.list();
        let sealed = list.kept.last().map(Arc::clone);
        list.kept.push(Arc::new(segment));
        list.read.extend(sealed);
    }

    /// Stops keeping the oldest `count`. Present readers continue.
    pub(super) fn retire(&self, count: usize) {
        let list = &mut *self.list();
        list.retired.extend(list.kept.drain(..count));
    }

    /// Removes what is not kept any more from the volume, but what somebody still reads: that another time, and so what is
    /// left when `goes_on` says no.
    pub(super) fn remove_retired(&self, goes_on: &dyn Fn() -> bool) -> Result<(), RowsError> {
        let retired = std::mem::take(&mut self.list().retired);
        for (index, segment) in retired.iter().enumerate() {
            let removed = if goes_on() { segment.remove() } else { Ok(false) };
            match removed {
                Ok(true) => {}
                // Oldest first: what is there after a crash has no gap.
                waiting => {
                    self.list().retired.splice(0..0, retired[index..].iter().cloned());
                    return waiting.map(drop);
                }
            }
        }
        Ok(())
    }

    /// The position that the oldest event which is kept follows.
    pub(super) fn start(&self) -> (Epoch, Revision) {
        let list = self.list();
        match list.kept.first().map(|oldest| oldest.name) {
            Some(SegmentName::After(epoch, revision)) => (epoch, revision),
            _ => (Epoch::default(), Revision(0)),
        }
    }

    /// The first revision of an epoch that is kept, if any is.
    pub(super) fn first_revision(&self, epoch: Epoch) -> Revision {
        match self.start() {
            (first, revision) if first == epoch => revision.next(),
            _ => Revision(1),
        }
    }

    /// The chain hash at a position, if a segment begins behind it.
    pub(super) fn start_hash(&self, epoch: Epoch, revision: Revision) -> Result<Option<ChainHash>, LogError> {
        let name = SegmentName::After(epoch, revision);
        match self.kept().into_iter().find(|segment| segment.name == name) {
            Some(segment) => Ok(Some(self.row(&segment)?.start.hash)),
            None => Ok(None),
        }
    }

    /// The epochs that are kept, wholly or in part, ascending.
    pub(super) fn epochs(&self) -> Result<Vec<Epoch>, LogError> {
        let kept = self.kept();
        let mut found = BTreeSet::new();
        for (index, segment) in kept.iter().enumerate() {
            let next = kept.get(index + 1).map(|next| next.name);
            let first = match (segment.name, next) {
                (SegmentName::After(first, _), Some(SegmentName::After(last, _))) if first == last => first,
                _ => {
                    let begun = epochs(&*self.open(segment)?, &self.clusterset)?;
                    found.extend(begun);
                    self.row(segment)?.start.epoch
                }
            };
            found.insert(first);
        }
        Ok(found.into_iter().collect())
    }

    /// The revision of an epoch's last event, 0 if there is none.
    pub(super) fn last_revision(&self, epoch: Epoch) -> Result<Revision, LogError> {
        let (from, to) = key::epoch_range(KeyKind::Event, epoch);
        let Some(Part { segment, .. }) = self.parts(&from, &to).pop() else {
            return Ok(Revision(0));
        };
        let last = history::last_revision(&*self.open(&segment)?, epoch)?;
        let before = match segment.name {
            SegmentName::After(first, revision) if first == epoch => revision,
            _ => Revision(0),
        };
        Ok(last.max(before))
    }

    /// Returns the segment before one. Its store is opened for it at most once, as one that is read.
    pub(super) fn row(&self, segment: &Arc<Segment<V>>) -> Result<SegmentRow, LogError> {
        match segment.known_row() {
            Some(row) => Ok(row),
            None => segment.row_in(&*self.open(segment)?),
        }
    }

    /// Returns true if the snapshot that a segment begins with is complete: then nothing before it is needed.
    pub(super) fn has_base(&self, segment: &Arc<Segment<V>>) -> Result<bool, LogError> {
        if segment.is_known_to_have_a_base() {
            return Ok(true);
        }
        segment.has_base_in(&*self.open(segment)?)
    }

    /// Opens a segment to read it, and closes what was not read for longest. Whatever reads among all segments opens them here:
    /// a store takes megabytes, and a thread.
    pub(super) fn open(&self, segment: &Arc<Segment<V>>) -> Result<Arc<V::Rows>, RowsError> {
        let rows = segment.rows()?;
        let mut list = self.list();
        list.read.retain(|read| read.name != segment.name);
        // The current one stays open for the writer, and joins the others once it is sealed.
        if list
            .kept
            .last()
            .is_some_and(|current| current.name == segment.name)
        {
            return Ok(rows);
        }
        list.read.push_back(Arc::clone(segment));
        let surplus = list.read.len().saturating_sub(SEALED_OPEN_MAX);
        let unread: Vec<_> = list.read.drain(..surplus).collect();
        drop(list);
        // One that is in use stays open until it is read again.
        for segment in unread {
            segment.close();
        }
        Ok(rows)
    }

    /// A range of keys in parts, each with the segment that has its rows. Everything that is not spread over segments
    /// is the current one's.
    fn parts(&self, from: &[u8], to: &[u8]) -> Vec<Part<V>> {
        let kept = self.kept();
        let Some(kind) = key::spread_kind(from) else {
            let whole = kept.last().map(|segment| Part {
                segment: Arc::clone(segment),
                from: from.to_vec(),
                to: to.to_vec(),
            });
            return whole.into_iter().collect();
        };
        let (kind_from, kind_to) = key::kind_range(kind);
        let starts = kept.iter().map(|segment| match segment.name {
            SegmentName::First => kind_from.clone(),
            SegmentName::After(epoch, revision) => key::segment_start(kind, epoch, revision),
        });
        let mut starts: Vec<_> = starts.collect();
        starts.push(kind_to);
        let parts = kept
            .into_iter()
            .zip(starts.windows(2))
            .map(|(segment, bounds)| Part {
                segment,
                from: bounds[0].as_slice().max(from).to_vec(),
                to: bounds[1].as_slice().min(to).to_vec(),
            });
        parts.filter(|part| part.from < part.to).collect()
    }
}

impl<V: Volume> ReadRows for Segments<V> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, RowsError> {
        let behind = [key, &[0]].concat();
        match self.parts(key, &behind).pop() {
            Some(part) => self.open(&part.segment)?.get(key),
            None => Ok(None),
        }
    }

    fn last(&self, from: &[u8], to: &[u8]) -> Result<Option<Row>, RowsError> {
        for part in self.parts(from, to).into_iter().rev() {
            let rows = self.open(&part.segment)?;
            if let Some(last) = rows.last(&part.from, &part.to)? {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), RowsError> {
        let mut flow = ControlFlow::Continue(());
        for part in self.parts(from, to) {
            let rows = self.open(&part.segment)?;
            rows.scan(&part.from, &part.to, &mut |key, value| {
                flow = visit(key, value);
                flow
            })?;
            if flow == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use model::UnixMillis;

    use super::*;
    use crate::{Batch, Log, MemoryDisk, MemoryLog, Retention, backup::SegmentPlan, retention::Keeper};

    const SEGMENTS: u64 = 24;

    /// Many segments, as a log has them that was just opened, and its head.
    fn reopened() -> (Segments<MemoryDisk>, model::Cursor) {
        let (disk, epoch) = (MemoryDisk::default(), Epoch::default().next(UnixMillis(1_000), 7));
        let clusterset = Clusterset::new("example.org", "default").expect("a clusterset");
        let mut log = MemoryLog::open(&disk, &clusterset, epoch).expect("it opens");
        for number in 0..SEGMENTS {
            let batch = Batch::new(log.head(), vec![b"event".to_vec()]).expect("a batch");
            log.append_and_wait(batch).expect("durable");
            let rows = Box::new(std::iter::once(b"state".to_vec()));
            log.seal_and_wait(UnixMillis(2_000 + number), rows)
                .expect("sealed");
        }
        let head = log.head();
        drop(log);
        let names = Volume::segments(&disk).expect("there");
        let (current, sealed) = names.split_last().expect("some");
        let rows = Volume::open(&disk, *current).expect("there");
        let current = Segment::opened(disk.clone(), clusterset.clone(), *current, rows);
        (Segments::new(disk, clusterset, sealed, current), head)
    }

    #[track_caller]
    fn few_are_open(segments: &Segments<MemoryDisk>) {
        let open = segments.kept().iter().filter(|segment| segment.is_open()).count();
        assert!(open <= SEALED_OPEN_MAX + 1, "{open} stores are open");
    }

    /// A store takes megabytes and a thread: a copy of a long history must not take all of them at once.
    #[test]
    fn a_copy_that_is_planned_and_history_that_goes_open_few_stores_at_once() {
        let (segments, head) = reopened();
        for segment in segments.kept() {
            let plan = SegmentPlan::of(&segments, &segment, head).expect("it is whole");
            assert!(plan.is_some());
            few_are_open(&segments);
        }
        let (segments, _) = reopened();
        assert_eq!(segments.kept().len() as u64, SEGMENTS + 1);
        let by_age = Retention {
            age_millis: 1_000,
            bytes: u64::MAX,
        };
        let keeper = Keeper::new(segments.clone());
        keeper.retain(&by_age, UnixMillis(2_000)).expect("it looks");
        few_are_open(&segments);
        let all = Retention {
            age_millis: 0,
            ..by_age
        };
        keeper.retain(&all, UnixMillis(9_000)).expect("they go");
        assert_eq!(segments.kept().len(), 1);
    }
}
