//! The policy on mass withdrawals: a member that withdraws most of its exports at once is put on hold. Values only: the
//! fold says what follows, the writer when.

/// Longest time within which removals are counted, in milliseconds: for so long what was removed is remembered.
pub const BRAKE_WITHIN_MILLIS_MAX: u64 = 10 * 60 * 1_000;

/// Default limit of a hold in milliseconds: 15 minutes, the time of a source's Lease. That is enough to restore a
/// definition, and a wanted removal does not wait for somebody who reads alerts.
pub const BRAKE_LONGEST_MILLIS: u64 = 15 * 60 * 1_000;

/// The removal brake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brake {
    /// False: nothing is ever held.
    pub enabled: bool,
    /// It takes so many exports, at least 1.
    pub exports: u32,
    /// And this share of those that the member had, in per cent: 1 to 100.
    pub percent: u8,
    /// Withdrawn within so many milliseconds, at most [`BRAKE_WITHIN_MILLIS_MAX`].
    pub within_millis: u64,
    /// After so many milliseconds a hold ends, decision or not; `None`: it waits for a decision.
    pub longest_millis: Option<u64>,
}

impl Default for Brake {
    fn default() -> Self {
        Self {
            enabled: true,
            exports: 5,
            percent: 50,
            within_millis: 30_000,
            longest_millis: Some(BRAKE_LONGEST_MILLIS),
        }
    }
}

impl Brake {
    /// Returns true if a member that withdrew so many of so many exports within the time is put on hold.
    pub fn holds(&self, removed: u64, exports: u64) -> bool {
        let share = exports.saturating_mul(self.percent.into()).div_ceil(100);
        self.enabled && removed >= u64::from(self.exports).max(1) && removed >= share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_exports_are_too_many_and_a_few_never_are() {
        let brake = Brake::default();
        let holds = [(4, 4), (5, 5), (5, 10), (5, 11), (6, 11), (99, 200), (100, 200)];
        let holds = holds.map(|(removed, exports)| brake.holds(removed, exports));
        assert_eq!(holds, [false, true, true, false, true, false, true]);
        let off = Brake {
            enabled: false,
            ..brake
        };
        assert!(!off.holds(100, 100));
        assert!(!brake.holds(u64::MAX / 200, u64::MAX), "no overflow");
    }
}
