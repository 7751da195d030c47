//! The parts of a log on disk, from the beginning of each segment, and a few of its events. It changes nothing.

use std::{ops::ControlFlow, path::Path};

use model::{Clusterset, Cursor, Epoch, Revision, UnixMillis};

use super::{
    StoredEvent,
    directory::{self, Directory},
    epochs::current_epoch,
    error::{LogError, OpenError},
    history,
    rows::Volume,
    segments::Segments,
    verify,
};

/// Number of newest events that a look samples.
pub const NEWEST_EVENTS_MAX: u64 = 1_000;

/// A log on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// The clusterset.
    pub clusterset: Clusterset,
    /// Its segments, the current one last.
    pub segments: Vec<SegmentContents>,
    /// The current epoch and its last revision.
    pub head: (Epoch, Revision),
    /// The first event of the current epoch that is kept, if there is one.
    pub first: Option<StoredEvent>,
    /// The newest ones of it, at most [`NEWEST_EVENTS_MAX`], in order; none if they cannot be read.
    pub newest: Vec<StoredEvent>,
}

/// A segment of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentContents {
    /// Name of its directory.
    pub name: String,
    /// The position that its first event follows.
    pub start: Cursor,
    /// Time at which it was begun.
    pub began_at: UnixMillis,
    /// Bytes that it takes.
    pub bytes: u64,
    /// True if the snapshot that it begins with is complete.
    pub has_base: bool,
}

/// The logs below the data directory of a hub that is stopped.
pub fn contents(data_dir: &Path) -> Result<Vec<Contents>, OpenError> {
    // On a thread of its own, as every call of the store.
    std::thread::scope(|scope| {
        let looked = scope.spawn(|| {
            let logs = Directory::open_all(data_dir)?.into_iter();
            let looked = logs.map(|(name, directory)| {
                look(&directory, &name).map_err(|error| directory::contents_error(data_dir, error))
            });
            looked.collect()
        });
        looked
            .join()
            .unwrap_or_else(|cause| std::panic::resume_unwind(cause))
    })
}

fn look<V: Volume>(volume: &V, name: &str) -> Result<Contents, LogError> {
    let clusterset = verify::clusterset(name)?;
    let segments = verify::open(volume, &clusterset)?;
    let kept = segments.kept();
    let described = kept.iter().map(|segment| {
        let row = segment.row()?;
        let described = SegmentContents {
            name: segment.name.to_string(),
            start: row.start,
            began_at: row.began_at,
            bytes: segment.bytes(false),
            has_base: segment.has_base()?,
        };
        segment.close();
        Ok(described)
    });
    let described = described.collect::<Result<Vec<_>, LogError>>()?;
    let current = segments.current();
    let epoch = current_epoch(&*current.rows()?, &clusterset, current.row()?.start.epoch)?;
    let last = segments.last_revision(epoch)?;
    let first = segments.first_revision(epoch);
    let newest = Revision(last.next().0.saturating_sub(NEWEST_EVENTS_MAX)).max(first);
    Ok(Contents {
        clusterset,
        segments: described,
        head: (epoch, last),
        // A look at a damaged log shows its content nevertheless; verify names the damage.
        first: events(&segments, epoch, first, first.min(last))
            .unwrap_or_default()
            .pop(),
        newest: events(&segments, epoch, newest, last).unwrap_or_default(),
    })
}

/// The events `from..=to` of an epoch.
fn events<V: Volume>(
    segments: &Segments<V>,
    epoch: Epoch,
    from: Revision,
    to: Revision,
) -> Result<Vec<StoredEvent>, LogError> {
    let mut events = Vec::new();
    history::walk(segments, epoch, from, to, None, &mut |revision, hash, payload| {
        let payload = payload.to_vec();
        events.push(StoredEvent {
            revision,
            hash,
            payload,
        });
        ControlFlow::Continue(())
    })?;
    Ok(events)
}
