//! Owns: what a scalar of YAML 1.1 means: `yes` is true, `0123` is 83, `1_000` is 1000, `1:30` is a text.

use super::super::{
    moment,
    numbers::{parse_float, parse_int, parse_int_radix, parse_uint},
    value::Value,
};

const PREFIX: &str = "tag:yaml.org,2002:";

/// The value of a scalar with that tag, which is empty if there is none.
pub(super) fn resolve(tag: &str, text: &str) -> Result<Value, String> {
    let short = tag.strip_prefix(PREFIX).unwrap_or(tag);
    let known = matches!(
        short,
        "" | "str" | "bool" | "int" | "float" | "null" | "timestamp"
    );
    if !tag.is_empty() && (!known || short == tag) {
        return if short == "binary" && short != tag {
            super::super::functions::base64(text)
                .map(Value::text)
                .ok_or_else(|| "!!binary value contains invalid base64 data".to_owned())
        } else {
            Ok(Value::text(text))
        };
    }
    if short == "str" {
        return Ok(Value::text(text));
    }
    let (found, value) = implicit(text, short);
    match (short, found) {
        _ if short.is_empty() || short == found => Ok(value),
        ("float", "int") => match value {
            Value::Int(int) => Ok(Value::Float(int as f64)),
            _ => Err(mismatch(found, text, short)),
        },
        _ => Err(mismatch(found, text, short)),
    }
}

fn mismatch(found: &str, text: &str, wanted: &str) -> String {
    format!("cannot decode !!{found} `{text}` as a !!{wanted}")
}

fn implicit(text: &str, tag: &str) -> (&'static str, Value) {
    if let Some(found) = word(text) {
        return found;
    }
    let plain = text.replace('_', "");
    match text.as_bytes().first() {
        Some(b'.') => {
            if let Some(float) = parse_float(text) {
                return ("float", Value::Float(float));
            }
        }
        Some(b'+' | b'-' | b'0'..=b'9') => {
            if matches!(tag, "" | "timestamp") && is_timestamp(text) {
                // It stays the text that it is.
                return ("timestamp", Value::text(text));
            }
            if let Some(number) = number(&plain) {
                return number;
            }
        }
        _ => {}
    }
    ("str", Value::text(text))
}

fn word(text: &str) -> Option<(&'static str, Value)> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            ("bool", Value::Bool(true))
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            ("bool", Value::Bool(false))
        }
        "" | "~" | "null" | "Null" | "NULL" => ("null", Value::Nil),
        ".nan" | ".NaN" | ".NAN" => ("float", Value::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => ("float", Value::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => ("float", Value::Float(f64::NEG_INFINITY)),
        "<<" => ("merge", Value::text("<<")),
        _ => return None,
    })
}

fn number(plain: &str) -> Option<(&'static str, Value)> {
    if let Some(int) = parse_int(plain) {
        return Some(("int", Value::Int(int)));
    }
    if let Some(uint) = parse_uint(plain) {
        return Some(("int", Value::Uint64(uint)));
    }
    if is_float(plain)
        && let Some(float) = parse_float(plain)
    {
        return Some(("float", Value::Float(float)));
    }
    let digits = match plain.strip_prefix("0b") {
        Some(digits) => digits.to_owned(),
        None => format!("-{}", plain.strip_prefix("-0b")?),
    };
    parse_int_radix(&digits, 2).map(|int| ("int", Value::Int(int)))
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let digits = |text: &str| {
        text.len()
            - text
                .trim_start_matches(|digit: char| digit.is_ascii_digit())
                .len()
    };
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let whole = digits(rest);
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = digits(fraction);
        if whole == 0 && length == 0 {
            return false;
        }
        rest = &fraction[length..];
    } else if whole == 0 {
        return false;
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        let length = digits(exponent);
        return length > 0 && length == exponent.len();
    }
    rest.is_empty()
}

/// Returns true for a date, or a date and a time.
fn is_timestamp(text: &str) -> bool {
    const LAYOUTS: [&[u8]; 4] = [
        b"2006-1-2T15:4:5Z07:00",
        b"2006-1-2t15:4:5Z07:00",
        b"2006-1-2 15:4:5",
        b"2006-1-2",
    ];
    let year = text.bytes().take_while(u8::is_ascii_digit).count();
    year == 4
        && LAYOUTS
            .iter()
            .any(|layout| moment::parse(layout, text.as_bytes()).is_some())
}
