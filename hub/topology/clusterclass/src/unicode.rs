//! Owns: the classes of characters that Go knows, by the tables that regular expressions have anyway. Each is read once.

use std::sync::LazyLock;

use regex::Regex;

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

/// Returns true for characters that Go prints as they are: letters, marks, numbers, punctuation, symbols and the ASCII
/// space.
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
