//! Decides when a segment of the log is full. Pure: sizes and the time are arguments.

use model::{Cursor, UnixMillis};

use crate::bounds::Bounds;
use event_log::Stats;

/// Least number of segments that the retained history consists of, so that removing one removes a small part.
const SEGMENTS_KEPT: u64 = 8;
/// A segment begins with a snapshot; it is not sealed before it takes so many times as much.
const SNAPSHOTS_PER_SEGMENT: u64 = 4;

/// Returns true if the current segment is to be sealed at `head`: it is large, or too old for retention to remove it in
/// time. An empty segment is never sealed, nor one whose epoch has no event yet.
pub(super) fn is_full(bounds: Bounds, stats: &Stats, head: Cursor, now: UnixMillis) -> bool {
    let Bounds {
        segment_bytes,
        retention,
        ..
    } = bounds;
    let bytes = segment_bytes
        .min(retention.bytes / SEGMENTS_KEPT)
        .max(stats.snapshot_bytes.saturating_mul(SNAPSHOTS_PER_SEGMENT));
    let age = now.0.saturating_sub(stats.segment_began_at.0);
    let is_old = age >= retention.age_millis / SEGMENTS_KEPT;
    let has_events = head != stats.segment_start && head.revision.0 > 0;
    has_events && (stats.segment_bytes >= bytes || is_old)
}

#[cfg(test)]
mod tests {
    use model::{Epoch, Revision};

    use super::*;
    use event_log::Retention;

    const BOUNDS: fn() -> Bounds = || Bounds {
        segment_bytes: 1_000,
        retention: Retention {
            age_millis: 8_000,
            bytes: 80_000,
        },
        ..Bounds::default()
    };

    fn full(segment_bytes: u64, snapshot_bytes: u64, now: u64) -> bool {
        let stats = Stats {
            segment_bytes,
            snapshot_bytes,
            segment_began_at: UnixMillis(50),
            ..Stats::default()
        };
        let head = Cursor {
            revision: Revision(1),
            ..Cursor::default()
        };
        let epoch_begun = Cursor {
            epoch: Epoch::default().next(UnixMillis(1), 1),
            ..Cursor::default()
        };
        for nothing_happened in [stats.segment_start, epoch_begun] {
            assert!(!is_full(BOUNDS(), &stats, nothing_happened, UnixMillis(now)));
        }
        is_full(BOUNDS(), &stats, head, UnixMillis(now))
    }

    #[test]
    fn a_segment_with_events_is_full_by_bytes_or_by_age() {
        assert!(!full(999, 0, 50));
        assert!(full(1_000, 0, 50));
        assert!(
            !full(1_000, 251, 50),
            "the next one would begin with a quarter of it"
        );
        assert!(!full(0, 0, 1_049));
        assert!(full(0, 0, 1_050), "an eighth of what is kept");
        assert!(!full(0, 0, 0), "a clock that went back says nothing");
    }

    #[test]
    fn little_that_is_kept_is_kept_in_small_segments() {
        let bounds = Bounds {
            retention: Retention {
                bytes: 800,
                ..BOUNDS().retention
            },
            ..BOUNDS()
        };
        let stats = Stats {
            segment_bytes: 100,
            ..Stats::default()
        };
        let head = Cursor {
            revision: Revision(1),
            ..Cursor::default()
        };
        assert!(is_full(bounds, &stats, head, UnixMillis(0)));
    }
}
