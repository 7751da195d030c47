//! Owns: how Go reads numbers (prefixes, underscores, hexadecimal floats) and how it converts between them.

/// `strconv.ParseInt(text, 0, 64)`.
pub(crate) fn parse_int(text: &str) -> Option<i64> {
    let (negative, magnitude) = sign(text);
    let value = parse_uint(magnitude)?;
    if negative {
        (value <= 1 << 63).then(|| (value as i64).wrapping_neg())
    } else {
        i64::try_from(value).ok()
    }
}

/// `strconv.ParseUint(text, 0, 64)`.
pub(crate) fn parse_uint(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, &lower[..]),
    };
    if lower.contains('_') && !underscores(&lower) {
        return None;
    }
    digits_of(digits, radix)
}

/// `strconv.ParseInt(text, radix, 64)` with a radix that is given: no prefixes, no underscores.
pub(crate) fn parse_int_radix(text: &str, radix: u32) -> Option<i64> {
    let (negative, digits) = sign(text);
    if digits.contains('_') {
        return None;
    }
    let value = digits_of(digits, radix)?;
    if negative {
        (value <= 1 << 63).then(|| (value as i64).wrapping_neg())
    } else {
        i64::try_from(value).ok()
    }
}

fn digits_of(digits: &str, radix: u32) -> Option<u64> {
    let plain: String = digits.chars().filter(|digit| *digit != '_').collect();
    if plain.is_empty() || !plain.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    u64::from_str_radix(&plain, radix).ok()
}

fn sign(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

/// Returns true if underscores stand only between digits, or after a base prefix.
fn underscores(text: &str) -> bool {
    let (_, text) = sign(text);
    let bytes = text.as_bytes();
    let mut last = '^';
    let mut at = 0;
    let mut hex = false;
    if let [b'0', b'x' | b'o' | b'b' | b'X' | b'O' | b'B', ..] = bytes {
        at = 2;
        last = '0';
        hex = bytes[1].eq_ignore_ascii_case(&b'x');
    }
    for byte in &bytes[at..] {
        if byte.is_ascii_digit() || hex && byte.is_ascii_hexdigit() {
            last = '0';
        } else if *byte == b'_' {
            if last != '0' {
                return false;
            }
            last = '_';
        } else {
            if last == '_' {
                return false;
            }
            last = '!';
        }
    }
    last != '_'
}

/// `strconv.ParseFloat(text, 64)`; what is out of range is an error, as there.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let (negative, body) = sign(text);
    let lower = body.to_ascii_lowercase();
    let signed = |value: f64| if negative { -value } else { value };
    match lower.as_str() {
        "inf" | "infinity" => return Some(signed(f64::INFINITY)),
        "nan" if body.len() == text.len() => return Some(f64::NAN),
        _ => {}
    }
    if lower.starts_with("0x") {
        return hex_float(&lower).map(signed);
    }
    if lower.contains('_') && !underscores(&lower) {
        return None;
    }
    let lower = lower.replace('_', "");
    let plain = lower
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'+' | b'-'));
    if !plain || !lower.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: f64 = lower.parse().ok()?;
    value.is_finite().then(|| signed(value))
}

/// `0x1.8p3`: the mantissa is read exactly as long as it has at most 52 significant bits after the first.
fn hex_float(text: &str) -> Option<f64> {
    if text.contains('_') && !underscores(text) {
        return None;
    }
    let plain: String = text.chars().filter(|digit| *digit != '_').collect();
    let (mantissa, exponent) = plain.get(2..)?.split_once('p')?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0_f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let scale = exponent.saturating_sub(4 * i32::try_from(fraction.len()).ok()?);
    let value = value * 2_f64.powi(scale);
    value.is_finite().then_some(value)
}

/// `int64(float)` as amd64 does it: what does not fit is the smallest number.
pub(crate) fn truncate(value: f64) -> i64 {
    if value.is_nan() || !(-9.223_372_036_854_776e18..9.223_372_036_854_776e18).contains(&value) {
        return i64::MIN;
    }
    value as i64
}
