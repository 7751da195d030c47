//! The hub's clocks: monotonic milliseconds for deadlines, the wall clock for what is recorded.
//! The only place that reads them; everything else is given numbers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::UnixMillis;
use tokio::time::Instant;

/// The clocks at one moment: machines get it instead of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Monotonic microseconds.
    pub micros: u64,
    /// The wall clock.
    pub wall: UnixMillis,
}

impl Moment {
    /// Monotonic milliseconds.
    pub fn now(self) -> u64 {
        self.micros / 1_000
    }
}

/// A clock that counts from its making.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
    /// In a simulation, where the wall clock goes with the monotonic one: what it showed at the start.
    wall_at_start: Option<UnixMillis>,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
            wall_at_start: None,
        }
    }

    /// A clock for simulations: the wall shows `wall` now, and from then on what the runtime's time adds.
    #[cfg(any(test, feature = "simulated"))]
    pub fn simulated(wall: UnixMillis) -> Self {
        Self {
            started: Instant::now(),
            wall_at_start: Some(wall),
        }
    }

    /// Monotonic milliseconds.
    pub fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn now_micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Both clocks at once.
    pub fn moment(&self) -> Moment {
        Moment {
            micros: self.now_micros(),
            wall: self.wall(),
        }
    }

    /// The instant at a number of monotonic milliseconds.
    pub fn instant(&self, at: u64) -> Instant {
        self.started + Duration::from_millis(at)
    }

    /// The wall clock; before 1970 it is 1970.
    pub fn wall(&self) -> UnixMillis {
        match self.wall_at_start {
            Some(wall) => UnixMillis(wall.0.saturating_add(self.now())),
            None => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
            }
        }
    }
}
