//! Owns: Go's string literals: what `%q` writes, and what a template's strings and characters mean.

use super::runes;

/// `%q`: a Go string literal in double quotes; with `ascii` only of ASCII.
pub(crate) fn quote(bytes: &[u8], ascii: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 2);
    out.push(b'"');
    for (at, character, length) in runes::indexed(bytes) {
        if character == runes::BAD && length == 1 {
            out.extend_from_slice(format!("\\x{:02x}", bytes[at]).as_bytes());
        } else {
            escape(&mut out, character, '"', ascii);
        }
    }
    out.push(b'"');
    out
}

/// `%q` of a number: a character literal.
pub(crate) fn quote_char(character: char, ascii: bool) -> Vec<u8> {
    let mut out = vec![b'\''];
    escape(&mut out, character, '\'', ascii);
    out.push(b'\'');
    out
}

fn escape(out: &mut Vec<u8>, character: char, quote: char, ascii: bool) {
    if character == quote || character == '\\' {
        out.push(b'\\');
        return runes::push(out, character);
    }
    if runes::is_print(character) && (!ascii || character.is_ascii()) {
        return runes::push(out, character);
    }
    let code = u32::from(character);
    let text = match character {
        '\x07' => "\\a".to_owned(),
        '\x08' => "\\b".to_owned(),
        '\x0c' => "\\f".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\x0b' => "\\v".to_owned(),
        _ if code < 0x20 || code == 0x7f => format!("\\x{code:02x}"),
        _ if code < 0x10000 => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    };
    out.extend_from_slice(text.as_bytes());
}

/// Returns true if a text can stand between back quotes.
pub(crate) fn can_backquote(bytes: &[u8]) -> bool {
    runes::indexed(bytes).all(|(_, character, length)| {
        !(character == runes::BAD && length == 1
            || character == '\u{feff}'
            || character < ' ' && character != '\t'
            || character == '`'
            || character == '\x7f')
    })
}

/// The value of a literal in double or back quotes; `None` if it is not one.
pub(crate) fn unquote(literal: &str) -> Option<Vec<u8>> {
    if let Some(raw) = literal.strip_prefix('`') {
        let raw = raw.strip_suffix('`')?;
        return (!raw.contains('`')).then(|| raw.bytes().filter(|byte| *byte != b'\r').collect());
    }
    let mut rest = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let (item, tail) = unquote_char(rest, '"')?;
        match item {
            Unquoted::Byte(byte) => out.push(byte),
            Unquoted::Char(character) => runes::push(&mut out, character),
        }
        rest = tail;
    }
    Some(out)
}

/// One element of a literal.
pub(crate) enum Unquoted {
    /// Written as a byte: `\x..` and octal.
    Byte(u8),
    /// Written as a character.
    Char(char),
}

impl Unquoted {
    /// Its number.
    pub(crate) fn code(&self) -> u32 {
        match self {
            Self::Byte(byte) => u32::from(*byte),
            Self::Char(character) => u32::from(*character),
        }
    }
}

/// The first element between the quotes, and the rest; `None` if it may not stand there.
pub(crate) fn unquote_char(text: &str, quote: char) -> Option<(Unquoted, &str)> {
    let mut chars = text.chars();
    let head = chars.next()?;
    if head == quote || head == '\n' {
        return None;
    }
    if head != '\\' {
        return Some((Unquoted::Char(head), chars.as_str()));
    }
    let kind = chars.next()?;
    let rest = chars.as_str();
    let simple = |character| Some((Unquoted::Char(character), rest));
    match kind {
        'a' => simple('\x07'),
        'b' => simple('\x08'),
        'f' => simple('\x0c'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\x0b'),
        '\\' => simple('\\'),
        '\'' | '"' if kind == quote => simple(kind),
        'x' => coded(rest, 2, 16).map(|(code, rest)| (Unquoted::Byte(code as u8), rest)),
        'u' => unicode(rest, 4),
        'U' => unicode(rest, 8),
        '0'..='7' => {
            let (code, rest) = coded(&text[1..], 3, 8)?;
            (code < 256).then_some((Unquoted::Byte(code as u8), rest))
        }
        _ => None,
    }
}

fn unicode(text: &str, digits: usize) -> Option<(Unquoted, &str)> {
    let (code, rest) = coded(text, digits, 16)?;
    Some((Unquoted::Char(char::from_u32(code)?), rest))
}

fn coded(text: &str, digits: usize, radix: u32) -> Option<(u32, &str)> {
    let head = text.get(..digits)?;
    if !head.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let code = u32::from_str_radix(head, radix).ok()?;
    Some((code, &text[digits..]))
}
