//! Owns: the functions of times and durations that need no clock.

use super::super::{
    limits::Failure,
    moment::{self, Moment},
    runes,
    signature::{
        Signature,
        Type::{Any, Text, Time},
        any, exactly, said, text,
    },
    value::Value,
};

const SECOND: i64 = 1_000_000_000;

/// A function by name.
pub(super) fn find(name: &str) -> Option<Signature> {
    match name {
        "duration" => exactly(&[Any], |meter, given| {
            let seconds = match any(given, 0) {
                Value::Int64(seconds) => *seconds,
                Value::Text(text) => whole(&runes::lossy(text)),
                _ => 0,
            };
            said(meter, shown(seconds.wrapping_mul(SECOND)))
        }),
        "durationRound" => exactly(&[Any], |meter, given| {
            let nanos = match any(given, 0) {
                Value::Int64(nanos) => *nanos,
                Value::Text(text) => parse(&runes::lossy(text)).unwrap_or(0),
                Value::Time(_) => return Err(Failure::refused("durationRound")),
                _ => 0,
            };
            said(meter, rounded(nanos.unsigned_abs()))
        }),
        "toDate" => exactly(&[Text, Text], |_, given| {
            Ok(Value::Time(read(given).unwrap_or(Moment::ZERO)))
        }),
        "mustToDate" => exactly(&[Text, Text], |_, given| match read(given) {
            Some(moment) => Ok(Value::Time(moment)),
            None => Err(Failure::new("parsing time: cannot parse")),
        }),
        "must_date_modify" | "mustDateModify" => exactly(&[Text, Time], |_, given| {
            let by = parse(&runes::lossy(text(given, 0)));
            let by = by.ok_or_else(|| Failure::new("time: invalid duration"))?;
            Ok(match any(given, 1) {
                Value::Time(moment) => Value::Time(moment.plus(by)),
                other => other.clone(),
            })
        }),
        "unixEpoch" => exactly(&[Time], |meter, given| match any(given, 0) {
            Value::Time(moment) => said(meter, moment.seconds.to_string()),
            _ => said(meter, ""),
        }),
        _ => None,
    }
}

fn read(given: &[Value]) -> Option<Moment> {
    moment::parse(text(given, 0), text(given, 1))
}

/// `strconv.ParseInt` without its error: what is too large is the largest number.
fn whole(text: &str) -> i64 {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return 0;
    }
    let most = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    text.parse().unwrap_or(most)
}

fn rounded(nanos: u64) -> String {
    const UNITS: [(u64, &str); 6] = [
        (365 * 24 * 3600, "y"),
        (30 * 24 * 3600, "mo"),
        (24 * 3600, "d"),
        (3600, "h"),
        (60, "m"),
        (1, "s"),
    ];
    for (seconds, unit) in UNITS {
        let size = seconds * 1_000_000_000;
        if nanos > size {
            return format!("{}{unit}", nanos / size);
        }
    }
    "0s".to_owned()
}

/// `time.Duration.String`.
fn shown(nanos: i64) -> String {
    let size = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    let fraction = |value: u64, unit: u64| {
        let digits = unit.to_string().len() - 1;
        match value % unit {
            0 => format!("{}", value / unit),
            rest => format!(
                "{}.{}",
                value / unit,
                format!("{rest:0digits$}").trim_end_matches('0')
            ),
        }
    };
    match size {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{size}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", fraction(size, 1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", fraction(size, 1_000_000)),
        _ => {
            let (minutes, rest) = (size / 60_000_000_000, size % 60_000_000_000);
            let seconds = fraction(rest, 1_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// `time.ParseDuration`.
fn parse(text: &str) -> Option<i64> {
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0_u128;
    while !rest.is_empty() {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, tail) = rest.split_at(digits(rest));
        let (fraction, tail) = match tail.strip_prefix('.') {
            Some(tail) => tail.split_at(digits(tail)),
            None => ("", tail),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let length = tail
            .find(|sign: char| sign == '.' || sign.is_ascii_digit())
            .unwrap_or(tail.len());
        let unit: u128 = match &tail[..length] {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(unit)?)?;
        let short = &fraction[..fraction.len().min(18)];
        if !short.is_empty() {
            total += short.parse::<u128>().ok()? * unit / 10_u128.pow(u32::try_from(short.len()).ok()?);
        }
        if total > 1 << 63 {
            return None;
        }
        rest = &tail[length..];
    }
    let total = i128::try_from(total).ok()?;
    i64::try_from(if negative { -total } else { total }).ok()
}
