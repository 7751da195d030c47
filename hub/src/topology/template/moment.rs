//! Owns: times as a template can have them: read by a layout, shown, and asked for their parts. UTC unless written
//! otherwise.
//! Never: asks what time it is.

use std::fmt;

/// A time with the offset of its zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Since 1970, seconds.
    pub(crate) seconds: i64,
    /// Nanoseconds of the second.
    pub(crate) nanos: u32,
    /// East of Greenwich, seconds.
    pub(crate) offset: i64,
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
const DAYS: [&str; 7] = [
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
        }
    }

    /// As JSON has it: RFC 3339.
    pub(crate) fn rfc3339(&self) -> String {
        let [year, month, day, hour, minute, second] = self.parts();
        let zone = match self.offset {
            0 => "Z".to_owned(),
            offset => zone(offset, ":"),
        };
        let fraction = fraction(self.nanos);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}")
    }
}

fn fraction(nanos: u32) -> String {
    match nanos {
        0 => String::new(),
        _ => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
    }
}

fn zone(offset: i64, colon: &str) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let minutes = offset.abs() / 60;
    format!("{sign}{:02}{colon}{:02}", minutes / 60, minutes % 60)
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, month, day, hour, minute, second] = self.parts();
        let fraction = fraction(self.nanos);
        let offset = zone(self.offset, "");
        let name = if self.offset == 0 { "UTC" } else { &offset };
        write!(
            f,
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction} {offset} {name}"
        )
    }
}

/// Days since 1970 as year, month and day.
fn civil(days: i64) -> (i64, i64, i64) {
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
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The pieces of a layout, the longer ones first.
const PIECES: [&str; 22] = [
    "January", "Monday", "2006", "-07:00", "Z07:00", "-0700", "Jan", "Mon", "MST", "01", "02", "03", "04",
    "05", "06", "15", "PM", "_2", "1", "2", "3", "4",
];

struct Reading<'a> {
    rest: &'a str,
    parts: Parts,
    nanos: u32,
    offset: i64,
    afternoon: Option<bool>,
}

/// `time.Parse`; `None` where the text does not have the layout.
pub(crate) fn parse(layout: &str, text: &str) -> Option<Moment> {
    let mut reading = Reading {
        rest: text,
        parts: [0, 1, 1, 0, 0, 0],
        nanos: 0,
        offset: 0,
        afternoon: None,
    };
    let mut layout = layout;
    while !layout.is_empty() {
        if let Some(piece) = PIECES.iter().find(|piece| layout.starts_with(**piece)) {
            layout = &layout[piece.len()..];
            reading.piece(piece)?;
        } else if let Some(after) = layout.strip_prefix('5') {
            layout = after;
            reading.piece("5")?;
        } else {
            let next = layout.chars().next()?;
            layout = &layout[next.len_utf8()..];
            reading.rest = reading.rest.strip_prefix(next)?;
        }
    }
    reading.finish()
}

impl Reading<'_> {
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let digits = self
            .rest
            .bytes()
            .take(most)
            .take_while(u8::is_ascii_digit)
            .count();
        if digits < least {
            return None;
        }
        let (head, rest) = self.rest.split_at(digits);
        self.rest = rest;
        head.parse().ok()
    }

    fn name(&mut self, names: &[&str], length: usize) -> Option<i64> {
        let found = names.iter().position(|name| {
            let name = &name[..length.min(name.len())];
            self.rest
                .get(..name.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(name))
        })?;
        self.rest = &self.rest[length.min(names[found].len())..];
        i64::try_from(found).ok()
    }

    fn piece(&mut self, piece: &str) -> Option<()> {
        match piece {
            "2006" => self.parts[0] = self.number(4, 4)?,
            "06" => {
                let year = self.number(2, 2)?;
                self.parts[0] = year + if year >= 69 { 1900 } else { 2000 };
            }
            "01" => self.parts[1] = self.number(2, 2)?,
            "1" => self.parts[1] = self.number(1, 2)?,
            "January" => self.parts[1] = self.name(&MONTHS, usize::MAX)? + 1,
            "Jan" => self.parts[1] = self.name(&MONTHS, 3)? + 1,
            "Monday" => drop(self.name(&DAYS, usize::MAX)?),
            "Mon" => drop(self.name(&DAYS, 3)?),
            "02" => self.parts[2] = self.number(2, 2)?,
            "2" => self.parts[2] = self.number(1, 2)?,
            "_2" => {
                self.rest = self.rest.strip_prefix(' ').unwrap_or(self.rest);
                self.parts[2] = self.number(1, 2)?;
            }
            "15" => self.parts[3] = self.number(1, 2)?,
            "03" => self.parts[3] = self.number(2, 2)?,
            "3" => self.parts[3] = self.number(1, 2)?,
            "04" => self.parts[4] = self.number(2, 2)?,
            "4" => self.parts[4] = self.number(1, 2)?,
            "05" | "5" => self.second(piece.len())?,
            "PM" => {
                self.afternoon = Some(match self.rest.get(..2)? {
                    "PM" => true,
                    "AM" => false,
                    _ => return None,
                });
                self.rest = &self.rest[2..];
            }
            "MST" => {
                self.rest = self
                    .rest
                    .strip_prefix("UTC")
                    .or_else(|| self.rest.strip_prefix("GMT"))?
            }
            "Z07:00" if self.rest.starts_with('Z') => self.rest = &self.rest[1..],
            _ => self.zone(piece.contains(':'))?,
        }
        Some(())
    }

    fn second(&mut self, least: usize) -> Option<()> {
        self.parts[5] = self.number(least, 2)?;
        let Some(after) = self.rest.strip_prefix(['.', ',']) else {
            return Some(());
        };
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            let written: String = after[..digits]
                .chars()
                .chain("000000000".chars())
                .take(9)
                .collect();
            self.nanos = written.parse().ok()?;
            self.rest = &after[digits..];
        }
        Some(())
    }

    fn zone(&mut self, colon: bool) -> Option<()> {
        let sign = match self.rest.chars().next()? {
            '+' => 1,
            '-' => -1,
            _ => return None,
        };
        self.rest = &self.rest[1..];
        let hours = self.number(2, 2)?;
        if colon {
            self.rest = self.rest.strip_prefix(':')?;
        }
        let minutes = self.number(2, 2)?;
        self.offset = sign * (hours * 3600 + minutes * 60);
        Some(())
    }

    fn finish(mut self) -> Option<Moment> {
        if !self.rest.is_empty() {
            return None;
        }
        match self.afternoon {
            Some(true) if self.parts[3] < 12 => self.parts[3] += 12,
            Some(false) if self.parts[3] == 12 => self.parts[3] = 0,
            _ => {}
        }
        let [year, month, day, hour, minute, second] = self.parts;
        let in_range = (1..=12).contains(&month) && hour < 24 && minute < 60 && second < 60;
        if !in_range || day < 1 || civil(days(year, month, day)) != (year, month, day) {
            return None;
        }
        Some(Moment {
            seconds: days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - self.offset,
            nanos: self.nanos,
            offset: self.offset,
        })
    }
}
