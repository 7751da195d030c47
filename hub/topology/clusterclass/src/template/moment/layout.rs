//! Owns: the layouts of times: what Go takes for a part of its reference time (Mon Jan 2 15:04:05 -0700 MST 2006), and what
//! for a text.
//! Never: reads or writes a time.

/// A part of a time in a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    Year,
    LongYear,
    Month,
    LongMonth,
    NumMonth,
    ZeroMonth,
    WeekDay,
    LongWeekDay,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    /// `PM`, or `pm`.
    Half {
        upper: bool,
    },
    /// The offset of a zone.
    Offset(Offset),
    ZoneName,
    Fraction(Fraction),
}

/// The form of an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offset {
    /// True if none is `Z`.
    pub(super) z: bool,
    /// True if there are colons.
    pub(super) colons: bool,
    /// Hours; minutes, too; seconds, too.
    pub(super) parts: usize,
}

/// The form of fractions of a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fraction {
    /// So many digits.
    pub(super) digits: usize,
    /// True if zeros at the end are written.
    pub(super) exact: bool,
    /// A point or a comma.
    pub(super) separator: u8,
}

/// Parts by how they are written, longer ones before those that they begin with.
const WRITTEN: [(&[u8], Piece); 33] = [
    (b"January", Piece::LongMonth),
    (b"Jan", Piece::Month),
    (b"Monday", Piece::LongWeekDay),
    (b"Mon", Piece::WeekDay),
    (b"MST", Piece::ZoneName),
    (b"01", Piece::ZeroMonth),
    (b"02", Piece::ZeroDay),
    (b"03", Piece::ZeroHour12),
    (b"04", Piece::ZeroMinute),
    (b"05", Piece::ZeroSecond),
    (b"06", Piece::Year),
    (b"002", Piece::ZeroYearDay),
    (b"15", Piece::Hour),
    (b"1", Piece::NumMonth),
    (b"2006", Piece::LongYear),
    (b"2", Piece::Day),
    (b"_2", Piece::UnderDay),
    (b"__2", Piece::UnderYearDay),
    (b"3", Piece::Hour12),
    (b"4", Piece::Minute),
    (b"5", Piece::Second),
    (b"PM", Piece::Half { upper: true }),
    (b"pm", Piece::Half { upper: false }),
    (b"-070000", offset(false, false, 3)),
    (b"-07:00:00", offset(false, true, 3)),
    (b"-0700", offset(false, false, 2)),
    (b"-07:00", offset(false, true, 2)),
    (b"-07", offset(false, false, 1)),
    (b"Z070000", offset(true, false, 3)),
    (b"Z07:00:00", offset(true, true, 3)),
    (b"Z0700", offset(true, false, 2)),
    (b"Z07:00", offset(true, true, 2)),
    (b"Z07", offset(true, false, 1)),
];

const fn offset(z: bool, colons: bool, parts: usize) -> Piece {
    Piece::Offset(Offset { z, colons, parts })
}

/// The text before the first part of a layout, the part, and what follows it; all is text if there is none.
pub(super) fn next(layout: &[u8]) -> (&[u8], Option<Piece>, &[u8]) {
    for at in 0..layout.len() {
        if let Some((piece, length)) = begins(&layout[at..]) {
            return (&layout[..at], Some(piece), &layout[at + length..]);
        }
    }
    (layout, None, b"")
}

/// The part that a text begins with, and its length.
fn begins(text: &[u8]) -> Option<(Piece, usize)> {
    // A line and a year, not a day.
    if text.starts_with(b"_2006") {
        return None;
    }
    let begins = |(written, piece): &(&[u8], Piece)| {
        let rest = text.strip_prefix(*written)?;
        let is_name = matches!(piece, Piece::Month | Piece::WeekDay);
        let is_word = is_name && rest.first().is_some_and(u8::is_ascii_lowercase);
        (!is_word).then_some((*piece, written.len()))
    };
    WRITTEN.iter().find_map(begins).or_else(|| fraction(text))
}

/// Zeros or nines behind a point or a comma, and no other digit behind them.
fn fraction(text: &[u8]) -> Option<(Piece, usize)> {
    let (separator, rest) = text.split_first()?;
    let digit = *rest.first()?;
    if !matches!(separator, b'.' | b',') || !matches!(digit, b'0' | b'9') {
        return None;
    }
    let digits = rest.iter().take_while(|one| **one == digit).count();
    if rest.get(digits).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let fraction = Fraction {
        digits,
        exact: digit == b'0',
        separator: *separator,
    };
    Some((Piece::Fraction(fraction), digits + 1))
}
