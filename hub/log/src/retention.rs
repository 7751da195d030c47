//! Chooses the segments to remove: the oldest, as wholes, by age and by the bytes of all. Time is an argument. A keeper
//! removes them while appends go on.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use model::UnixMillis;

use super::{error::LogError, rows::Volume, segments::Segments};

/// Removes what is not to be kept. To close a store of a gigabyte, to open one and to delete its files takes up to seconds,
/// in which nobody waits for it who appends.
pub(super) struct Keeper<V: Volume> {
    segments: Segments<V>,
    ending: Arc<AtomicBool>,
}

impl<V: Volume> Keeper<V> {
    pub(super) fn new(segments: Segments<V>) -> Self {
        let ending = Arc::default();
        Self { segments, ending }
    }

    /// Once it is set, no further segment is removed: closing the log waits for one at most.
    pub(super) fn ending(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.ending)
    }

    /// Removes the oldest segments that are not to be kept, and that nothing which is kept needs; what could not be removed
    /// the last time too.
    pub(super) fn retain(&self, retention: &Retention, now: UnixMillis) -> Result<(), LogError> {
        let count = removable(&self.segments, retention, now)?;
        if count > 0 {
            self.segments.retire(count);
        }
        let goes_on = || !self.ending.load(Ordering::Relaxed);
        Ok(self.segments.remove_retired(&goes_on)?)
    }
}

/// Bounds of the retained history. The current segment is always kept, with everything that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Milliseconds for which an event is kept, counted from when it was recorded; it goes with its whole segment.
    pub age_millis: u64,
    /// Bytes on disk above which the oldest segments go.
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            age_millis: 7 * 24 * 60 * 60 * 1000,
            bytes: 10 * 1000 * 1000 * 1000,
        }
    }
}

/// Number of the oldest segments to remove. The retained log begins with a complete snapshot: a segment whose snapshot
/// was never completed needs the one before it, and goes or stays with it.
fn removable<V: Volume>(
    segments: &Segments<V>,
    retention: &Retention,
    now: UnixMillis,
) -> Result<usize, LogError> {
    let kept = segments.kept();
    let Some((current, sealed)) = kept.split_last() else {
        return Ok(0);
    };
    let sizes = sealed.iter().map(|segment| segment.bytes(true));
    let mut bytes = current.bytes(false) + sizes.sum::<u64>();
    let (mut removable, mut freed) = (0, 0);
    for (index, (segment, next)) in sealed.iter().zip(&kept[1..]).enumerate() {
        let is_old = || Ok::<_, LogError>(age(now, segments.row(next)?.began_at) >= retention.age_millis);
        if bytes - freed <= retention.bytes && !is_old()? {
            break;
        }
        freed += segment.bytes(true);
        if segments.has_base(next)? {
            removable = index + 1;
            (bytes, freed) = (bytes - freed, 0);
        }
    }
    Ok(removable)
}

/// A segment's events were recorded before the next one began.
fn age(now: UnixMillis, next_began_at: UnixMillis) -> u64 {
    now.0.saturating_sub(next_began_at.0)
}
