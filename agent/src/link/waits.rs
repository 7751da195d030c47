//! Owns: how long an agent waits before it tries again to have a session with the hub.
//! Never: reads a clock, makes randomness, or sleeps.

use std::time::Duration;

use shared::process::Backoff;

/// The first wait, about.
const FIRST: Duration = Duration::from_millis(200);
/// The longest one for a hub that is not reached: until it is, no change of another cluster arrives here, and endpoints
/// that have ended there are asked for.
const UNREACHED_LONGEST: Duration = Duration::from_secs(5);
/// The longest one for a hub that says no: it has answered, and each answer costs it a handshake.
const REFUSED_LONGEST: Duration = Duration::from_secs(15);
/// A session that lasted this long was a good one.
const GOOD_SESSION: Duration = Duration::from_secs(20);
/// For so long after a good session another hub is expected to lead …
const EXPECTED_FOR: Duration = Duration::from_secs(15);
/// … and no wait for it is longer.
const EXPECTED_LONGEST: Duration = Duration::from_secs(1);

/// Counts what went wrong in a row, and says how long to wait for each.
#[derive(Debug, Clone)]
pub struct Waits {
    unreached: Backoff,
    refused: Backoff,
    /// The rest of the time in which a hub is expected.
    expected: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            unreached: Backoff::new(FIRST, UNREACHED_LONGEST),
            refused: Backoff::new(FIRST, REFUSED_LONGEST),
            expected: Duration::ZERO,
        }
    }
}

impl Waits {
    /// A session, or a try to have one, is over after it `lasted` so long. True: it was a good one, and the next waits
    /// start from the first.
    pub fn ended(&mut self, lasted: Duration) -> bool {
        let good = lasted >= GOOD_SESSION;
        if good {
            *self = Self::default();
            self.expected = EXPECTED_FOR;
        } else {
            self.expected = self.expected.saturating_sub(lasted);
        }
        good
    }

    /// The wait after the hub was not reached, or a session with it broke. `random` is any uniformly distributed number.
    pub fn unreached(&mut self, random: u64) -> Duration {
        let wait = self.unreached.failed(random);
        if self.expected.is_zero() {
            return wait;
        }
        let wait = wait.min(EXPECTED_LONGEST);
        self.expected = self.expected.saturating_sub(wait);
        wait
    }

    /// The wait after the hub refused this cluster. `random` as above.
    pub fn refused(&mut self, random: u64) -> Duration {
        self.refused.failed(random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More tries than any wait needs to be the longest.
    const MANY: usize = 20;

    fn last(mut wait: impl FnMut(u64) -> Duration) -> Duration {
        (0..MANY).map(|_| wait(u64::MAX)).last().expect("some")
    }

    #[test]
    fn a_hub_that_is_not_reached_is_tried_every_five_seconds_at_least() {
        let mut waits = Waits::default();
        assert!(waits.unreached(u64::MAX) <= FIRST);
        let longest = last(|random| waits.unreached(random));
        assert!(longest <= Duration::from_secs(5), "{longest:?}");
    }

    #[test]
    fn for_fifteen_seconds_after_a_good_session_a_hub_is_expected_every_second() {
        let mut waits = Waits::default();
        assert!(waits.ended(GOOD_SESSION));
        let (mut passed, mut longest) = (Duration::ZERO, Duration::ZERO);
        let tried = Duration::from_millis(500);
        while passed < EXPECTED_FOR {
            let wait = waits.unreached(u64::MAX);
            (passed, longest) = (passed + wait + tried, longest.max(wait));
            assert!(!waits.ended(tried));
        }
        assert_eq!(longest, EXPECTED_LONGEST);
        assert!(
            last(|random| waits.unreached(random)) > EXPECTED_LONGEST,
            "then no longer"
        );
    }

    #[test]
    fn a_hub_that_refuses_is_left_alone_longer_and_that_holds_nobody_up_who_is_not_refused() {
        let mut waits = Waits::default();
        let refused = last(|random| waits.refused(random));
        assert!(
            refused > Duration::from_secs(7) && refused <= Duration::from_secs(15),
            "{refused:?}"
        );
        assert!(waits.unreached(u64::MAX) <= FIRST);
    }

    #[test]
    fn only_a_session_that_lasted_starts_anew() {
        let mut waits = Waits::default();
        let longest = last(|random| waits.unreached(random));
        assert!(!waits.ended(Duration::from_secs(19)));
        assert!(waits.unreached(u64::MAX) > longest / 2);
        assert!(waits.ended(Duration::from_secs(20)));
        assert!(waits.unreached(u64::MAX) <= FIRST);
    }
}
