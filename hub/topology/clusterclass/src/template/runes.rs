//! Owns: text as Go sees it: bytes, decoded into characters where somebody asks, with Go's character classes.
//! Never: refuses bytes that are no UTF-8; like Go it reads each such byte as U+FFFD.

pub(crate) use crate::unicode::{is_digit, is_letter, is_lower, is_number, is_print, is_punct, is_upper};

/// Replaces a byte that is no UTF-8.
pub(crate) const BAD: char = '\u{fffd}';

/// The first character of bytes and how many bytes it has; a byte that is no UTF-8 is [`BAD`] of one byte.
pub(crate) fn first(bytes: &[u8]) -> Option<(char, usize)> {
    let lead = *bytes.first()?;
    let length = match lead {
        0..=0x7f => return Some((char::from(lead), 1)),
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Some((BAD, 1)),
    };
    let whole = bytes
        .get(..length)
        .and_then(|part| std::str::from_utf8(part).ok());
    Some(match whole.and_then(|text| text.chars().next()) {
        Some(character) => (character, length),
        None => (BAD, 1),
    })
}

/// Characters with the offsets at which they start, and their lengths.
pub(crate) fn indexed(bytes: &[u8]) -> impl Iterator<Item = (usize, char, usize)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (character, length) = first(bytes.get(at..)?)?;
        let start = at;
        at += length;
        Some((start, character, length))
    })
}

/// Characters.
pub(crate) fn chars(bytes: &[u8]) -> impl Iterator<Item = char> + '_ {
    indexed(bytes).map(|(_, character, _)| character)
}

/// Number of characters.
pub(crate) fn count(bytes: &[u8]) -> usize {
    indexed(bytes).count()
}

/// Appends a character.
pub(crate) fn push(out: &mut Vec<u8>, character: char) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Text for people and for JSON: what is no UTF-8 is [`BAD`], a byte at a time.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => chars(bytes).collect(),
    }
}

/// White space: the property, as Go has it.
pub(crate) fn is_space(character: char) -> bool {
    character.is_whitespace()
}

/// One character for one: what would become several stays, as with Go's `unicode.ToUpper`.
pub(crate) fn upper(character: char) -> char {
    single(character.to_uppercase(), character)
}

/// One character for one, as with Go's `unicode.ToLower`.
pub(crate) fn lower(character: char) -> char {
    match character {
        '\u{130}' => 'i',
        other => single(other.to_lowercase(), other),
    }
}

fn single(mut mapped: impl Iterator<Item = char>, unmapped: char) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => unmapped,
    }
}
