//! Owns: times as a template can have them: read by a layout, shown, and asked for their parts. UTC unless written
//! otherwise.
//! Never: asks what time it is.

mod format;
mod layout;
mod parse;

use std::{fmt, rc::Rc};

pub(crate) use self::parse::parse;

/// A time with the offset of its zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Since 1970, seconds.
    pub(crate) seconds: i64,
    /// Nanoseconds of the second.
    pub(crate) nanos: u32,
    /// East of Greenwich, seconds.
    pub(crate) offset: i64,
    /// Name of its zone, which may be empty; none: it is UTC.
    pub(crate) zone: Option<Rc<str>>,
}

/// Months as Go writes them.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// Year, month, day, hour, minute, second.
pub(crate) type Parts = [i64; 6];

impl Moment {
    /// Go's zero time: the first second of year 1.
    pub(crate) const ZERO: Self = Self {
        seconds: -62_135_596_800,
        nanos: 0,
        offset: 0,
        zone: None,
    };

    /// The parts in its zone.
    pub(crate) fn parts(&self) -> Parts {
        let local = self.seconds.saturating_add(self.offset);
        let (days, rest) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        [year, month, day, rest / 3600, rest / 60 % 60, rest % 60]
    }

    /// Later by so many nanoseconds.
    pub(crate) fn plus(&self, nanos: i64) -> Self {
        let total = i64::from(self.nanos) + nanos.rem_euclid(1_000_000_000);
        Self {
            seconds: self
                .seconds
                .saturating_add(nanos.div_euclid(1_000_000_000))
                .saturating_add(total / 1_000_000_000),
            nanos: u32::try_from(total % 1_000_000_000).unwrap_or(0),
            offset: self.offset,
            zone: self.zone.clone(),
        }
    }

    /// The same time in UTC.
    pub(crate) fn in_utc(&self) -> Self {
        Self {
            offset: 0,
            zone: None,
            ..self.clone()
        }
    }

    /// The day of the week, from Sunday (0) on.
    pub(crate) fn week_day(&self) -> (i64, &'static str) {
        let days = self.seconds.saturating_add(self.offset).div_euclid(86_400);
        // The first of January 1970 was a Thursday.
        let day = (days + 4).rem_euclid(7);
        (
            day,
            usize::try_from(day)
                .ok()
                .and_then(|day| DAYS.get(day).copied())
                .unwrap_or_default(),
        )
    }

    /// The day of the year, from 1 on.
    pub(crate) fn year_day(&self) -> i64 {
        let [year, month, day, ..] = self.parts();
        days(year, month, day) - days(year, 1, 1) + 1
    }

    /// Since 1970, nanoseconds; what is too far away wraps, as in Go.
    pub(crate) fn unix_nanos(&self) -> i64 {
        self.seconds
            .wrapping_mul(1_000_000_000)
            .wrapping_add(i64::from(self.nanos))
    }

    /// As JSON has it: RFC 3339.
    pub(crate) fn rfc3339(&self) -> String {
        self.format(b"2006-01-02T15:04:05.999999999Z07:00")
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format(b"2006-01-02 15:04:05.999999999 -0700 MST"))
    }
}

/// Days since 1970 as year, month and day.
pub(super) fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day = shifted.rem_euclid(146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// Year, month and day as days since 1970.
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}
