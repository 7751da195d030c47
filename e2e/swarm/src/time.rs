//! Owns: the world's time, as it is passed on to the clocks of agents; what wall clocks show; when certificates end.
//! Never: lets it pass.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use model::UnixMillis;

/// Start of every world, in milliseconds since the epoch.
pub(super) const START_MILLIS: u64 = 1_700_000_000_000;
/// Interval in which every certificate is renewed, in milliseconds: its end moves on, and its key stays.
const CERTIFICATE_MILLIS: u64 = 30 * 60 * 1_000;

/// The longest time that a certificate has.
pub(super) const CERTIFICATE_LONGEST_MILLIS: u64 = 2 * CERTIFICATE_MILLIS;

/// A wall clock that is wrong by so many milliseconds.
pub(super) fn wall(now: u64, off: i64) -> UnixMillis {
    UnixMillis((START_MILLIS + now).saturating_add_signed(off))
}

/// The end of every certificate, by a clock that is right: it has half an hour to an hour.
pub(super) fn certificate_end(now: u64) -> UnixMillis {
    wall((now / CERTIFICATE_MILLIS + 2) * CERTIFICATE_MILLIS, 0)
}

/// The world's time in milliseconds. Clones are the same time.
#[derive(Debug, Clone, Default)]
pub(super) struct Time(Arc<AtomicU64>);

impl Time {
    pub(super) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, millis: u64) {
        self.0.store(millis, Ordering::Relaxed);
    }
}
