//! Owns: what a literal number of a template may stand for.

use super::{
    node::Number,
    numbers::{parse_float, parse_int, parse_uint},
    quote::unquote_char,
};

/// A character constant, with its quotes.
pub(crate) fn character(text: &str) -> Result<Number, String> {
    let malformed = || format!("malformed character constant: {text}");
    let (value, tail) = unquote_char(text.get(1..).unwrap_or(""), '\'').ok_or_else(malformed)?;
    if tail != "'" {
        return Err(malformed());
    }
    let code = value.code();
    Ok(Number {
        text: text.to_owned(),
        int: Some(i64::from(code)),
        uint: Some(u64::from(code)),
        float: Some(f64::from(code)),
        complex: None,
    })
}

/// Two parts, the second imaginary.
pub(crate) fn complex(text: &str) -> Result<Number, String> {
    let invalid = || format!("illegal number syntax: {text:?}");
    let body = text.strip_suffix('i').ok_or_else(invalid)?;
    let split = body
        .char_indices()
        .skip(1)
        .filter(|(at, sign)| {
            matches!(sign, '+' | '-') && !matches!(body.as_bytes()[at - 1], b'e' | b'E' | b'p' | b'P')
        })
        .map(|(at, _)| at)
        .last()
        .ok_or_else(invalid)?;
    let real = parse_float(&body[..split]).ok_or_else(invalid)?;
    let imaginary = parse_float(&body[split..]).ok_or_else(invalid)?;
    Ok(simplified(text, real, imaginary))
}

/// A number without a second part.
pub(crate) fn number(text: &str) -> Result<Number, String> {
    if let Some(imaginary) = text.strip_suffix('i').and_then(parse_float) {
        return Ok(simplified(text, 0.0, imaginary));
    }
    let mut number = Number {
        text: text.to_owned(),
        int: parse_int(text),
        // A sign is none of an unsigned number's.
        uint: parse_uint(text).filter(|_| !text.starts_with(['+', '-'])),
        ..Number::default()
    };
    if number.int == Some(0) {
        number.uint = Some(0);
    }
    if let Some(int) = number.int {
        number.float = Some(int as f64);
    } else if let Some(uint) = number.uint {
        number.float = Some(uint as f64);
    } else if let Some(float) = parse_float(text) {
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(format!("integer overflow: {text:?}"));
        }
        number.float = Some(float);
        (number.int, number.uint) = whole(float);
    } else {
        return Err(format!("illegal number syntax: {text:?}"));
    }
    Ok(number)
}

fn simplified(text: &str, real: f64, imaginary: f64) -> Number {
    let mut number = Number {
        text: text.to_owned(),
        complex: Some((real, imaginary)),
        ..Number::default()
    };
    if imaginary == 0.0 {
        number.float = Some(real);
        (number.int, number.uint) = whole(real);
    }
    number
}

fn whole(float: f64) -> (Option<i64>, Option<u64>) {
    let int = Some(super::numbers::truncate(float)).filter(|int| *int as f64 == float);
    let uint = (0.0..18_446_744_073_709_551_616.0)
        .contains(&float)
        .then_some(float as u64)
        .filter(|uint| *uint as f64 == float);
    (int, uint)
}
