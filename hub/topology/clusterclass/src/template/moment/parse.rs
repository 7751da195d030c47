//! Owns: reading a time by a layout, as `time.Parse` does it with UTC for the local zone.

use std::rc::Rc;

use super::{
    DAYS, MONTHS, Moment, civil, days,
    layout::{Offset, Piece, next},
};

/// Most digits of a fraction of a second that count.
const NANO_DIGITS: usize = 9;
/// Largest hour in an offset that is a name.
const NAMED_HOURS_MAX: u64 = 23;

/// The parts read so far.
#[derive(Default)]
struct Reading<'v> {
    value: &'v [u8],
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: u32,
    morning: bool,
    afternoon: bool,
    is_utc: bool,
    offset: Option<i64>,
    zone: &'v [u8],
}

/// `time.Parse`; `None` where the text does not have the layout.
pub(crate) fn parse(layout: &[u8], value: &[u8]) -> Option<Moment> {
    let mut reading = Reading {
        value,
        ..Reading::default()
    };
    let mut layout = layout;
    loop {
        let (text, piece, after) = next(layout);
        reading.skip(text)?;
        let Some(piece) = piece else {
            break;
        };
        reading.piece(piece, after)?;
        layout = after;
    }
    reading.value.is_empty().then(|| reading.finish())?
}

impl<'v> Reading<'v> {
    /// The text between two parts; a blank matches any number of them.
    fn skip(&mut self, mut text: &[u8]) -> Option<()> {
        while let Some((first, rest)) = text.split_first() {
            if *first == b' ' {
                if self.value.first().is_some_and(|next| *next != b' ') {
                    return None;
                }
                text = without_blanks(text);
                self.value = without_blanks(self.value);
                continue;
            }
            self.value = self.value.strip_prefix(&[*first])?;
            text = rest;
        }
        Some(())
    }

    fn take(&mut self, length: usize) -> Option<&'v [u8]> {
        let (taken, rest) = self.value.split_at_checked(length)?;
        self.value = rest;
        Some(taken)
    }

    fn is_digit(&self, at: usize) -> bool {
        self.value.get(at).is_some_and(u8::is_ascii_digit)
    }

    /// One digit or two, or two.
    fn number(&mut self, two: bool) -> Option<i64> {
        let length = match (self.is_digit(0), self.is_digit(1)) {
            (true, true) => 2,
            (true, false) if !two => 1,
            _ => return None,
        };
        self.take(length).and_then(whole)
    }

    fn below(&mut self, two: bool, bound: i64) -> Option<i64> {
        self.number(two).filter(|number| *number < bound)
    }

    /// The index of a name among these, with so many letters.
    fn name(&mut self, names: &[&str], letters: usize) -> Option<i64> {
        let short = |name: &str| name.len().min(letters);
        let at = names.iter().position(|name| {
            let head = self.value.get(..short(name));
            head.is_some_and(|head| head.eq_ignore_ascii_case(&name.as_bytes()[..short(name)]))
        })?;
        self.take(short(names[at]))?;
        i64::try_from(at).ok()
    }

    fn piece(&mut self, piece: Piece, after: &[u8]) -> Option<()> {
        match piece {
            Piece::Year => {
                let year = self.take(2).and_then(signed)?;
                self.year = year + if year >= 69 { 1900 } else { 2000 };
            }
            Piece::LongYear if self.is_digit(0) => self.year = self.take(4).and_then(signed)?,
            Piece::LongYear => return None,
            Piece::Month => self.month = Some(self.name(&MONTHS, 3)? + 1),
            Piece::LongMonth => self.month = Some(self.name(&MONTHS, usize::MAX)? + 1),
            Piece::NumMonth | Piece::ZeroMonth => {
                let month = self.number(piece == Piece::ZeroMonth)?;
                self.month = Some(month).filter(|month| (1..=12).contains(month));
                self.month?;
            }
            Piece::WeekDay => drop(self.name(&DAYS, 3)?),
            Piece::LongWeekDay => drop(self.name(&DAYS, usize::MAX)?),
            Piece::Day | Piece::UnderDay | Piece::ZeroDay => {
                if piece == Piece::UnderDay {
                    self.value = self.value.strip_prefix(b" ").unwrap_or(self.value);
                }
                self.day = Some(self.number(piece == Piece::ZeroDay)?);
            }
            Piece::UnderYearDay | Piece::ZeroYearDay => self.day_of_year(piece == Piece::ZeroYearDay)?,
            Piece::Hour => self.hour = self.below(false, 24)?,
            Piece::Hour12 | Piece::ZeroHour12 => self.hour = self.below(piece == Piece::ZeroHour12, 13)?,
            Piece::Minute | Piece::ZeroMinute => self.minute = self.below(piece == Piece::ZeroMinute, 60)?,
            Piece::Second | Piece::ZeroSecond => {
                self.second = self.below(piece == Piece::ZeroSecond, 60)?;
                self.unasked_fraction(after)?;
            }
            Piece::Half { upper } => self.half(upper)?,
            Piece::Offset(written) if written.z && self.value.first() == Some(&b'Z') => {
                self.take(1)?;
                self.is_utc = true;
            }
            Piece::Offset(written) => self.offset(written)?,
            Piece::ZoneName if self.value.starts_with(b"UTC") => {
                self.take(3)?;
                self.is_utc = true;
            }
            Piece::ZoneName => self.zone = named_zone(self.value).and_then(|length| self.take(length))?,
            Piece::Fraction(written) if written.exact => self.fraction(written.digits + 1)?,
            Piece::Fraction(_) => {
                if self.begins_a_fraction() {
                    let digits = self.digits_from(1);
                    self.fraction(1 + digits)?;
                }
            }
        }
        Some(())
    }

    fn day_of_year(&mut self, three: bool) -> Option<()> {
        for _ in 0..2 {
            if !three {
                self.value = self.value.strip_prefix(b" ").unwrap_or(self.value);
            }
        }
        let digits = (0..3).take_while(|at| self.is_digit(*at)).count();
        if digits == 0 || three && digits != 3 {
            return None;
        }
        self.year_day = Some(self.take(digits).and_then(whole)?);
        Some(())
    }

    fn half(&mut self, upper: bool) -> Option<()> {
        let (morning, afternoon): (&[u8], &[u8]) = if upper { (b"AM", b"PM") } else { (b"am", b"pm") };
        match self.take(2)? {
            half if half == afternoon => self.afternoon = true,
            half if half == morning => self.morning = true,
            _ => return None,
        }
        Some(())
    }

    fn begins_a_fraction(&self) -> bool {
        matches!(self.value.first(), Some(b'.' | b',')) && self.is_digit(1)
    }

    fn digits_from(&self, at: usize) -> usize {
        (at..).take_while(|at| self.is_digit(*at)).count()
    }

    /// A fraction of a second where the layout has none.
    fn unasked_fraction(&mut self, after: &[u8]) -> Option<()> {
        let is_asked = matches!(next(after).1, Some(Piece::Fraction(_)));
        if is_asked || !self.begins_a_fraction() {
            return Some(());
        }
        let digits = self.digits_from(1);
        self.fraction(1 + digits)
    }

    /// A fraction of so many bytes, its point among them.
    fn fraction(&mut self, length: usize) -> Option<()> {
        let written = self.take(length)?;
        let digits = written.strip_prefix(b".").or(written.strip_prefix(b","))?;
        let digits = &digits[..digits.len().min(NANO_DIGITS)];
        let missing = u32::try_from(NANO_DIGITS - digits.len()).ok()?;
        let nanos = signed(digits)? * 10_i64.pow(missing);
        self.nanos = u32::try_from(nanos).ok()?;
        Some(())
    }

    fn offset(&mut self, written: Offset) -> Option<()> {
        let sign = self.take(1)?[0];
        let mut parts = [0; 3];
        let mut is_wrong = false;
        for (at, part) in parts.iter_mut().enumerate().take(written.parts) {
            if at > 0 && written.colons {
                is_wrong |= self.take(1)? != b":";
            }
            let digits = self.take(2)?;
            let most = if at == 0 { 24 } else { 60 };
            match whole(digits).filter(|_| digits.iter().all(u8::is_ascii_digit)) {
                Some(number) if number <= most => *part = number,
                _ => is_wrong = true,
            }
        }
        let offset = parts[0] * 3600 + parts[1] * 60 + parts[2];
        let offset = match sign {
            b'+' => offset,
            b'-' => -offset,
            _ => return None,
        };
        // One second west is what Go takes for none.
        self.offset = Some(offset).filter(|offset| *offset != -1);
        (!is_wrong).then_some(())
    }

    fn finish(mut self) -> Option<Moment> {
        if self.afternoon && self.hour < 12 {
            self.hour += 12;
        } else if !self.afternoon && self.morning && self.hour == 12 {
            self.hour = 0;
        }
        let year = self.year;
        let (month, day) = match self.year_day {
            Some(of_year) => self.month_and_day(of_year)?,
            None => (self.month.unwrap_or(1), self.day.unwrap_or(1)),
        };
        if day < 1 || civil(days(year, month, day)) != (year, month, day) {
            return None;
        }
        let seconds = days(year, month, day) * 86_400 + self.hour * 3600 + self.minute * 60 + self.second;
        let (offset, shift, zone) = self.zone()?;
        Some(Moment {
            seconds: seconds - shift,
            nanos: self.nanos,
            offset,
            zone,
        })
    }

    /// Month and day of a day of the year, which must agree with other statements of them.
    fn month_and_day(&self, of_year: i64) -> Option<(i64, i64)> {
        let (year, month, day) = civil(days(self.year, 1, 1) + of_year - 1);
        let agrees = self.month.is_none_or(|one| one == month) && self.day.is_none_or(|one| one == day);
        (of_year > 0 && year == self.year && agrees).then_some((month, day))
    }

    /// The offset, by how much the time is earlier in UTC, and the zone.
    fn zone(&self) -> Option<(i64, i64, Option<Rc<str>>)> {
        let name = std::str::from_utf8(self.zone).ok()?;
        let fixed = |offset, shift| Some((offset, shift, Some(Rc::from(name))));
        match self.offset {
            _ if self.is_utc => Some((0, 0, None)),
            Some(0) if name.is_empty() => Some((0, 0, None)),
            Some(offset) => fixed(offset, offset),
            None if name.is_empty() => Some((0, 0, None)),
            // Go does not know by how much these are off, but for what a name says of Greenwich, and shifts none.
            None => match name.strip_prefix("GMT") {
                Some(hours) if !hours.is_empty() => fixed(signed(hours.as_bytes())? * 3600, 0),
                _ => fixed(0, 0),
            },
        }
    }
}

fn without_blanks(mut text: &[u8]) -> &[u8] {
    while let Some(rest) = text.strip_prefix(b" ") {
        text = rest;
    }
    text
}

/// Digits, at most eighteen of them.
fn whole(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Digits that may have a sign; none are 0.
fn signed(text: &[u8]) -> Option<i64> {
    let digits = match text.split_first() {
        Some((b'+' | b'-', digits)) => digits,
        _ => text,
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = if digits.is_empty() { 0 } else { whole(digits)? };
    Some(if text.starts_with(b"-") { -number } else { number })
}

/// Length of the zone's name at the start of a text.
fn named_zone(text: &[u8]) -> Option<usize> {
    if text.len() < 3 {
        return None;
    }
    if text.starts_with(b"ChST") || text.starts_with(b"MeST") {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix(b"GMT") {
        return Some(3 + signed_hours(rest));
    }
    if text.starts_with(b"+") || text.starts_with(b"-") {
        return Some(signed_hours(text)).filter(|length| *length > 0);
    }
    let capitals = text
        .iter()
        .take(6)
        .take_while(|one| one.is_ascii_uppercase())
        .count();
    match capitals {
        5 if text[4] == b'T' => Some(5),
        4 if text[3] == b'T' || text.starts_with(b"WITA") => Some(4),
        3 => Some(3),
        _ => None,
    }
}

/// Length of the sign with hours at the start of a text; 0 if there is none.
fn signed_hours(text: &[u8]) -> usize {
    let Some((b'+' | b'-', rest)) = text.split_first() else {
        return 0;
    };
    let digits = rest.iter().take_while(|one| one.is_ascii_digit()).count();
    let zeros = rest[..digits].iter().take_while(|one| **one == b'0').count();
    let hours = std::str::from_utf8(&rest[zeros..digits]).ok();
    let hours = hours.map(|hours| {
        if hours.is_empty() {
            Ok(0)
        } else {
            hours.parse::<u64>()
        }
    });
    match hours {
        Some(Ok(hours)) if digits > 0 && hours <= NAMED_HOURS_MAX => 1 + digits,
        _ => 0,
    }
}
