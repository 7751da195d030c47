//! Owns: JSON as Go's `encoding/json` writes and reads it: every number that is read is a float.
//! Never: nests deeper than [`MAX_NESTING`].

use std::collections::BTreeMap;

use super::{
    floats,
    limits::{Failure, MAX_NESTING, nested},
    meter::Meter,
    numbers::parse_float,
    runes,
    value::{Element, List, Text, Value},
};

/// A style of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `<`, `>` and `&` are escaped, as `json.Marshal` does.
    Escaped,
    /// The same, over several lines.
    Pretty,
    /// Nothing is escaped that need not be.
    Raw,
}

/// Writes a value.
pub(crate) fn write(meter: &mut Meter, value: &Value, style: Style) -> Result<Vec<u8>, Failure> {
    let mut writer = Writer {
        meter,
        style,
        out: Vec::new(),
    };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer<'a> {
    meter: &'a mut Meter,
    style: Style,
    out: Vec<u8>,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Failure> {
        self.meter.step(1)?;
        self.meter
            .text(self.out.len().saturating_sub(super::limits::MAX_TEXT - 1))?;
        nested(depth)?;
        let text = match value {
            Value::Missing | Value::Nil => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Int(int) | Value::Int64(int) | Value::Named(_, int, _) => int.to_string(),
            Value::Uint64(int) => int.to_string(),
            Value::Byte(byte) => byte.to_string(),
            Value::Float(float) => floats::json(*float)
                .ok_or_else(|| Failure::new(format!("json: unsupported value: {float}")))?,
            Value::Complex(..) => return Err(Failure::new("json: unsupported type: complex128")),
            Value::Text(text) => return self.text(text),
            Value::Version(version) | Value::Release(version) => {
                return self.text(version.to_string().as_bytes());
            }
            Value::Time(time) => format!("\"{}\"", time.rfc3339()),
            Value::List(list) if list.nil => "null".to_owned(),
            Value::Dict(dict) if dict.nil => "null".to_owned(),
            Value::List(list) => {
                self.out.push(b'[');
                for (at, item) in list.items.iter().enumerate() {
                    self.separate(at, depth + 1);
                    self.value(item, depth + 1)?;
                }
                self.close(list.items.is_empty(), depth, b']');
                return Ok(());
            }
            Value::Dict(dict) => {
                self.out.push(b'{');
                let entries = dict.snapshot();
                for (at, (key, item)) in entries.iter().enumerate() {
                    self.separate(at, depth + 1);
                    self.text(key)?;
                    self.out
                        .extend_from_slice(if self.style == Style::Pretty { b": " } else { b":" });
                    self.value(item, depth + 1)?;
                }
                self.close(entries.is_empty(), depth, b'}');
                return Ok(());
            }
        };
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn separate(&mut self, at: usize, depth: usize) {
        if at > 0 {
            self.out.push(b',');
        }
        self.line(depth);
    }

    fn close(&mut self, empty: bool, depth: usize, sign: u8) {
        if !empty {
            self.line(depth);
        }
        self.out.push(sign);
    }

    fn line(&mut self, depth: usize) {
        if self.style == Style::Pretty {
            self.out.push(b'\n');
            self.out.extend(std::iter::repeat_n(b' ', 2 * depth));
        }
    }

    fn text(&mut self, text: &[u8]) -> Result<(), Failure> {
        self.meter.text(text.len())?;
        quote(&mut self.out, text, self.style != Style::Raw);
        Ok(())
    }
}

/// Appends a JSON string.
pub(crate) fn quote(out: &mut Vec<u8>, text: &[u8], html: bool) {
    out.push(b'"');
    for (at, character, length) in runes::indexed(text) {
        let escaped = match character {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\x08' => "\\b",
            '\x0c' => "\\f",
            '\u{2028}' => "\\u2028",
            '\u{2029}' => "\\u2029",
            '<' if html => "\\u003c",
            '>' if html => "\\u003e",
            '&' if html => "\\u0026",
            runes::BAD if length == 1 => "\\ufffd",
            control if control < ' ' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(control)).as_bytes());
                continue;
            }
            _ => {
                out.extend_from_slice(text.get(at..at + length).unwrap_or(&[]));
                continue;
            }
        };
        out.extend_from_slice(escaped.as_bytes());
    }
    out.push(b'"');
}

/// Reads a value, and nothing behind it.
pub(crate) fn read(meter: &mut Meter, text: &[u8]) -> Result<Value, Failure> {
    let mut reader = Reader { meter, text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    match reader.text.get(reader.at) {
        None => Ok(value),
        Some(_) => Err(reader.invalid()),
    }
}

struct Reader<'a> {
    meter: &'a mut Meter,
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn invalid(&self) -> Failure {
        match self.text.get(self.at) {
            None => Failure::new("unexpected end of JSON input"),
            Some(_) => Failure::new(format!("invalid character in JSON at byte {}", self.at)),
        }
    }

    fn space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Failure> {
        for byte in word.bytes() {
            if !self.take(byte) {
                return Err(self.invalid());
            }
        }
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Result<Value, Failure> {
        self.meter.step(1)?;
        if depth > MAX_NESTING {
            return Err(Failure::new(format!(
                "JSON is nested deeper than {MAX_NESTING} levels"
            )));
        }
        self.space();
        match self.text.get(self.at) {
            Some(b'n') => self.word("null", Value::Nil),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'"') => Ok(Value::Text(self.string()?)),
            Some(b'[') => self.list(depth),
            Some(b'{') => self.dict(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.invalid()),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, Failure> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if !self.take(b']') {
            loop {
                items.push(self.value(depth + 1)?);
                self.space();
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.invalid());
                }
            }
        }
        self.meter.items(items.len())?;
        Ok(Value::List(List::new(items, Element::Any)?))
    }

    fn dict(&mut self, depth: usize) -> Result<Value, Failure> {
        self.at += 1;
        let mut entries = BTreeMap::new();
        self.space();
        if !self.take(b'}') {
            loop {
                self.space();
                if self.text.get(self.at) != Some(&b'"') {
                    return Err(self.invalid());
                }
                let key = self.string()?;
                self.space();
                if !self.take(b':') {
                    return Err(self.invalid());
                }
                let value = self.value(depth + 1)?;
                entries.insert(key, value);
                self.space();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.invalid());
                }
            }
        }
        self.meter.dict(entries)
    }

    fn digits(&mut self) -> Result<(), Failure> {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.invalid());
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, Failure> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        let text = String::from_utf8_lossy(&self.text[start..self.at]).into_owned();
        parse_float(&text)
            .map(Value::Float)
            .ok_or_else(|| Failure::new(format!("json: cannot read number {text}")))
    }

    fn string(&mut self) -> Result<Text, Failure> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let Some((character, length)) = runes::first(self.text.get(self.at..).unwrap_or(&[])) else {
                return Err(self.invalid());
            };
            if character < ' ' {
                return Err(self.invalid());
            }
            self.at += length;
            match character {
                '"' => break,
                '\\' => self.escape(&mut out)?,
                other => runes::push(&mut out, other),
            }
        }
        self.meter.text(out.len())?;
        Ok(Text::from(out))
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), Failure> {
        let kind = self.text.get(self.at).copied();
        self.at += 1;
        out.push(match kind {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let code = self.code()?;
                let ahead = self.text.get(self.at..self.at + 2) == Some(b"\\u");
                if (0xd800..0xdc00).contains(&code) && ahead {
                    let back = self.at;
                    self.at += 2;
                    let low = self.code()?;
                    if (0xdc00..0xe000).contains(&low) {
                        let both = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                        runes::push(out, char::from_u32(both).unwrap_or(runes::BAD));
                        return Ok(());
                    }
                    self.at = back;
                }
                runes::push(out, char::from_u32(code).unwrap_or(runes::BAD));
                return Ok(());
            }
            _ => {
                self.at -= 1;
                return Err(self.invalid());
            }
        });
        Ok(())
    }

    fn code(&mut self) -> Result<u32, Failure> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self
                .text
                .get(self.at)
                .and_then(|byte| char::from(*byte).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.invalid())?;
            self.at += 1;
        }
        Ok(code)
    }
}
