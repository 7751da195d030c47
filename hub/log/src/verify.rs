//! `tributary-hub log verify`: reads every event and snapshot of every epoch and checks it. It changes no row and
//! repairs nothing; the hub must be stopped, because the store has one owner.

use std::{collections::BTreeMap, ops::ControlFlow, path::Path};

use model::{ChainHash, Clusterset, Epoch, Revision};

use super::{
    PAGE_BYTES_MAX, StoredEvent,
    directory::Directory,
    error::{Corruption, LogError, OpenError},
    history,
    key::{self, KeyKind},
    record,
    rows::{ReadRows, Volume},
    segment::Segment,
    segments::Segments,
    snapshot::{self, SnapshotInfo},
    start,
};

/// Events between two calls of the progress function.
const PROGRESS_EVENTS: u64 = 100_000;
/// Most events that are read at a time.
const PAGE_EVENTS: usize = 16 * 1024;

/// Progress of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The clusterset, as written in the log.
    pub clusterset: String,
    /// The epoch being read.
    pub epoch: Epoch,
    /// The last event read.
    pub revision: Revision,
    /// The epoch's last event.
    pub last: Revision,
}

/// Findings of one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochReport {
    /// The epoch.
    pub epoch: Epoch,
    /// The first revision that is kept.
    pub first: Revision,
    /// Events that are good, from that one on.
    pub events: u64,
    /// Their payload bytes.
    pub payload_bytes: u64,
    /// Number of them that store their fact as the difference to that of an earlier one.
    pub differences: u64,
    /// Revisions of complete snapshots that are good.
    pub snapshots: Vec<Revision>,
}

/// Findings of one clusterset's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogReport {
    /// The clusterset, as written in the log.
    pub clusterset: String,
    /// Number of its segments.
    pub segments: usize,
    /// Its epochs, ascending.
    pub epochs: Vec<EpochReport>,
    /// Every damage found, in the order it was met. Within a run of events the first hides those behind it.
    pub corruptions: Vec<Corruption>,
}

/// Findings of a data directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// One per clusterset.
    pub logs: Vec<LogReport>,
}

impl Report {
    /// True if no damage was found.
    pub fn is_good(&self) -> bool {
        self.logs.iter().all(|log| log.corruptions.is_empty())
    }
}

/// The stored form of an event's fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadKind {
    /// All of it is in the payload.
    Whole,
    /// It is the difference to that of an earlier event.
    Difference,
}

/// Gives the payload of an event of the epoch that is being verified, `None` if it is not kept.
type ReadPayload<'a> = dyn FnMut(Revision) -> Result<Option<Vec<u8>>, LogError> + 'a;

/// Checks of payloads, which the log itself does not read.
pub trait PayloadCheck: Send {
    /// Looks at the next event that is kept of an epoch; `segment_first` is the first revision of it in the same segment.
    ///
    /// # Errors
    ///
    /// [`LogError::Corrupt`] if it is not what was recorded.
    fn check(
        &mut self,
        epoch: Epoch,
        segment_first: Revision,
        event: StoredEvent,
        read: &mut ReadPayload<'_>,
    ) -> Result<PayloadKind, LogError>;
}

/// Takes every payload for good whose hash is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unchecked;

impl PayloadCheck for Unchecked {
    fn check(
        &mut self,
        _: Epoch,
        _: Revision,
        _: StoredEvent,
        _: &mut ReadPayload<'_>,
    ) -> Result<PayloadKind, LogError> {
        Ok(PayloadKind::Whole)
    }
}

/// Verifies everything below a data directory but what is in the payloads.
pub fn verify(data_dir: &Path, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<Report, OpenError> {
    verify_payloads(data_dir, progress, &mut Unchecked)
}

/// Verifies everything below a data directory, payloads as `check` does.
pub fn verify_payloads(
    data_dir: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
    check: &mut dyn PayloadCheck,
) -> Result<Report, OpenError> {
    // On a thread of its own, as every call of the store.
    std::thread::scope(|scope| {
        let verified = scope.spawn(|| {
            let mut report = Report::default();
            for (clusterset, directory) in Directory::open_all(data_dir)? {
                report
                    .logs
                    .push(verify_log(&directory, clusterset, progress, check));
            }
            Ok(report)
        });
        verified
            .join()
            .unwrap_or_else(|cause| std::panic::resume_unwind(cause))
    })
}

/// Verifies one clusterset's log.
pub(super) fn verify_log(
    volume: &impl Volume,
    clusterset: String,
    progress: &mut (dyn FnMut(Progress) + Send),
    check: &mut dyn PayloadCheck,
) -> LogReport {
    let mut report = LogReport {
        clusterset,
        segments: 0,
        epochs: Vec::new(),
        corruptions: Vec::new(),
    };
    if let Err(error) = verify_epochs(volume, &mut report, progress, check) {
        report.corruptions.push(corruption(error));
    }
    report
}

fn corruption(error: LogError) -> Corruption {
    match error {
        LogError::Corrupt(corruption) => corruption,
        other => Corruption::new("the store's files", other),
    }
}

fn verify_epochs<V: Volume>(
    volume: &V,
    report: &mut LogReport,
    progress: &mut (dyn FnMut(Progress) + Send),
    check: &mut dyn PayloadCheck,
) -> Result<(), LogError> {
    let clusterset = clusterset(&report.clusterset)?;
    let segments = open(volume, &clusterset)?;
    report.segments = segments.kept().len();
    for segment in segments.kept() {
        if let Err(error) = segment.row() {
            report.corruptions.push(corruption(error));
        }
    }
    for epoch in segments.epochs()? {
        let mut found = EpochReport {
            epoch,
            first: segments.first_revision(epoch),
            events: 0,
            payload_bytes: 0,
            differences: 0,
            snapshots: Vec::new(),
        };
        if let Err(error) = verify_events(&segments, &mut found, progress, check) {
            report.corruptions.push(corruption(error));
        }
        for info in snapshots(&segments, epoch)? {
            match start::verify_snapshot(&segments, &info) {
                Ok(()) => found.snapshots.push(info.at.revision),
                Err(error) => report.corruptions.push(corruption(error)),
            }
        }
        report.epochs.push(found);
    }
    Ok(())
}

/// The clusterset that a store is named after.
pub fn clusterset(name: &str) -> Result<Clusterset, LogError> {
    let parsed = name.split_once('/');
    let parsed = parsed.and_then(|(domain, name)| Clusterset::new(domain, name).ok());
    let unnamed = || Corruption::new("the store's names", format!("{name:?} names no clusterset"));
    Ok(parsed.ok_or_else(unnamed)?)
}

/// The segments as they are; nothing of an interrupted write is removed.
pub(super) fn open<V: Volume>(volume: &V, clusterset: &Clusterset) -> Result<Segments<V>, LogError> {
    let mut names = volume.segments()?;
    let missing = || Corruption::new("the segments", "there is none");
    loop {
        let name = names.pop().ok_or_else(missing)?;
        let rows = volume.open(name)?;
        // The last one may have been about to be begun.
        if names.is_empty() || !start::is_empty(&rows)? {
            let current = Segment::opened(volume.clone(), clusterset.clone(), name, rows);
            return Ok(Segments::new(volume.clone(), clusterset.clone(), &names, current));
        }
    }
}

/// Every event of an epoch that is kept follows the one before it, and each segment the one before it.
fn verify_events<V: Volume>(
    segments: &Segments<V>,
    found: &mut EpochReport,
    progress: &mut (dyn FnMut(Progress) + Send),
    check: &mut dyn PayloadCheck,
) -> Result<(), LogError> {
    let (epoch, first) = (found.epoch, found.first);
    let last = segments.last_revision(epoch)?;
    let mut before = match first {
        Revision(1) => Some(record::chain_start(segments.clusterset(), epoch)),
        Revision(later) => segments.start_hash(epoch, Revision(later - 1))?,
    };
    let mut starts = BTreeMap::new();
    for segment in segments.kept() {
        // One whose row cannot be read has been reported.
        if let Ok(row) = segment.row() {
            starts.insert((row.start.epoch, row.start.revision), row.start.hash);
        }
    }
    let mut next = first;
    while next <= last {
        // Checks that depend on other events run between pages: a store is not read while it is read.
        let (page, chained) = read_page(segments, epoch, (next, last), before);
        for event in page {
            let (revision, bytes) = (event.revision, event.payload.len());
            (next, before) = (revision.next(), Some(event.hash));
            if starts
                .get(&(epoch, revision))
                .is_some_and(|start| *start != event.hash)
            {
                let what = "the segment behind it follows another event";
                return Err(Corruption::event(epoch, revision, what).into());
            }
            let segment_first = starts.range(..(epoch, revision)).next_back();
            let segment_first = segment_first.filter(|((of, _), _)| *of == epoch);
            let segment_first = segment_first.map_or(Revision(1), |((_, start), _)| start.next());
            let mut read = |revision| payload_at(segments, epoch, revision);
            let kind = check.check(epoch, segment_first, event, &mut read)?;
            found.events += 1;
            found.payload_bytes += bytes as u64;
            found.differences += u64::from(kind == PayloadKind::Difference);
            if revision == last || found.events.is_multiple_of(PROGRESS_EVENTS) {
                progress(Progress {
                    clusterset: segments.clusterset().to_string(),
                    epoch,
                    revision,
                    last,
                });
            }
        }
        chained?;
    }
    Ok(())
}

/// Events from a revision on that fit into a page, and whether those behind them can be read.
fn read_page(
    rows: &impl ReadRows,
    epoch: Epoch,
    (from, last): (Revision, Revision),
    before: Option<ChainHash>,
) -> (Vec<StoredEvent>, Result<(), LogError>) {
    let (mut page, mut bytes) = (Vec::new(), 0);
    let mut take = |revision, hash, payload: &[u8]| {
        bytes += payload.len();
        let payload = payload.to_vec();
        page.push(StoredEvent {
            revision,
            hash,
            payload,
        });
        let is_full = bytes >= PAGE_BYTES_MAX || page.len() >= PAGE_EVENTS;
        if is_full {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let chained = history::walk(rows, epoch, from, last, before, &mut take);
    (page, chained)
}

fn payload_at(rows: &impl ReadRows, epoch: Epoch, revision: Revision) -> Result<Option<Vec<u8>>, LogError> {
    let mut found = None;
    history::walk(rows, epoch, revision, revision, None, &mut |_, _, payload| {
        found = Some(payload.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

fn snapshots(rows: &impl ReadRows, epoch: Epoch) -> Result<Vec<SnapshotInfo>, LogError> {
    let (from, to) = key::epoch_range(KeyKind::SnapshotMarker, epoch);
    let mut revisions = Vec::new();
    rows.scan(&from, &to, &mut |key, _| {
        revisions.extend(key::parse_snapshot_marker(key).map(|(_, revision)| revision));
        ControlFlow::Continue(())
    })?;
    let infos = revisions
        .into_iter()
        .map(|revision| snapshot::newest(rows, epoch, revision));
    infos.filter_map(Result::transpose).collect()
}
