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
            .and_then(|text| parse_int(without_zeros(text)))
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

/// `12.00` without what stands behind the point.
fn without_zeros(text: &str) -> &str {
    match text.rsplit_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => text,
    }
}
