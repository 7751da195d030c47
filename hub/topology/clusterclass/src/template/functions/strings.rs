//! Owns: the functions of texts: cutting, joining, filling, quoting, base 64 and 32.

use super::{
    super::{
        cast::to_text,
        limits::Failure,
        meter::Meter,
        print, quote, runes,
        signature::{
            Signature,
            Type::{Any, Int, Text},
            any, at_least, exactly, int, said, text, texts,
        },
        value::{self, Element, Value},
    },
    base, bytes,
};

/// A function by name.
pub(super) fn find(name: &str) -> Option<Signature> {
    cut(name)
        .or_else(|| found(name))
        .or_else(|| filled(name))
        .or_else(|| parted(name))
}

fn cut(name: &str) -> Option<Signature> {
    match name {
        "abbrev" => exactly(&[Int, Text], |meter, given| {
            let (width, text) = (int(given, 0), text(given, 1));
            said(
                meter,
                if width < 4 {
                    text.to_vec()
                } else {
                    abbreviated(text, 0, width)
                },
            )
        }),
        "abbrevboth" => exactly(&[Int, Int, Text], |meter, given| {
            let (left, right, text) = (int(given, 0), int(given, 1), text(given, 2));
            let whole = right < 4 || left > 0 && right < 7;
            said(
                meter,
                if whole {
                    text.to_vec()
                } else {
                    abbreviated(text, left, right)
                },
            )
        }),
        "trunc" => exactly(&[Int, Text], |meter, given| {
            let (count, text) = (int(given, 0), text(given, 1));
            let size = usize::try_from(count.unsigned_abs())
                .unwrap_or(usize::MAX)
                .min(text.len());
            said(
                meter,
                if count < 0 {
                    &text[text.len() - size..]
                } else {
                    &text[..size]
                },
            )
        }),
        "substr" => exactly(&[Int, Int, Text], substring),
        "trim" => exactly(&[Text], |meter, given| {
            said(meter, bytes::trim(text(given, 0), runes::is_space))
        }),
        "trimall" | "trimAll" => exactly(&[Text, Text], |meter, given| {
            let drop: Vec<char> = runes::chars(text(given, 0)).collect();
            meter.step((drop.len() as u64).saturating_mul(text(given, 1).len() as u64) / 256)?;
            said(
                meter,
                bytes::trim(text(given, 1), |character| drop.contains(&character)),
            )
        }),
        "trimSuffix" => exactly(&[Text, Text], |meter, given| {
            let text = text(given, 1);
            said(meter, text.strip_suffix(self::text_of(given)).unwrap_or(text))
        }),
        "trimPrefix" => exactly(&[Text, Text], |meter, given| {
            let text = text(given, 1);
            said(meter, text.strip_prefix(self::text_of(given)).unwrap_or(text))
        }),
        _ => None,
    }
}

fn found(name: &str) -> Option<Signature> {
    match name {
        "contains" => exactly(&[Text, Text], |meter, given| {
            let work = text(given, 0).len() as u64 * text(given, 1).len() as u64;
            meter.step(work / 4_096)?;
            Ok(Value::Bool(bytes::find(text(given, 1), text(given, 0)).is_some()))
        }),
        "hasPrefix" => exactly(&[Text, Text], |_, given| {
            Ok(Value::Bool(text(given, 1).starts_with(text(given, 0))))
        }),
        "hasSuffix" => exactly(&[Text, Text], |_, given| {
            Ok(Value::Bool(text(given, 1).ends_with(text(given, 0))))
        }),
        _ => None,
    }
}

fn text_of(given: &[Value]) -> &[u8] {
    text(given, 0)
}

fn filled(name: &str) -> Option<Signature> {
    match name {
        "hello" => exactly(&[], |meter, _| said(meter, "Hello!")),
        "repeat" => exactly(&[Int, Text], |meter, given| {
            let text = text(given, 1);
            let count =
                usize::try_from(int(given, 0)).map_err(|_| Failure::new("strings: negative Repeat count"))?;
            meter.text(text.len().saturating_mul(count))?;
            said(
                meter,
                if text.is_empty() {
                    Vec::new()
                } else {
                    text.repeat(count)
                },
            )
        }),
        "quote" => at_least(&[], Any, |meter, given| {
            let mut parts = Vec::new();
            for value in given.iter().filter(|value| !value.is_none()) {
                parts.push(quote::quote(&to_text(meter, value)?, false));
            }
            said(meter, parts.join(&b' '))
        }),
        "squote" => at_least(&[], Any, |meter, given| {
            let mut parts = Vec::new();
            for value in given.iter().filter(|value| !value.is_none()) {
                parts.push([b"'", print::plain(meter, value)?.as_slice(), b"'"].concat());
            }
            said(meter, parts.join(&b' '))
        }),
        "cat" => at_least(&[], Any, |meter, given| {
            let mut parts = Vec::new();
            for value in given.iter().filter(|value| !value.is_none()) {
                parts.push(print::plain(meter, value)?);
            }
            said(meter, parts.join(&b' '))
        }),
        "indent" => exactly(&[Int, Text], |meter, given| indented(meter, given, "")),
        "nindent" => exactly(&[Int, Text], |meter, given| indented(meter, given, "\n")),
        "replace" => exactly(&[Text, Text, Text], |meter, given| {
            let (old, new, text) = (text(given, 0), text(given, 1), text(given, 2));
            meter.step(text.len() as u64 * old.len() as u64 / 4_096)?;
            meter.text(bytes::replaced(text, old, new))?;
            said(meter, bytes::replace(text, old, new))
        }),
        "plural" => exactly(&[Text, Text, Int], |_, given| {
            Ok(any(given, usize::from(int(given, 2) != 1)).clone())
        }),
        "toString" => exactly(&[Any], |meter, given| {
            Ok(Value::Text(to_text(meter, any(given, 0))?))
        }),
        "b64enc" => exactly(&[Text], |meter, given| {
            said(meter, base::encode64(text(given, 0)))
        }),
        "b32enc" => exactly(&[Text], |meter, given| {
            said(meter, base::encode32(text(given, 0)))
        }),
        "b64dec" => exactly(&[Text], |meter, given| match base::decode64(text(given, 0)) {
            Ok(bytes) => said(meter, bytes),
            Err(at) => said(meter, format!("illegal base64 data at input byte {at}")),
        }),
        "b32dec" => exactly(&[Text], |meter, given| match base::decode32(text(given, 0)) {
            Ok(bytes) => said(meter, bytes),
            Err(at) => said(meter, format!("illegal base32 data at input byte {at}")),
        }),
        _ => None,
    }
}

fn parted(name: &str) -> Option<Signature> {
    match name {
        "split" => exactly(&[Text, Text], |meter, given| {
            meter.step(text(given, 0).len() as u64 * text(given, 1).len() as u64 / 4_096)?;
            numbered(meter, bytes::split(text(given, 1), text(given, 0), usize::MAX))
        }),
        "splitn" => exactly(&[Text, Int, Text], |meter, given| {
            let most = match int(given, 1) {
                0 => return numbered(meter, Vec::new()),
                most => usize::try_from(most).unwrap_or(usize::MAX),
            };
            meter.step(text(given, 0).len() as u64 * text(given, 2).len() as u64 / 4_096)?;
            numbered(meter, bytes::split(text(given, 2), text(given, 0), most))
        }),
        "splitList" => exactly(&[Text, Text], |meter, given| {
            meter.step(text(given, 0).len() as u64 * text(given, 1).len() as u64 / 4_096)?;
            let parts = bytes::split(text(given, 1), text(given, 0), usize::MAX);
            texts(meter, parts)
        }),
        "toStrings" => exactly(&[Any], |meter, given| {
            let parts = strings(meter, any(given, 0))?;
            texts(meter, parts)
        }),
        "join" => exactly(&[Text, Any], |meter, given| {
            let parts = strings(meter, any(given, 1))?;
            let length: usize = parts.iter().map(|part| part.len() + text(given, 0).len()).sum();
            meter.text(length.saturating_sub(text(given, 0).len()))?;
            let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
            said(meter, parts.join(text(given, 0)))
        }),
        "sortAlpha" => exactly(&[Any], |meter, given| {
            let mut parts = match any(given, 0) {
                list @ Value::List(_) => strings(meter, list)?,
                other => vec![to_text(meter, other)?],
            };
            parts.sort();
            texts(meter, parts)
        }),
        _ => None,
    }
}

/// The texts of a list, or of what is none.
fn strings(meter: &mut Meter, value: &Value) -> Result<Vec<value::Text>, Failure> {
    match value {
        Value::List(list) => {
            let mut parts = Vec::new();
            for item in list.items.iter().filter(|item| !item.is_none()) {
                meter.step(1)?;
                parts.push(to_text(meter, item)?);
            }
            Ok(parts)
        }
        none if none.is_none() => Ok(Vec::new()),
        other => Ok(vec![to_text(meter, other)?]),
    }
}

fn numbered(meter: &mut Meter, parts: Vec<&[u8]>) -> Result<Value, Failure> {
    meter.items(parts.len())?;
    let mut entries = std::collections::BTreeMap::new();
    for (at, part) in parts.into_iter().enumerate() {
        meter.text(part.len())?;
        entries.insert(value::Text::from(format!("_{at}").as_bytes()), Value::text(part));
    }
    meter.dict_of(entries, Element::Text)
}

fn indented(meter: &mut Meter, given: &[Value], before: &str) -> Result<Value, Failure> {
    let (spaces, text) = (int(given, 0), text(given, 1));
    let spaces = usize::try_from(spaces).map_err(|_| Failure::new("strings: negative Repeat count"))?;
    let lines = text.iter().filter(|byte| **byte == b'\n').count() + 1;
    meter.text(spaces.saturating_mul(lines).saturating_add(text.len()))?;
    let pad = " ".repeat(spaces);
    let mut out = before.as_bytes().to_vec();
    for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if at > 0 {
            out.push(b'\n');
        }
        out.extend_from_slice(pad.as_bytes());
        out.extend_from_slice(line);
    }
    said(meter, out)
}

fn substring(meter: &mut Meter, given: &[Value]) -> Result<Value, Failure> {
    let (start, end, text) = (int(given, 0), int(given, 1), text(given, 2));
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let (start, end) = match (start, end) {
        (start, end) if start < 0 => (0, end),
        (start, end) if end < 0 || end > length => (start, length),
        both => both,
    };
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    match range.and_then(|(start, end)| text.get(start..end)) {
        Some(part) => said(meter, part),
        None => Err(Failure::new("runtime error: slice bounds out of range")),
    }
}

/// A text with dots for what is left out, as `goutils.AbbreviateFull` does it.
fn abbreviated(text: &[u8], offset: i64, width: i64) -> Vec<u8> {
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    if length <= width {
        return text.to_vec();
    }
    let mut offset = offset.min(length);
    if length - offset < width - 3 {
        offset = length - (width - 3);
    }
    let part = |from: i64, to: i64| {
        let from = usize::try_from(from).unwrap_or(0);
        let to = usize::try_from(to).unwrap_or(0);
        text.get(from..to).unwrap_or(&[])
    };
    if offset <= 4 {
        return [part(0, width - 3), b"..."].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + width - 3 < length {
        return [b"...", abbreviated(part(offset, length), 0, width - 3).as_slice()].concat();
    }
    [b"...", part(length - (width - 3), length)].concat()
}
