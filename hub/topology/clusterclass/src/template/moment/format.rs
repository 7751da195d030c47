//! Owns: times as texts, by a layout.

use super::super::{limits::MAX_TEXT, runes};
use super::{
    DAYS, MONTHS, Moment,
    layout::{Fraction, Offset, Piece, next},
};

impl Moment {
    /// As this layout has it; not whole if it is longer than a function may return, which is then too long still.
    pub(crate) fn format(&self, layout: &[u8]) -> String {
        let (mut out, mut rest) = (Vec::new(), layout);
        loop {
            let (text, piece, after) = next(rest);
            out.extend_from_slice(text);
            let Some(piece) = piece.filter(|_| out.len() <= MAX_TEXT) else {
                return runes::lossy(&out);
            };
            out.extend_from_slice(self.piece(piece).as_bytes());
            rest = after;
        }
    }

    fn piece(&self, piece: Piece) -> String {
        let [year, month, day, hour, minute, second] = self.parts();
        let name =
            |names: &[&'static str], at: i64| usize::try_from(at).ok().and_then(|at| names.get(at).copied());
        let month_name = name(&MONTHS, month - 1).unwrap_or_default();
        let day_name = name(&DAYS, self.week_day().0).unwrap_or_default();
        let hour_of_half = if hour % 12 == 0 { 12 } else { hour % 12 };
        match piece {
            Piece::Year => format!("{:02}", year.max(0) % 100),
            Piece::LongYear => padded(year, 4),
            Piece::Month => month_name.chars().take(3).collect(),
            Piece::LongMonth => month_name.to_owned(),
            Piece::NumMonth => month.to_string(),
            Piece::ZeroMonth => format!("{month:02}"),
            Piece::WeekDay => day_name.chars().take(3).collect(),
            Piece::LongWeekDay => day_name.to_owned(),
            Piece::Day => day.to_string(),
            Piece::UnderDay => format!("{day:2}"),
            Piece::ZeroDay => format!("{day:02}"),
            Piece::UnderYearDay => format!("{:3}", self.year_day()),
            Piece::ZeroYearDay => format!("{:03}", self.year_day()),
            Piece::Hour => format!("{hour:02}"),
            Piece::Hour12 => hour_of_half.to_string(),
            Piece::ZeroHour12 => format!("{hour_of_half:02}"),
            Piece::Minute => minute.to_string(),
            Piece::ZeroMinute => format!("{minute:02}"),
            Piece::Second => second.to_string(),
            Piece::ZeroSecond => format!("{second:02}"),
            Piece::Half { upper } => match (hour >= 12, upper) {
                (true, true) => "PM".to_owned(),
                (true, false) => "pm".to_owned(),
                (false, true) => "AM".to_owned(),
                (false, false) => "am".to_owned(),
            },
            Piece::Offset(written) => offset(self.offset, written),
            Piece::ZoneName => match &self.zone {
                None => "UTC".to_owned(),
                Some(name) if !name.is_empty() => name.to_string(),
                // A zone without a name is called by its offset; Go leaves out minutes only if they are zero.
                Some(_) => zone_without_a_name(self.offset),
            },
            Piece::Fraction(written) => fraction(self.nanos, written),
        }
    }
}

/// A number with its sign before the zeros.
fn padded(number: i64, width: usize) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{:0width$}", number.unsigned_abs())
}

fn offset(offset: i64, written: Offset) -> String {
    if written.z && offset == 0 {
        return "Z".to_owned();
    }
    let minutes = offset / 60;
    // In an offset of less than a minute only the seconds have a sign, as in Go.
    let (sign, seconds) = if minutes < 0 {
        ('-', -offset)
    } else {
        ('+', offset)
    };
    let minutes = minutes.abs();
    let colon = if written.colons { ":" } else { "" };
    let mut out = format!("{sign}{:02}", minutes / 60);
    if written.parts > 1 {
        out.push_str(&format!("{colon}{:02}", minutes % 60));
    }
    if written.parts > 2 {
        out.push_str(&format!("{colon}{}", padded(seconds % 60, 2)));
    }
    out
}

fn zone_without_a_name(seconds: i64) -> String {
    let written = Offset {
        z: false,
        colons: false,
        parts: 2,
    };
    offset(seconds, written)
}

fn fraction(nanos: u32, written: Fraction) -> String {
    let separator = char::from(written.separator);
    let digits: String = format!("{nanos:09}").chars().take(written.digits).collect();
    let digits = if written.exact {
        &digits
    } else {
        digits.trim_end_matches('0')
    };
    if digits.is_empty() {
        return String::new();
    }
    format!("{separator}{digits}")
}
