//! Owns: the world's time, as it is passed on to the clocks of agents.
//! Never: lets it pass.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

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
