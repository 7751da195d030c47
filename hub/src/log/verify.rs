//! `tributary-hub log verify`: reads every event and snapshot of every epoch and checks it. It changes no row
//! and repairs nothing; the hub must be stopped, for the store has one owner.

use std::{ops::ControlFlow, path::Path};

use shared::model::{Clusterset, Epoch, Revision};

use super::{
    error::{Corruption, LogError, OpenError},
    history,
    key::{self, KeyKind},
    record,
    rows::Rows,
    sled,
    snapshot::{self, SnapshotInfo},
    start,
};

/// Events between two calls of the progress function.
const PROGRESS_EVENTS: u64 = 100_000;

/// How far a verification has come.
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

/// What was found in one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochReport {
    /// The epoch.
    pub epoch: Epoch,
    /// Events that are good, from revision 1 on.
    pub events: u64,
    /// Their payload bytes.
    pub payload_bytes: u64,
    /// Revisions of complete snapshots that are good.
    pub snapshots: Vec<Revision>,
}

/// What was found in one clusterset's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogReport {
    /// The clusterset, as written in the log.
    pub clusterset: String,
    /// Its epochs, ascending.
    pub epochs: Vec<EpochReport>,
    /// Every damage found, in the order it was met. Within a run of events the first hides those behind it.
    pub corruptions: Vec<Corruption>,
}

/// What was found in a data directory.
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

/// Verifies everything below a data directory.
pub fn verify(data_dir: &Path, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<Report, OpenError> {
    // On a thread of its own, as every call of the store.
    std::thread::scope(|scope| {
        let verified = scope.spawn(|| {
            let mut report = Report::default();
            for (clusterset, rows) in sled::open_all(data_dir)? {
                report.logs.push(verify_log(&rows, clusterset, progress));
            }
            Ok(report)
        });
        verified
            .join()
            .unwrap_or_else(|cause| std::panic::resume_unwind(cause))
    })
}

/// Verifies one clusterset's rows.
pub(super) fn verify_log(
    rows: &impl Rows,
    clusterset: String,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> LogReport {
    let mut report = LogReport {
        clusterset,
        epochs: Vec::new(),
        corruptions: Vec::new(),
    };
    if let Err(error) = verify_epochs(rows, &mut report, progress) {
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

fn verify_epochs(
    rows: &impl Rows,
    report: &mut LogReport,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), LogError> {
    let place = "the format row";
    let format = rows
        .get(&key::format())?
        .ok_or_else(|| Corruption::new(place, "it is missing"))?;
    let name = record::decode_format(&format).map_err(|invalid| Corruption::row(place, invalid))?;
    let parsed = name
        .split_once('/')
        .and_then(|(domain, name)| Clusterset::new(domain, name).ok());
    let clusterset = parsed.ok_or_else(|| Corruption::new(place, "it names no clusterset"))?;
    if name != report.clusterset {
        let what = format!("it names {name}, the rows are kept under {}", report.clusterset);
        return Err(Corruption::new(place, what).into());
    }
    for epoch in start::epochs(rows, &clusterset)? {
        let mut found = EpochReport {
            epoch,
            events: 0,
            payload_bytes: 0,
            snapshots: Vec::new(),
        };
        if let Err(error) = verify_events(rows, &clusterset, &mut found, progress) {
            report.corruptions.push(corruption(error));
        }
        for info in snapshots(rows, epoch)? {
            match verify_snapshot(rows, &clusterset, &info) {
                Ok(()) => found.snapshots.push(info.at.revision),
                Err(error) => report.corruptions.push(corruption(error)),
            }
        }
        report.epochs.push(found);
    }
    Ok(())
}

fn verify_events(
    rows: &impl Rows,
    clusterset: &Clusterset,
    found: &mut EpochReport,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), LogError> {
    let epoch = found.epoch;
    let last = history::last_revision(rows, epoch)?;
    let before = Some(record::chain_start(clusterset, epoch));
    history::walk(
        rows,
        epoch,
        Revision(1),
        last,
        before,
        &mut |revision, _, payload| {
            found.events += 1;
            found.payload_bytes += payload.len() as u64;
            if revision == last || found.events.is_multiple_of(PROGRESS_EVENTS) {
                progress(Progress {
                    clusterset: clusterset.to_string(),
                    epoch,
                    revision,
                    last,
                });
            }
            ControlFlow::Continue(())
        },
    )
}

fn verify_snapshot(rows: &impl Rows, clusterset: &Clusterset, info: &SnapshotInfo) -> Result<(), LogError> {
    snapshot::verify(rows, info)?;
    let at_event = history::hash_at(rows, clusterset, info.at.epoch, info.at.revision)?;
    if at_event != Some(info.at.hash) {
        let what = "the event it was taken at is missing or another one";
        return Err(Corruption::snapshot(info.at.epoch, info.at.revision, what).into());
    }
    Ok(())
}

fn snapshots(rows: &impl Rows, epoch: Epoch) -> Result<Vec<SnapshotInfo>, LogError> {
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
