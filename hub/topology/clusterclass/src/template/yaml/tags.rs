//! Owns: how tags and directives of YAML are read.

use super::{
    cursor::{Cursor, is_alpha, is_blank, is_blankz, is_breakz},
    scalars::at,
};

/// A directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Directive {
    /// `%YAML`; whether it is 1.1.
    Version(bool),
    /// `%TAG`: handle and prefix.
    Tag(String, String),
}

/// Most digits of a version's number.
const MAX_NUMBER: usize = 2;

/// A directive, to the end of its line.
pub(super) fn directive(cursor: &mut Cursor) -> Result<Directive, String> {
    cursor.skip();
    let mut name = String::new();
    while is_alpha(cursor.here()) {
        cursor.read(&mut name);
    }
    if name.is_empty() {
        return Err(at(cursor, "could not find expected directive name"));
    }
    if !is_blankz(cursor.here()) {
        return Err(at(cursor, "found unexpected non-alphabetical character"));
    }
    let directive = match name.as_str() {
        "YAML" => version(cursor)?,
        "TAG" => tag_directive(cursor)?,
        _ => return Err(at(cursor, "found unknown directive name")),
    };
    cursor.skip_blanks();
    cursor.skip_comment();
    if !is_breakz(cursor.here()) {
        return Err(at(cursor, "did not find expected comment or line break"));
    }
    cursor.skip_line();
    Ok(directive)
}

fn version(cursor: &mut Cursor) -> Result<Directive, String> {
    cursor.skip_blanks();
    let major = number(cursor)?;
    if cursor.here() != '.' {
        return Err(at(cursor, "did not find expected digit or '.' character"));
    }
    cursor.skip();
    let minor = number(cursor)?;
    Ok(Directive::Version(major == 1 && minor == 1))
}

fn number(cursor: &mut Cursor) -> Result<u32, String> {
    let (mut value, mut length) = (0, 0);
    while let Some(digit) = cursor.here().to_digit(10) {
        length += 1;
        if length > MAX_NUMBER {
            return Err(at(cursor, "found extremely long version number"));
        }
        value = value * 10 + digit;
        cursor.skip();
    }
    if length == 0 {
        return Err(at(cursor, "did not find expected version number"));
    }
    Ok(value)
}

fn tag_directive(cursor: &mut Cursor) -> Result<Directive, String> {
    cursor.skip_blanks();
    let handle = handle(cursor, true)?;
    if !is_blank(cursor.here()) {
        return Err(at(cursor, "did not find expected whitespace"));
    }
    cursor.skip_blanks();
    let prefix = uri(cursor, "")?;
    if !is_blankz(cursor.here()) {
        return Err(at(cursor, "did not find expected whitespace or line break"));
    }
    Ok(Directive::Tag(handle, prefix))
}

/// A tag: handle, which is empty where the tag is written whole, and suffix.
pub(super) fn tag(cursor: &mut Cursor) -> Result<(String, String), String> {
    let found = if cursor.peek(1) == '<' {
        cursor.skip();
        cursor.skip();
        let suffix = uri(cursor, "")?;
        if cursor.here() != '>' {
            return Err(at(cursor, "did not find the expected '>'"));
        }
        cursor.skip();
        (String::new(), suffix)
    } else {
        let handle = handle(cursor, false)?;
        if handle.len() > 1 && handle.ends_with('!') {
            let suffix = uri(cursor, "")?;
            (handle, suffix)
        } else {
            let suffix = uri(cursor, &handle)?;
            if suffix.is_empty() {
                (String::new(), "!".to_owned())
            } else {
                ("!".to_owned(), suffix)
            }
        }
    };
    if !is_blankz(cursor.here()) {
        return Err(at(cursor, "did not find expected whitespace or line break"));
    }
    Ok(found)
}

fn handle(cursor: &mut Cursor, directive: bool) -> Result<String, String> {
    if cursor.here() != '!' {
        return Err(at(cursor, "did not find expected '!'"));
    }
    let mut text = String::new();
    cursor.read(&mut text);
    while is_alpha(cursor.here()) {
        cursor.read(&mut text);
    }
    if cursor.here() == '!' {
        cursor.read(&mut text);
    } else if directive && text != "!" {
        return Err(at(cursor, "did not find expected '!'"));
    }
    Ok(text)
}

/// A URI that begins with what was read as a handle.
fn uri(cursor: &mut Cursor, head: &str) -> Result<String, String> {
    let mut found = !head.is_empty();
    let mut bytes = head.as_bytes().get(1..).unwrap_or(&[]).to_vec();
    while is_alpha(cursor.here()) || ";/?:@&=+$,.!~*'()[]%".contains(cursor.here()) {
        found = true;
        if cursor.here() != '%' {
            bytes.extend_from_slice(cursor.here().encode_utf8(&mut [0; 4]).as_bytes());
            cursor.skip();
            continue;
        }
        let byte = cursor.peek(1).to_digit(16).zip(cursor.peek(2).to_digit(16));
        let (high, low) = byte.ok_or_else(|| at(cursor, "did not find URI escaped octet"))?;
        bytes.push((high * 16 + low) as u8);
        (0..3).for_each(|_| cursor.skip());
    }
    if !found {
        return Err(at(cursor, "did not find expected tag URI"));
    }
    String::from_utf8(bytes).map_err(|_| at(cursor, "found an incorrect UTF-8 octet"))
}
