//! Owns: the writer's looks at the disk under its log: what history goes, and whether growth is refused.
//! Never: judges how much room is enough; that is `disk_room`.

use super::{DiskRoom, Moment, Writer};
use event_log::{Space, Stats};

/// Between two looks at which segments of the log are not to be kept.
pub(super) const RETAIN_INTERVAL_MILLIS: u64 = 1_000;
/// Segments that are being removed are waited for so long before more go for want of room: a large store takes seconds.
const REMOVAL_MAX_MILLIS: u64 = 30_000;

/// The last time that segments were to go.
#[derive(Debug, Default)]
pub(super) struct Retaining {
    at: u64,
    /// The number of looks of the log before.
    count: u64,
    /// Less history than configured was kept, for lack of room.
    scarce: bool,
}

impl Retaining {
    /// Nothing went yet, as of this moment.
    pub(super) fn since(at: Moment) -> Self {
        Self {
            at: at.now(),
            ..Self::default()
        }
    }

    /// History is being removed for want of room, so that the free space is not known yet.
    fn is_under_way(&self, stats: &Stats, now: u64) -> bool {
        self.scarce && self.count == stats.retain_count && now.saturating_sub(self.at) < REMOVAL_MAX_MILLIS
    }
}

impl Writer {
    /// Has the log remove the segments that are not to be kept.
    pub(super) fn retain(&mut self, stats: &Stats, at: Moment) {
        let now = at.now();
        let is_due = now.saturating_sub(self.retaining.at) >= RETAIN_INTERVAL_MILLIS;
        if stats.segments <= 1 || !is_due || self.retaining.is_under_way(stats, now) {
            return;
        }
        let bounds = self.bounds();
        let retention = DiskRoom::retention(self.log.space(), &bounds, stats.bytes_on_disk);
        self.retaining = Retaining {
            at: now,
            count: stats.retain_count,
            scarce: retention != bounds.retention,
        };
        self.log.retain(retention, at.wall);
    }

    pub(super) fn look_at_the_disk(&mut self, stats: &Stats) {
        let (space, before) = (self.log.space(), self.core.room());
        let room = DiskRoom::of(space, &self.bounds(), before, stats.segments > 1);
        self.metrics.observe_disk(space, room == DiskRoom::Reserve);
        if room == before {
            return;
        }
        self.core.set_room(room);
        tell(space, room, stats.segments > 1);
    }
}

/// An error is what refuses growth. History that goes is what was asked for, and has its warning.
fn tell(space: Option<Space>, room: DiskRoom, history: bool) {
    let free = space.map_or(0, |space| space.free);
    match room {
        DiskRoom::Enough => tracing::info!(free, "the disk under the event log has room again"),
        DiskRoom::Scarce => tracing::warn!(
            free,
            "the disk under the event log is filling up: the oldest history goes to make room, and nothing is refused. Give \
             the disk more room, or keep less history (--retention-bytes, --retention-age)"
        ),
        DiskRoom::Reserve if history => tracing::error!(
            free,
            "the disk under the event log fills up faster than history can go: new exports, slices and members are refused \
             until history has gone. If this lasts, give the disk more room"
        ),
        DiskRoom::Reserve => tracing::error!(
            free,
            "the disk under the event log is nearly full, and no history is left that could go: new exports, slices and \
             members are refused. Give the disk more room"
        ),
    }
}
