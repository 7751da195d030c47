//! From when until when a certificate is valid.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shared::model::UnixMillis;

/// Time by which a new certificate is backdated, because the clocks of two clusters differ.
const BACKDATED: Duration = Duration::from_secs(60 * 60);
/// The part of a short life by which a certificate is dated back.
const BACKDATED_SHARE: u32 = 12;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first moment.
    pub not_before: UnixMillis,
    /// The last moment.
    pub not_after: UnixMillis,
}

impl Validity {
    /// Days that an authority is valid unless asked otherwise: ten years.
    pub const AUTHORITY_DAYS: u32 = 3650;
    /// Days that any other certificate is valid unless asked otherwise: a year.
    pub const LEAF_DAYS: u32 = 365;
    /// The same as a duration.
    pub const LEAF: Duration = Duration::from_secs(365 * 24 * 60 * 60);

    /// From an hour ago until so many days from now.
    pub fn days_from_now(days: u32) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = |time: Duration| UnixMillis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        Self {
            not_before: millis(now.saturating_sub(BACKDATED)),
            not_after: millis(now + DAY * days),
        }
    }

    /// The validity of a member's certificate with this lifetime from `at` on. A short one is dated back by less:
    /// agents renew theirs by the share of its life that has passed.
    pub fn of_a_member(at: UnixMillis, lasts: Duration) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let backdated = BACKDATED.min(lasts / BACKDATED_SHARE);
        Self {
            not_before: UnixMillis(at.0.saturating_sub(millis(backdated))),
            not_after: UnixMillis(at.0.saturating_add(millis(lasts))),
        }
    }

    /// The part of `self` that lies before the end of `other`: no certificate outlives its authority.
    pub fn ending_with(self, other: Self) -> Self {
        Self {
            not_after: self.not_after.min(other.not_after),
            ..self
        }
    }

    /// The last day, for people.
    pub fn last_day(self) -> String {
        let millis = i64::try_from(self.not_after.0).unwrap_or(i64::MAX);
        let time = jiff::Timestamp::from_millisecond(millis);
        time.map_or_else(
            |_| "unknown".to_owned(),
            |time| time.strftime("%Y-%m-%d").to_string(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Backdating takes a fraction of a short life only, so that the certificate is not due for renewal at once.
    #[test]
    fn a_short_certificate_is_dated_back_by_a_short_time() {
        let at = UnixMillis(1_800_000_000_000);
        let short = Validity::of_a_member(at, Duration::from_secs(60));
        assert_eq!(
            (at.0 - short.not_before.0, short.not_after.0 - at.0),
            (5_000, 60_000)
        );
        let long = Validity::of_a_member(at, Validity::LEAF);
        assert_eq!(at.0 - long.not_before.0, 3_600_000);
    }
}
