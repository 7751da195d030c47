//! Owns: how the scalars of YAML are read: plain, in quotes, and as blocks, with the folding of their lines.

use super::cursor::{Cursor, END, is_blank, is_blankz, is_break, is_breakz};

/// White space between words: it is kept, folded, or dropped when the next word comes.
#[derive(Default)]
struct Gap {
    leading: String,
    trailing: String,
    blanks: String,
}

impl Gap {
    /// Reads white space; `broken` says whether a line ended already.
    fn read(&mut self, cursor: &mut Cursor, broken: &mut bool, indent: Option<usize>) -> Result<(), String> {
        while is_blank(cursor.here()) || is_break(cursor.here()) {
            if is_break(cursor.here()) {
                if *broken {
                    cursor.read_line(&mut self.trailing);
                } else {
                    self.blanks.clear();
                    cursor.read_line(&mut self.leading);
                    *broken = true;
                }
                continue;
            }
            let shallow = indent.is_some_and(|indent| cursor.column < indent);
            if *broken && shallow && cursor.here() == '\t' {
                return Err(at(cursor, "found a tab character that violates indentation"));
            }
            if *broken {
                cursor.skip();
            } else {
                cursor.read(&mut self.blanks);
            }
        }
        Ok(())
    }

    /// Writes its replacement between words.
    fn write(&mut self, into: &mut String, broken: bool) {
        if !broken {
            into.push_str(&self.blanks);
        } else if !self.leading.starts_with('\n') {
            into.push_str(&self.leading);
            into.push_str(&self.trailing);
        } else if self.trailing.is_empty() {
            into.push(' ');
        } else {
            into.push_str(&self.trailing);
        }
        *self = Self::default();
    }
}

/// A message with the line, from 1.
pub(super) fn at(cursor: &Cursor, message: &str) -> String {
    format!("line {}: {message}", cursor.line + 1)
}

/// A plain scalar, and whether a line break follows it.
pub(super) fn plain(cursor: &mut Cursor, flow: bool, indent: usize) -> Result<(String, bool), String> {
    let mut text = String::new();
    let mut gap = Gap::default();
    let mut broken = false;
    loop {
        if cursor.at_document('-') || cursor.at_document('.') || cursor.here() == '#' {
            break;
        }
        while !is_blankz(cursor.here()) {
            let here = cursor.here();
            let ends = here == ':' && is_blankz(cursor.peek(1))
                || flow && matches!(here, ',' | '?' | '[' | ']' | '{' | '}');
            if ends {
                break;
            }
            if broken || !gap.blanks.is_empty() {
                gap.write(&mut text, broken);
                broken = false;
            }
            cursor.read(&mut text);
        }
        if !is_blank(cursor.here()) && !is_break(cursor.here()) {
            break;
        }
        gap.read(cursor, &mut broken, Some(indent))?;
        if !flow && cursor.column < indent {
            break;
        }
    }
    Ok((text, broken))
}

/// A scalar in quotes.
pub(super) fn quoted(cursor: &mut Cursor, quote: char) -> Result<String, String> {
    cursor.skip();
    let mut text = String::new();
    let mut gap = Gap::default();
    loop {
        if cursor.at_document('-') || cursor.at_document('.') {
            return Err(at(cursor, "found unexpected document indicator"));
        }
        if cursor.here() == END {
            return Err(at(cursor, "found unexpected end of stream"));
        }
        let mut broken = false;
        while !is_blankz(cursor.here()) {
            match cursor.here() {
                '\'' if quote == '\'' && cursor.peek(1) == '\'' => {
                    text.push('\'');
                    cursor.skip();
                    cursor.skip();
                }
                here if here == quote => break,
                '\\' if quote == '"' && is_break(cursor.peek(1)) => {
                    cursor.skip();
                    cursor.skip_line();
                    broken = true;
                    break;
                }
                '\\' if quote == '"' => text.push(escape(cursor)?),
                _ => cursor.read(&mut text),
            }
        }
        if cursor.here() == quote {
            cursor.skip();
            return Ok(text);
        }
        gap.read(cursor, &mut broken, None)?;
        gap.write(&mut text, broken);
    }
}

fn escape(cursor: &mut Cursor) -> Result<char, String> {
    cursor.skip();
    let kind = cursor.here();
    cursor.skip();
    let length = match kind {
        '0' => return Ok('\0'),
        'a' => return Ok('\x07'),
        'b' => return Ok('\x08'),
        't' | '\t' => return Ok('\t'),
        'n' => return Ok('\n'),
        'v' => return Ok('\x0b'),
        'f' => return Ok('\x0c'),
        'r' => return Ok('\r'),
        'e' => return Ok('\x1b'),
        ' ' | '"' | '\'' | '\\' => return Ok(kind),
        'N' => return Ok('\u{85}'),
        '_' => return Ok('\u{a0}'),
        'L' => return Ok('\u{2028}'),
        'P' => return Ok('\u{2029}'),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return Err(at(cursor, "found unknown escape character")),
    };
    let mut code = 0_u32;
    for _ in 0..length {
        let digit = cursor.here().to_digit(16);
        let digit = digit.ok_or_else(|| at(cursor, "did not find expected hexdecimal number"))?;
        code = code.wrapping_shl(4) | digit;
        cursor.skip();
    }
    char::from_u32(code).ok_or_else(|| at(cursor, "found invalid Unicode character escape code"))
}

/// Treatment of line breaks at the end of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

/// The line that begins a block: chomping and indentation.
fn block_header(cursor: &mut Cursor) -> Result<(Chomping, usize), String> {
    let mut chomping = Chomping::Clip;
    let mut increment = 0;
    let mut read_chomping = |cursor: &mut Cursor| {
        chomping = match cursor.here() {
            '+' => Chomping::Keep,
            '-' => Chomping::Strip,
            _ => return false,
        };
        cursor.skip();
        true
    };
    let first = read_chomping(cursor);
    if let Some(digit) = cursor.here().to_digit(10) {
        if digit == 0 {
            return Err(at(cursor, "found an indentation indicator equal to 0"));
        }
        increment = digit as usize;
        cursor.skip();
        if !first {
            read_chomping(cursor);
        }
    }
    cursor.skip_blanks();
    cursor.skip_comment();
    if !is_breakz(cursor.here()) {
        return Err(at(cursor, "did not find expected comment or line break"));
    }
    cursor.skip_line();
    Ok((chomping, increment))
}

/// A block scalar; `parent` is the column of the block around it, or -1.
pub(super) fn block(cursor: &mut Cursor, literal: bool, parent: isize) -> Result<String, String> {
    cursor.skip();
    let (chomping, increment) = block_header(cursor)?;
    let mut indent = match increment {
        0 => 0,
        _ => usize::try_from(parent).unwrap_or(0) + increment,
    };
    let (mut text, mut leading, mut trailing) = (String::new(), String::new(), String::new());
    block_breaks(cursor, &mut indent, parent, &mut trailing)?;
    let mut leading_blank = false;
    while cursor.column == indent && cursor.here() != END {
        let trailing_blank = is_blank(cursor.here());
        if !literal && !leading_blank && !trailing_blank && leading.starts_with('\n') {
            if trailing.is_empty() {
                text.push(' ');
            }
        } else {
            text.push_str(&leading);
        }
        leading.clear();
        text.push_str(&trailing);
        trailing.clear();
        leading_blank = is_blank(cursor.here());
        while !is_breakz(cursor.here()) {
            cursor.read(&mut text);
        }
        cursor.read_line(&mut leading);
        block_breaks(cursor, &mut indent, parent, &mut trailing)?;
    }
    if chomping != Chomping::Strip {
        text.push_str(&leading);
    }
    if chomping == Chomping::Keep {
        text.push_str(&trailing);
    }
    Ok(text)
}

/// Indentation and empty lines; the first line that is not empty says what the indentation is, unless it is known.
fn block_breaks(
    cursor: &mut Cursor,
    indent: &mut usize,
    parent: isize,
    breaks: &mut String,
) -> Result<(), String> {
    let mut deepest = 0;
    loop {
        let shallow = |cursor: &Cursor| *indent == 0 || cursor.column < *indent;
        while shallow(cursor) && cursor.here() == ' ' {
            cursor.skip();
        }
        deepest = deepest.max(cursor.column);
        if shallow(cursor) && cursor.here() == '\t' {
            return Err(at(
                cursor,
                "found a tab character where an indentation space is expected",
            ));
        }
        if !is_break(cursor.here()) {
            break;
        }
        cursor.read_line(breaks);
    }
    if *indent == 0 {
        *indent = deepest.max(usize::try_from(parent + 1).unwrap_or(0)).max(1);
    }
    Ok(())
}
