//! Owns: the time that events are recorded at. It is the wall clock's, and never goes back. While the wall clock is behind
//! what was recorded (it was ahead for a moment, or was set back), the log's time goes on by the monotonic clock, slower,
//! so that the wall clock overtakes it: what counts events within a time counts on.
//! Never: reads a clock.

use model::UnixMillis;

/// Milliseconds by the monotonic clock in which the log's time goes on by one, while the wall clock is behind it. A time of
/// 30 s in the log is over after 60 s then, and an hour ahead is caught up with after two.
const PACE: u64 = 2;

/// The last recorded time of the wall clock, and when that was by the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogTime {
    recorded: UnixMillis,
    at: u64,
}

impl LogTime {
    /// The time of a log whose last event was recorded at `recorded`, for a process that takes it up `now`.
    pub(super) fn since(recorded: UnixMillis, now: u64) -> Self {
        Self { recorded, at: now }
    }

    /// The time of an event that is recorded now; `clock` is the wall clock.
    pub(super) fn at(self, clock: UnixMillis, now: u64) -> UnixMillis {
        let passed = now.saturating_sub(self.at) / PACE;
        clock.max(UnixMillis(self.recorded.0.saturating_add(passed)))
    }

    /// An event is recorded now. While the wall clock is behind, the log's time goes on from the same moment: many events
    /// within a millisecond do not stop it.
    pub(super) fn record(&mut self, clock: UnixMillis, now: u64) {
        if self.at(clock, now) == clock {
            *self = Self::since(clock, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(time: &mut LogTime, clock: u64, now: u64) -> u64 {
        time.record(UnixMillis(clock), now);
        time.at(UnixMillis(clock), now).0
    }

    #[test]
    fn the_time_of_the_log_is_the_wall_clocks() {
        let mut time = LogTime::since(UnixMillis(1_000), 0);
        assert_eq!(recorded(&mut time, 5_000, 10), 5_000);
        assert_eq!(recorded(&mut time, 5_500, 510), 5_500);
        // Set forward.
        assert_eq!(recorded(&mut time, 90_000, 600), 90_000);
    }

    #[test]
    fn behind_a_clock_that_was_ahead_it_goes_on_and_is_overtaken() {
        let mut time = LogTime::since(UnixMillis(0), 0);
        assert_eq!(recorded(&mut time, 3_600_000, 0), 3_600_000);
        // The clock is right again, and something is recorded every millisecond.
        for now in 1..=1_000 {
            let at = recorded(&mut time, now, now);
            assert_eq!(at, 3_600_000 + now / PACE);
        }
        assert_eq!(recorded(&mut time, 7_100_000, 7_100_000), 3_600_000 + 3_550_000);
        let overtaken = 2 * 3_600_000 + 1_000;
        assert_eq!(recorded(&mut time, overtaken, overtaken), overtaken);
        assert_eq!(recorded(&mut time, overtaken + 1, overtaken + 1), overtaken + 1);
    }

    #[test]
    fn a_process_that_starts_behind_the_log_goes_on_from_its_end() {
        let mut time = LogTime::since(UnixMillis(9_000), 500);
        assert_eq!(recorded(&mut time, 100, 500), 9_000);
        assert_eq!(recorded(&mut time, 1_100, 1_500), 9_500);
    }
}
