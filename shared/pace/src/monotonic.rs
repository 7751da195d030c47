//! Owns: the time since some moment, for measurements that must never be set back.
//! Never: says what time it is.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

/// The time since some moment, by a clock that only goes forward: the process's own, or a simulation's.
pub type Monotonic = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The process's clock, from now on.
pub fn monotonic() -> Monotonic {
    let begun = Instant::now();
    Arc::new(move || begun.elapsed())
}
