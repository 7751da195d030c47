//! Owns: texts that are safe in HTML, in JavaScript and in the query of a URL, as Go's `text/template` writes them.

use super::super::{limits::Failure, meter::Meter, print, runes, value::Value};

/// The text of arguments: one text as it is, anything else as it is printed.
pub(super) fn arguments(meter: &mut Meter, given: &[Value]) -> Result<Vec<u8>, Failure> {
    if let [Value::Text(text)] = given {
        return Ok(text.to_vec());
    }
    let shown: Vec<Value> = given
        .iter()
        .map(|value| {
            if value.is_none() {
                Value::text("<no value>")
            } else {
                value.clone()
            }
        })
        .collect();
    print::sprint(meter, &shown)
}

/// `html`.
pub(super) fn html(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            0 => runes::push(&mut out, runes::BAD),
            other => out.push(*other),
        }
    }
    out
}

/// `js`.
pub(super) fn js(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for (at, character, length) in runes::indexed(text) {
        match character {
            '\\' | '\'' | '"' => {
                out.push(b'\\');
                runes::push(&mut out, character);
            }
            '<' | '>' | '&' | '=' => {
                out.extend_from_slice(format!("\\u{:04X}", u32::from(character)).as_bytes());
            }
            ascii if ascii < ' ' => {
                out.extend_from_slice(format!("\\u{:04X}", u32::from(character)).as_bytes());
            }
            ascii if ascii.is_ascii() => runes::push(&mut out, ascii),
            other if runes::is_print(other) => out.extend_from_slice(&text[at..at + length]),
            other => out.extend_from_slice(format!("\\u{:04X}", u32::from(other)).as_bytes()),
        }
    }
    out
}

/// `urlquery`.
pub(super) fn query(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b' ' => out.push(b'+'),
            b'-' | b'_' | b'.' | b'~' => out.push(*byte),
            other if other.is_ascii_alphanumeric() => out.push(*other),
            other => out.extend_from_slice(format!("%{other:02X}").as_bytes()),
        }
    }
    out
}
