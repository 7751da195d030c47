//! Owns: text as Go sees it: bytes, decoded into characters where somebody asks, with Go's character classes.
//! Never: refuses bytes that are no UTF-8; like Go it reads each such byte as U+FFFD.

use std::sync::LazyLock;

use regex::Regex;

/// What stands for a byte that is no UTF-8.
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

/// How many characters.
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

/// A letter, Unicode category L.
pub(crate) fn is_letter(character: char) -> bool {
    class(character, &LETTER, |byte| byte.is_ascii_alphabetic())
}

/// A decimal digit, category Nd.
pub(crate) fn is_digit(character: char) -> bool {
    class(character, &DIGIT, |byte| byte.is_ascii_digit())
}

/// A number, category N.
pub(crate) fn is_number(character: char) -> bool {
    class(character, &NUMBER, |byte| byte.is_ascii_digit())
}

/// Punctuation, category P: of ASCII all but what is a symbol.
pub(crate) fn is_punct(character: char) -> bool {
    class(character, &PUNCT, |byte| {
        byte.is_ascii_punctuation() && !b"$+<=>^`|~".contains(byte)
    })
}

/// What Go prints as it is: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub(crate) fn is_print(character: char) -> bool {
    class(character, &PRINT, |byte| (0x20..0x7f).contains(byte))
}

/// Category Lu.
pub(crate) fn is_upper(character: char) -> bool {
    class(character, &UPPER, |byte| byte.is_ascii_uppercase())
}

/// Category Ll.
pub(crate) fn is_lower(character: char) -> bool {
    class(character, &LOWER, |byte| byte.is_ascii_lowercase())
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

static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\A\p{L}").ok());
static DIGIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\A\p{Nd}").ok());
static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\A\p{N}").ok());
static PUNCT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\A\p{P}").ok());
static UPPER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\A\p{Lu}").ok());
static LOWER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\A\p{Ll}").ok());
static PRINT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\A[\p{L}\p{M}\p{N}\p{P}\p{S}]").ok());

fn class(character: char, other: &Option<Regex>, ascii: fn(&u8) -> bool) -> bool {
    match u8::try_from(character) {
        Ok(byte) if byte < 0x80 => ascii(&byte),
        _ => other
            .as_ref()
            .is_some_and(|regex| regex.is_match(character.encode_utf8(&mut [0; 4]))),
    }
}
