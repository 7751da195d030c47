//! Reading the log beside its writer, from any thread: bounded pages, verified, never beyond the durable head.
//! It writes nothing. Reads run where the store says: on a thread of their own (sled), at once (memory).

use std::{
    ops::ControlFlow,
    sync::{Arc, mpsc},
};

use model::{ChainHash, Cursor, Epoch, Revision};

use super::{
    StoredEvent,
    backup::{BackupPage, BackupPlan, SegmentPlan},
    error::LogError,
    history, record,
    rows::Volume,
    segments::Segments,
    shared_head::SharedHead,
    snapshot::{self, Digest, SnapshotInfo, SnapshotPage},
};

/// Reads that may wait at once; a further one that does not want to wait gets [`LogError::Busy`].
pub const READS_WAITING_MAX: usize = 64;
/// Positions of members that may wait at once to be looked up: as many members come again at once when a network does. The
/// member of a further one gets a snapshot.
pub(super) const CURSORS_WAITING_MAX: usize = 1_024;
/// Most payload bytes of one page, whatever was asked for (a single larger event is a page of its own).
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The bound of one page. A page holds at least one event, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Most events.
    pub events: usize,
    /// Most payload bytes.
    pub bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            events: 4096,
            bytes: 1024 * 1024,
        }
    }
}

/// Some events in order, and the durable head at the time they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Events from the revision asked for; empty if there is none yet.
    pub events: Vec<StoredEvent>,
    /// The log's durable head.
    pub head: Cursor,
}

/// Queries of a log's history.
pub trait History {
    /// The durable head.
    fn head(&self) -> Cursor;
    /// The epochs the log holds, ascending; the last is the current one.
    fn epochs(&self) -> Result<Vec<Epoch>, LogError>;
    /// Durable events of an epoch from a revision on; 0 is the first one that is kept. One that is not kept any more is
    /// [`LogError::Forgotten`].
    fn read(&self, epoch: Epoch, from: Revision, budget: Budget) -> Result<Page, LogError>;
    /// The first revision of an epoch that is kept: 1, unless the segment that had it was removed.
    fn first_revision(&self, epoch: Epoch) -> Revision;
    /// The chain hash at a durable revision, `None` if the log does not have it, or not any more: a cursor of the
    /// current epoch whose hash differs proves that the log was rewound.
    fn hash_at(&self, epoch: Epoch, revision: Revision) -> Result<Option<ChainHash>, LogError>;
    /// The newest complete snapshot of an epoch at or before a revision.
    fn snapshot(&self, epoch: Epoch, up_to: Revision) -> Result<Option<SnapshotInfo>, LogError>;
    /// The parts of a copy of the log made now.
    fn backup(&self) -> Result<BackupPlan, LogError>;
    /// Rows of a segment of such a copy from a key on.
    fn backup_page(
        &self,
        segment: &SegmentPlan,
        from: &[u8],
        up_to: Cursor,
        bytes: usize,
    ) -> Result<BackupPage, LogError>;
    /// Rows of a snapshot from a number on. Pages are not verified one by one: see [`LogReader::replay`].
    fn snapshot_page(&self, snapshot: &SnapshotInfo, from: u32) -> Result<SnapshotPage, LogError>;
}

/// The segments seen by a reader.
pub(super) struct DurableHistory<V: Volume> {
    segments: Segments<V>,
    shared: Arc<SharedHead>,
}

impl<V: Volume> DurableHistory<V> {
    pub(super) fn new(segments: Segments<V>, shared: Arc<SharedHead>) -> Self {
        Self { segments, shared }
    }

    /// Returns true if the event at a position was removed with its segment. The event that a segment follows is known,
    /// though removed.
    fn is_forgotten(&self, epoch: Epoch, revision: Revision) -> bool {
        (epoch, revision) <= self.segments.start()
    }

    fn forgotten(&self, epoch: Epoch, asked: Revision) -> LogError {
        let oldest = self.segments.first_revision(epoch);
        LogError::Forgotten { epoch, asked, oldest }
    }

    fn hash_before(&self, epoch: Epoch, revision: Revision) -> Result<Option<ChainHash>, LogError> {
        if revision == Revision(1) {
            return Ok(Some(record::chain_start(self.segments.clusterset(), epoch)));
        }
        self.segments.start_hash(epoch, Revision(revision.0 - 1))
    }

    /// A page of events up to `last`; none if `from` is behind it.
    fn read_kept(
        &self,
        epoch: Epoch,
        from: Revision,
        last: Revision,
        budget: Budget,
    ) -> Result<Vec<StoredEvent>, LogError> {
        if self.is_forgotten(epoch, from) {
            return Err(self.forgotten(epoch, from));
        }
        if from > last {
            return Ok(Vec::new());
        }
        let read = self.read_page(epoch, from, last, budget);
        // Its segment may have gone while it was read.
        match read {
            Err(_) if self.is_forgotten(epoch, from) => Err(self.forgotten(epoch, from)),
            read => read,
        }
    }

    fn read_page(
        &self,
        epoch: Epoch,
        from: Revision,
        last: Revision,
        budget: Budget,
    ) -> Result<Vec<StoredEvent>, LogError> {
        let before = self.hash_before(epoch, from)?;
        let bytes_max = budget.bytes.min(PAGE_BYTES_MAX);
        let (mut events, mut bytes) = (Vec::new(), 0);
        let mut take = |revision, hash, payload: &[u8]| {
            let full = events.len() >= budget.events || bytes + payload.len() > bytes_max;
            if full && !events.is_empty() {
                return ControlFlow::Break(());
            }
            bytes += payload.len();
            let payload = payload.to_vec();
            events.push(StoredEvent {
                revision,
                hash,
                payload,
            });
            ControlFlow::Continue(())
        };
        history::walk(&self.segments, epoch, from, last, before, &mut take)?;
        Ok(events)
    }

    fn last_durable(&self, epoch: Epoch, head: Cursor) -> Result<Revision, LogError> {
        if epoch == head.epoch {
            return Ok(head.revision);
        }
        if epoch > head.epoch || !self.epochs()?.contains(&epoch) {
            return Err(LogError::Refused(format!(
                "this log has no epoch {epoch}; its current one is {}",
                head.epoch
            )));
        }
        self.segments.last_revision(epoch)
    }
}

impl<V: Volume> History for DurableHistory<V> {
    fn head(&self) -> Cursor {
        self.shared.head()
    }

    fn epochs(&self) -> Result<Vec<Epoch>, LogError> {
        let current = self.head().epoch;
        let mut epochs = self.segments.epochs()?;
        epochs.retain(|&epoch| epoch <= current);
        Ok(epochs)
    }

    fn read(&self, epoch: Epoch, from: Revision, budget: Budget) -> Result<Page, LogError> {
        let head = self.head();
        let last = self.last_durable(epoch, head)?;
        if from != Revision(0) {
            let events = self.read_kept(epoch, from, last, budget)?;
            return Ok(Page { events, head });
        }
        let mut oldest = self.segments.first_revision(epoch);
        let events = loop {
            let read = self.read_kept(epoch, oldest, last, budget);
            let tried = std::mem::replace(&mut oldest, self.segments.first_revision(epoch));
            // The oldest may have gone while it was read: then another one is oldest, as long as any is kept.
            if !matches!(read, Err(LogError::Forgotten { .. })) || oldest == tried {
                break read?;
            }
        };
        Ok(Page { events, head })
    }

    fn first_revision(&self, epoch: Epoch) -> Revision {
        self.segments.first_revision(epoch)
    }

    fn hash_at(&self, epoch: Epoch, revision: Revision) -> Result<Option<ChainHash>, LogError> {
        let head = self.head();
        if epoch == head.epoch && revision > head.revision {
            return Ok(None);
        }
        if epoch != head.epoch && !self.epochs()?.contains(&epoch) {
            return Ok(None);
        }
        if let Some(hash) = self.segments.start_hash(epoch, revision)? {
            return Ok(Some(hash));
        }
        if self.is_forgotten(epoch, revision) {
            return Ok(None);
        }
        match history::hash_at(&self.segments, self.segments.clusterset(), epoch, revision) {
            Err(_) if self.is_forgotten(epoch, revision) => Ok(None),
            answer => answer,
        }
    }

    fn snapshot(&self, epoch: Epoch, up_to: Revision) -> Result<Option<SnapshotInfo>, LogError> {
        snapshot::newest(&self.segments, epoch, up_to)
    }

    fn backup(&self) -> Result<BackupPlan, LogError> {
        // The position first: what is sealed since then is left out.
        let up_to = self.head();
        let kept = self.segments.kept();
        let plans = kept
            .iter()
            .map(|segment| SegmentPlan::of(&self.segments, segment, up_to));
        let segments = plans.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        Ok(BackupPlan { up_to, segments })
    }

    fn backup_page(
        &self,
        segment: &SegmentPlan,
        from: &[u8],
        up_to: Cursor,
        bytes: usize,
    ) -> Result<BackupPage, LogError> {
        let gone = || {
            let why = format!(
                "the segment {} went while the log was copied: begin again",
                segment.name
            );
            LogError::Refused(why)
        };
        let mut kept = self.segments.kept().into_iter();
        let found = kept.find(|kept| kept.name.to_string() == segment.name);
        let rows = self.segments.open(&found.ok_or_else(gone)?)?;
        segment.page(&*rows, from, up_to, bytes.min(PAGE_BYTES_MAX))
    }

    fn snapshot_page(&self, snapshot: &SnapshotInfo, from: u32) -> Result<SnapshotPage, LogError> {
        snapshot::page(&self.segments, snapshot, from, Budget::default().bytes).map_err(|error| {
            let Cursor { epoch, revision, .. } = snapshot.at;
            match snapshot::newest(&self.segments, epoch, revision) {
                Ok(Some(there)) if there == *snapshot => error,
                Ok(_) => LogError::Refused("a newer snapshot has replaced this one: read again".into()),
                Err(error) => error,
            }
        })
    }
}

/// A question to a log's history, to be run where reads run.
pub(super) type ReadJob = Box<dyn FnOnce(&dyn History) + Send>;

/// The place where reads run.
pub(super) trait ReadQueue: Send + Sync {
    /// Takes a job, or says [`LogError::Busy`].
    fn try_submit(&self, job: ReadJob) -> Result<(), LogError>;
    /// Takes a job, waiting while the queue is full.
    fn submit(&self, job: ReadJob) -> Result<(), LogError>;
}

/// An item of [`LogReader::replay`], in this order: rows of one snapshot, then events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayItem {
    /// The snapshot that the rows belong to; comes once and first, if there is one.
    Snapshot(SnapshotInfo),
    /// A row of it.
    Row(Vec<u8>),
    /// An event after it.
    Event(StoredEvent),
}

/// A handle for reading a log; clones read the same log.
#[derive(Clone)]
pub struct LogReader(Arc<dyn ReadQueue>);

/// An answer that is on its way.
struct Answer<T>(mpsc::Receiver<Result<T, LogError>>);

impl<T> Answer<T> {
    fn wait(self) -> Result<T, LogError> {
        self.0.recv().unwrap_or(Err(LogError::Closed))
    }
}

impl LogReader {
    pub(super) fn new(queue: impl ReadQueue + 'static) -> Self {
        Self(Arc::new(queue))
    }

    /// Asks from async code; never blocks its thread. A full queue is [`LogError::Busy`].
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn History) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.0.try_submit(Box::new(move |history| {
            // A caller that went away does not want the answer.
            let _ = sender.send(question(history));
        }))?;
        receiver.await.unwrap_or(Err(LogError::Closed))
    }

    /// Asks from a thread that may block.
    pub fn wait<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn History) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        self.begin(question)?.wait()
    }

    /// Has a question answered where reads run, while the caller does something else.
    fn begin<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn History) -> Result<T, LogError> + Send + 'static,
    ) -> Result<Answer<T>, LogError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.0.submit(Box::new(move |history| {
            // A reader that stopped waiting has found an error before.
            let _ = sender.send(question(history));
        }))?;
        Ok(Answer(receiver))
    }

    fn begin_page(&self, epoch: Epoch, from: Revision) -> Result<Answer<Page>, LogError> {
        self.begin(move |history| history.read(epoch, from, Budget::default()))
    }

    /// Everything needed to rebuild the state at the durable head of the current epoch: the newest snapshot's
    /// rows, then the events after it. Blocks. On an error, throw away what was built: a snapshot's digest
    /// is known to match only after its last row.
    pub fn replay<E: From<LogError>>(
        &self,
        mut take: impl FnMut(ReplayItem) -> Result<(), E>,
    ) -> Result<Cursor, E> {
        let head = self.wait(|history| Ok(history.head()))?;
        self.replay_to(head.epoch, head.revision, &mut take)?;
        Ok(head)
    }

    /// As [`LogReader::replay`], for the state at any revision of any epoch the log holds.
    pub fn replay_to<E: From<LogError>>(
        &self,
        epoch: Epoch,
        to: Revision,
        take: &mut impl FnMut(ReplayItem) -> Result<(), E>,
    ) -> Result<(), E> {
        // If its segment is gone, the kept part of the epoch begins with a snapshot.
        let mut from = Revision(1);
        if let Some(info) = self.wait(move |history| history.snapshot(epoch, to))? {
            self.replay_snapshot(info, take)?;
            from = info.at.revision.next();
        }
        let mut ahead = (from <= to).then(|| self.begin_page(epoch, from)).transpose()?;
        while let Some(reading) = ahead {
            let page = reading.wait()?;
            let Some(last) = page.events.last() else {
                let refused = format!("revision {to} of epoch {epoch} is behind the log's last one");
                return Err(LogError::Refused(refused).into());
            };
            // The next page is read while this one is taken: one ahead, so that the bound on memory stays.
            let next = last.revision.next();
            ahead = (next <= to).then(|| self.begin_page(epoch, next)).transpose()?;
            for event in page.events.into_iter().filter(|event| event.revision <= to) {
                take(ReplayItem::Event(event))?;
            }
        }
        Ok(())
    }

    fn replay_snapshot<E: From<LogError>>(
        &self,
        info: SnapshotInfo,
        take: &mut impl FnMut(ReplayItem) -> Result<(), E>,
    ) -> Result<(), E> {
        take(ReplayItem::Snapshot(info))?;
        let mut digest = Digest::default();
        let mut next = Some(0);
        while let Some(from) = next {
            let page = self.wait(move |history| history.snapshot_page(&info, from))?;
            for row in page.rows {
                digest.add(&row);
                take(ReplayItem::Row(row))?;
            }
            next = page.next;
        }
        Ok(digest.check(&info).map_err(LogError::from)?)
    }
}
