//! The delay before the next attempt: doubling, bounded, spread at random.
//! Pure: it reads no clock, makes no randomness and never sleeps.

use std::time::Duration;

/// Counts failed tries in a row and says how long to wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// Waits that start near `first` and never exceed `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            failures: 0,
        }
    }

    /// A try failed: the wait before the next, between half of the doubled wait and all of it. Many processes
    /// that failed at one moment so come back spread over time. `random` is any uniformly distributed number.
    pub fn failed(&mut self, random: u64) -> Duration {
        let doubled = self
            .first
            .saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        let wait = doubled.min(self.longest);
        self.failures = self.failures.saturating_add(1);
        let half = wait / 2;
        let spread = u64::try_from((wait - half).as_nanos()).unwrap_or(u64::MAX);
        half + Duration::from_nanos(random % spread.saturating_add(1))
    }

    /// A try succeeded: the next wait starts from the first again.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn waits_double_until_the_longest_and_start_anew_after_success() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(500));
        let waits: Vec<_> = (0..5).map(|_| backoff.failed(0).as_millis()).collect();
        assert_eq!(waits, [50, 100, 200, 250, 250]);
        backoff.succeeded();
        assert_eq!(backoff.failed(0).as_millis(), 50);
    }

    proptest! {
        #[test]
        fn every_wait_lies_between_half_and_all_of_its_bound(randoms in proptest::collection::vec(any::<u64>(), 1..100)) {
            let (first, longest) = (Duration::from_millis(250), Duration::from_secs(30));
            let mut backoff = Backoff::new(first, longest);
            for random in randoms {
                let wait = backoff.failed(random);
                prop_assert!(wait >= first / 2 && wait <= longest);
            }
        }
    }
}
