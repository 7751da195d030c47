//! The time at which a profile may be written: a flip of a status at once, everything else within the budget of
//! KEP-4322 (less than one write in thirty seconds for each object, with a burst of ten). Pure: time is an argument.

/// Milliseconds that one write costs.
pub const MILLIS_PER_WRITE: u64 = 30_000;
/// Writes that may follow each other at once after a quiet time.
pub const BURST_MAX: u32 = 10;
/// Flips that may go out at once beyond the budget. They are paid for afterwards, so the rate holds in the long run,
/// also when an object never comes to match what was written.
pub const FLIP_DEBT_MAX: u32 = 10;

const CREDIT_MAX: i64 = MILLIS_PER_WRITE as i64 * BURST_MAX as i64;
const CREDIT_MIN: i64 = -(MILLIS_PER_WRITE as i64) * FLIP_DEBT_MAX as i64;

/// The kind of a wanted write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// It can wait.
    Ordinary,
    /// The status of a condition flips.
    Flip,
}

/// The budget of one profile, counted in milliseconds of quiet time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    credit: i64,
    counted_at: u64,
}

impl Budget {
    /// A full budget at `now` (monotonic milliseconds).
    pub fn full(now: u64) -> Self {
        Self {
            credit: CREDIT_MAX,
            counted_at: now,
        }
    }

    /// Earliest time of a write: `None` at once.
    pub fn ready_at(&mut self, urgency: Urgency, now: u64) -> Option<u64> {
        self.count(now);
        let floor = match urgency {
            Urgency::Ordinary => 0,
            Urgency::Flip => CREDIT_MIN,
        };
        let missing = floor + MILLIS_PER_WRITE as i64 - self.credit;
        (missing > 0).then(|| now + missing.unsigned_abs())
    }

    /// A write goes out.
    pub fn spend(&mut self, now: u64) {
        self.count(now);
        self.credit = (self.credit - MILLIS_PER_WRITE as i64).max(CREDIT_MIN);
    }

    fn count(&mut self, now: u64) {
        let passed = i64::try_from(now.saturating_sub(self.counted_at)).unwrap_or(i64::MAX);
        self.credit = self.credit.saturating_add(passed).min(CREDIT_MAX);
        self.counted_at = self.counted_at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ten_writes_at_once_then_one_in_thirty_seconds() {
        let mut budget = Budget::full(1_000);
        for _ in 0..BURST_MAX {
            assert_eq!(budget.ready_at(Urgency::Ordinary, 1_000), None);
            budget.spend(1_000);
        }
        assert_eq!(budget.ready_at(Urgency::Ordinary, 1_000), Some(31_000));
        assert_eq!(budget.ready_at(Urgency::Ordinary, 30_999), Some(31_000));
        assert_eq!(budget.ready_at(Urgency::Ordinary, 31_000), None);
        budget.spend(31_000);
        assert_eq!(budget.ready_at(Urgency::Ordinary, 31_000), Some(61_000));
    }

    #[test]
    fn a_flip_goes_at_once_and_is_paid_for_later() {
        let mut budget = Budget::full(0);
        for _ in 0..BURST_MAX + 2 {
            assert_eq!(budget.ready_at(Urgency::Flip, 0), None);
            budget.spend(0);
        }
        assert_eq!(budget.ready_at(Urgency::Flip, 0), None);
        assert_eq!(budget.ready_at(Urgency::Ordinary, 0), Some(3 * MILLIS_PER_WRITE));
    }

    #[test]
    fn flips_without_end_come_down_to_the_rate() {
        let mut budget = Budget::full(0);
        for _ in 0..BURST_MAX + FLIP_DEBT_MAX {
            assert_eq!(budget.ready_at(Urgency::Flip, 0), None);
            budget.spend(0);
        }
        assert_eq!(budget.ready_at(Urgency::Flip, 0), Some(MILLIS_PER_WRITE));
        assert_eq!(budget.ready_at(Urgency::Flip, MILLIS_PER_WRITE), None);
    }

    #[test]
    fn quiet_time_fills_the_budget_and_no_further() {
        let mut budget = Budget::full(0);
        budget.spend(0);
        assert_eq!(budget.ready_at(Urgency::Ordinary, 1_000_000_000), None);
        assert_eq!(budget, Budget::full(1_000_000_000));
        assert_eq!(
            budget.ready_at(Urgency::Ordinary, 5),
            None,
            "a clock that stands back takes nothing away"
        );
    }

    proptest! {
        #[test]
        fn ordinary_writes_never_exceed_burst_and_rate(steps in proptest::collection::vec(0_u64..20_000, 1..400)) {
            let mut budget = Budget::full(0);
            let (mut now, mut writes) = (0, 0_u64);
            for step in steps {
                now += step;
                if budget.ready_at(Urgency::Ordinary, now).is_none() {
                    budget.spend(now);
                    writes += 1;
                }
                prop_assert!(writes <= u64::from(BURST_MAX) + now / MILLIS_PER_WRITE);
            }
        }

        #[test]
        fn the_time_it_names_is_the_first_at_which_it_lets_a_write_go(spent in 0_u32..30, wait in 0_u64..400_000) {
            let mut budget = Budget::full(0);
            (0..spent).for_each(|_| budget.spend(0));
            if let Some(at) = budget.ready_at(Urgency::Ordinary, wait) {
                prop_assert!(at > wait);
                prop_assert!(budget.clone().ready_at(Urgency::Ordinary, at - 1).is_some());
                prop_assert_eq!(budget.ready_at(Urgency::Ordinary, at), None);
            }
        }
    }
}
