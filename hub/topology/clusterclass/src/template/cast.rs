//! Owns: how functions turn values of any type into texts and numbers.

use super::{
    limits::Failure,
    meter::Meter,
    numbers::{parse_float, parse_int, truncate},
    print,
    value::{Text, Value},
};

/// A text as it is, anything else as it is printed.
pub(crate) fn to_text(meter: &mut Meter, value: &Value) -> Result<Text, Failure> {
    match value {
        Value::Text(text) => {
            meter.read(text.len())?;
            Ok(text.clone())
        }
        other => Ok(Text::from(print::plain(meter, other)?)),
    }
}

/// An integer; 0 for what is none.
pub(crate) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(int) | Value::Int64(int) | Value::Named(_, int, _) => *int,
        Value::Uint64(int) => *int as i64,
        Value::Byte(byte) => i64::from(*byte),
        Value::Float(float) => truncate(*float),
        Value::Bool(value) => i64::from(*value),
        Value::Text(text) => std::str::from_utf8(text)
            .ok()
            .and_then(|text| parse_int(without_fraction(text)))
            .unwrap_or(0),
        _ => 0,
    }
}

/// A float; 0 for what is none.
pub(crate) fn to_float(value: &Value) -> f64 {
    match value {
        Value::Int(int) | Value::Int64(int) | Value::Named(_, int, _) => *int as f64,
        Value::Uint64(int) => *int as f64,
        Value::Byte(byte) => f64::from(*byte),
        Value::Float(float) => *float,
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Text(text) => std::str::from_utf8(text)
            .ok()
            .and_then(parse_float)
            .unwrap_or(0.0),
        _ => 0.0,
    }
}

/// `12.75` without its decimals, if there are only digits on both sides of the point.
fn without_fraction(text: &str) -> &str {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((whole, fraction))
            if digits(whole.strip_prefix(['-', '+']).unwrap_or(whole)) && digits(fraction) =>
        {
            match whole {
                "" | "-" | "+" => "0",
                whole => whole,
            }
        }
        _ => text,
    }
}
