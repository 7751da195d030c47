//! Owns: how Go writes a float: the digits, and where the point and the exponent stand (`strconv.FormatFloat`).

/// Decimal digits without trailing zeros, and where the point stands among them.
struct Digits {
    digits: Vec<u8>,
    point: i32,
}

/// No float has more digits after the point; what is asked for beyond is zeros.
const MOST_DIGITS: usize = 1_100;

/// `strconv.FormatFloat(value, verb, precision, 64)`; without precision the shortest text that reads back the same.
/// Verbs: e, E, f, g, G, x, X, b.
pub(crate) fn format(value: f64, verb: u8, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let magnitude = value.abs();
    let body = match verb {
        b'e' | b'E' => exponent(magnitude, precision, verb),
        b'f' | b'F' => fixed(magnitude, precision),
        b'x' | b'X' => hexadecimal(magnitude, precision, verb),
        b'b' => binary(magnitude),
        _ => general(magnitude, precision, verb),
    };
    format!("{sign}{body}")
}

/// The number as `encoding/json` writes it; `None` if JSON cannot express it.
pub(crate) fn json(value: f64) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        return Some(format(value, b'f', None));
    }
    let text = format(value, b'e', None);
    // 1e-09 is written 1e-9.
    match text.as_bytes() {
        [head @ .., b'e', b'-', b'0', last] => {
            let head = String::from_utf8_lossy(head);
            Some(format!("{head}e-{}", char::from(*last)))
        }
        _ => Some(text),
    }
}

fn digits(magnitude: f64, significant: Option<usize>) -> Digits {
    let text = match significant {
        None => format!("{magnitude:e}"),
        Some(count) => format!("{magnitude:.*e}", count.clamp(1, MOST_DIGITS) - 1),
    };
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
    let point = if digits.is_empty() {
        0
    } else {
        power.parse::<i32>().unwrap_or(0) + 1
    };
    Digits { digits, point }
}

fn exponent(magnitude: f64, precision: Option<usize>, verb: u8) -> String {
    let read = digits(magnitude, precision.map(|precision| precision.saturating_add(1)));
    let after = precision.unwrap_or_else(|| read.digits.len().saturating_sub(1));
    scientific(&read, after, verb)
}

fn scientific(read: &Digits, after: usize, verb: u8) -> String {
    let digit = |at: usize| char::from(read.digits.get(at).copied().unwrap_or(b'0'));
    let mut out = String::new();
    out.push(digit(0));
    if after > 0 {
        out.push('.');
        out.extend((1..=after).map(digit));
    }
    let power = if read.digits.is_empty() { 0 } else { read.point - 1 };
    let sign = if power < 0 { '-' } else { '+' };
    let letter = if verb == b'E' || verb == b'G' { 'E' } else { 'e' };
    format!("{out}{letter}{sign}{:02}", power.abs())
}

fn fixed(magnitude: f64, precision: Option<usize>) -> String {
    match precision {
        Some(precision) => {
            let exact = precision.min(MOST_DIGITS);
            format!("{magnitude:.exact$}{}", "0".repeat(precision - exact))
        }
        None => positional(&digits(magnitude, None), None),
    }
}

fn positional(read: &Digits, after: Option<usize>) -> String {
    let count = i32::try_from(read.digits.len()).unwrap_or(i32::MAX);
    let after = after.unwrap_or_else(|| usize::try_from(count - read.point).unwrap_or(0));
    let digit = |at: i32| {
        let found = usize::try_from(at).ok().and_then(|at| read.digits.get(at));
        char::from(found.copied().unwrap_or(b'0'))
    };
    let mut out = String::new();
    if read.point > 0 {
        out.extend((0..read.point).map(digit));
    } else {
        out.push('0');
    }
    if after > 0 {
        out.push('.');
        let after = i32::try_from(after).unwrap_or(i32::MAX - 2_000);
        out.extend((0..after).map(|at| digit(read.point + at)));
    }
    out
}

fn general(magnitude: f64, precision: Option<usize>, verb: u8) -> String {
    let wanted = precision.map(|precision| precision.max(1));
    let read = digits(magnitude, wanted);
    let count = read.digits.len();
    let count_i = i32::try_from(count).unwrap_or(i32::MAX);
    let mut precision = wanted.unwrap_or(count);
    let mut limit = i32::try_from(precision).unwrap_or(i32::MAX);
    if limit > count_i && count_i >= read.point {
        limit = count_i;
    }
    if wanted.is_none() {
        limit = 6;
    }
    let power = read.point - 1;
    if power < -4 || power >= limit {
        precision = precision.min(count);
        return scientific(&read, precision.saturating_sub(1), verb);
    }
    let mut precision = i32::try_from(precision).unwrap_or(i32::MAX);
    if precision > read.point {
        precision = count_i;
    }
    positional(&read, Some(usize::try_from(precision - read.point).unwrap_or(0)))
}

/// `%x`: the mantissa in hexadecimal, normalised to one digit before the point.
fn hexadecimal(magnitude: f64, precision: Option<usize>, verb: u8) -> String {
    let (mantissa, mut power) = parts(magnitude);
    // 1 bit before the point, 60 after it.
    let mut bits = mantissa << 8;
    if mantissa != 0 {
        while bits & (1 << 60) == 0 {
            bits <<= 1;
            power -= 1;
        }
        power += 52;
    } else {
        power = 0;
    }
    if let Some(precision) = precision.filter(|precision| *precision < 15) {
        let shift = 4 * precision;
        let extra = (bits << shift) & ((1 << 60) - 1);
        bits >>= 60 - shift;
        if extra | (bits & 1) > 1 << 59 {
            bits += 1;
        }
        bits <<= 60 - shift;
        if bits & (1 << 61) != 0 {
            bits >>= 1;
            power += 1;
        }
    }
    let digit = |at: u32| {
        let value = if at < 16 {
            (bits >> (60 - 4 * at.min(15))) & 0xf
        } else {
            0
        };
        char::from_digit(u32::try_from(value).unwrap_or(0), 16).unwrap_or('0')
    };
    let mut after: String = (1..16).map(digit).collect();
    match precision {
        None => after.truncate(after.trim_end_matches('0').len()),
        Some(precision) if precision <= 15 => after.truncate(precision),
        Some(precision) => after.push_str(&"0".repeat(precision - 15)),
    }
    let point = if after.is_empty() { "" } else { "." };
    let sign = if power < 0 { '-' } else { '+' };
    let text = format!("0x{}{point}{after}p{sign}{:02}", digit(0), power.abs());
    if verb == b'X' {
        text.to_ascii_uppercase()
    } else {
        text
    }
}

/// `%b`: mantissa and exponent as they are stored.
fn binary(magnitude: f64) -> String {
    let (mantissa, power) = parts(magnitude);
    format!("{mantissa}p{power:+}")
}

/// Mantissa as an integer and the power of two by which it is multiplied.
fn parts(magnitude: f64) -> (u64, i32) {
    let bits = magnitude.to_bits();
    let stored = ((bits >> 52) & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    match stored {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, stored - 1075),
    }
}
