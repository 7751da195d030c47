//! Owns: the words of a template, as Go's `text/template/parse` cuts them.
//! Never: fails twice: behind an error there is only the end.

use std::borrow::Cow;

use super::runes::{is_digit, is_letter};

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    End,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    Dot,
    Nil,
    Keyword,
}

/// A token and where it starts.
#[derive(Debug, Clone)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    /// Offset in the source, bytes.
    pub(crate) at: usize,
    /// Its text, or the problem with it.
    pub(crate) text: Cow<'a, str>,
}

impl Token<'_> {
    /// Returns true if it is that keyword.
    pub(crate) fn is(&self, keyword: &str) -> bool {
        self.kind == Kind::Keyword && self.text == keyword
    }
}

const KEYWORDS: [&str; 10] = [
    "block", "break", "continue", "define", "else", "end", "if", "range", "template", "with",
];
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];
const LEFT: &str = "{{";
const RIGHT: &str = "}}";
/// A trim marker: `-` and a space.
const MARKER: usize = 2;

/// Cuts one source.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    source: &'a str,
    at: usize,
    start: usize,
    parens: usize,
    inside: bool,
    failed: bool,
}

impl<'a> Lexer<'a> {
    /// At the start of a source.
    pub(crate) fn new(source: &'a str) -> Self {
        Self {
            source,
            at: 0,
            start: 0,
            parens: 0,
            inside: false,
            failed: false,
        }
    }

    /// The next token; behind the last one [`Kind::End`], for ever.
    pub(crate) fn next(&mut self) -> Token<'a> {
        if self.failed {
            return self.token(Kind::End);
        }
        self.start = self.at;
        if self.inside { self.action() } else { self.text() }
    }

    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn accept(&mut self, valid: &str) -> bool {
        let found = self.peek().is_some_and(|next| valid.contains(next));
        if found {
            self.bump();
        }
        found
    }

    fn token(&mut self, kind: Kind) -> Token<'a> {
        let at = self.start;
        self.start = self.at;
        Token {
            kind,
            at,
            text: Cow::Borrowed(self.source.get(at..self.at).unwrap_or("")),
        }
    }

    fn error(&mut self, message: impl Into<String>) -> Token<'a> {
        self.failed = true;
        let at = self.start;
        self.at = self.source.len();
        self.start = self.at;
        Token {
            kind: Kind::Error,
            at,
            text: Cow::Owned(message.into()),
        }
    }

    /// Text up to the next action; comments are left out.
    fn text(&mut self) -> Token<'a> {
        loop {
            let rest = self.rest();
            let Some(length) = rest.find(LEFT) else {
                self.at = self.source.len();
                let kind = if rest.is_empty() { Kind::End } else { Kind::Text };
                return self.token(kind);
            };
            if length > 0 {
                let mut end = length;
                if trims_left(&rest[length + LEFT.len()..]) {
                    end = rest[..length].trim_end_matches(SPACES).len();
                }
                let start = self.at;
                self.at = start + end;
                let token = self.token(Kind::Text);
                self.at = start + length;
                self.start = self.at;
                if end > 0 {
                    return token;
                }
            }
            self.at += LEFT.len();
            let marker = if trims_left(self.rest()) { MARKER } else { 0 };
            if self
                .rest()
                .get(marker..)
                .is_some_and(|rest| rest.starts_with("/*"))
            {
                self.at += marker;
                if let Some(error) = self.comment() {
                    return error;
                }
                continue;
            }
            let token = self.token(Kind::LeftDelim);
            self.inside = true;
            self.at += marker;
            self.start = self.at;
            self.parens = 0;
            return token;
        }
    }

    fn comment(&mut self) -> Option<Token<'a>> {
        self.at += 2;
        let Some(length) = self.rest().find("*/") else {
            return Some(self.error("unclosed comment"));
        };
        self.at += length + 2;
        let Some(trim) = self.right() else {
            return Some(self.error("comment ends before closing delimiter"));
        };
        self.close(trim);
        self.start = self.at;
        None
    }

    /// The right delimiter at this place, and whether it trims.
    fn right(&self) -> Option<bool> {
        let rest = self.rest();
        if trims_right(rest) && rest[MARKER..].starts_with(RIGHT) {
            return Some(true);
        }
        rest.starts_with(RIGHT).then_some(false)
    }

    fn close(&mut self, trim: bool) {
        if trim {
            self.at += MARKER;
        }
        self.at += RIGHT.len();
        if trim {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start_matches(SPACES).len();
        }
    }

    fn right_delim(&mut self, trim: bool) -> Token<'a> {
        self.start = self.at;
        self.close(trim);
        self.inside = false;
        Token {
            kind: Kind::RightDelim,
            at: self.start,
            text: Cow::Borrowed(RIGHT),
        }
    }

    fn action(&mut self) -> Token<'a> {
        if let Some(trim) = self.right() {
            if self.parens == 0 {
                return self.right_delim(trim);
            }
            return self.error("unclosed left paren");
        }
        let Some(next) = self.bump() else {
            return self.error("unclosed action");
        };
        match next {
            ' ' | '\t' | '\r' | '\n' => self.space(),
            '=' => self.token(Kind::Assign),
            ':' => match self.bump() {
                Some('=') => self.token(Kind::Declare),
                _ => self.error("expected :="),
            },
            '|' => self.token(Kind::Pipe),
            '"' => self.quoted('"', Kind::String, "unterminated quoted string"),
            '`' => self.raw(),
            '$' => self.name(Kind::Variable),
            '\'' => self.quoted('\'', Kind::CharConstant, "unterminated character constant"),
            '.' if !self.peek().is_some_and(|next| next.is_ascii_digit()) && self.peek().is_some() => {
                self.name(Kind::Field)
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.at -= 1;
                self.number()
            }
            _ if alphanumeric(next) => self.identifier(),
            '(' => {
                self.parens += 1;
                self.token(Kind::LeftParen)
            }
            ')' if self.parens == 0 => self.error("unexpected right paren"),
            ')' => {
                self.parens -= 1;
                self.token(Kind::RightParen)
            }
            ' '..='~' => self.token(Kind::Char),
            other => self.error(format!(
                "unrecognized character in action: U+{:04X}",
                u32::from(other)
            )),
        }
    }

    fn space(&mut self) -> Token<'a> {
        while self.peek().is_some_and(|next| SPACES.contains(&next)) {
            self.bump();
        }
        let last = self.at - 1;
        let before = self.source.get(last..).unwrap_or("");
        if trims_right(before) && before[MARKER..].starts_with(RIGHT) {
            self.at = last;
            if self.at == self.start {
                return self.right_delim(true);
            }
        }
        self.token(Kind::Space)
    }

    fn identifier(&mut self) -> Token<'a> {
        while self.peek().is_some_and(alphanumeric) {
            self.bump();
        }
        if let Some(bad) = self.bad_end() {
            return bad;
        }
        let word = &self.source[self.start..self.at];
        let kind = match word {
            _ if KEYWORDS.contains(&word) => Kind::Keyword,
            "nil" => Kind::Nil,
            "true" | "false" => Kind::Bool,
            _ => Kind::Identifier,
        };
        self.token(kind)
    }

    /// Reads the name after `.` or `$`.
    fn name(&mut self, kind: Kind) -> Token<'a> {
        if self.at_terminator() {
            return self.token(if kind == Kind::Variable { kind } else { Kind::Dot });
        }
        while self.peek().is_some_and(alphanumeric) {
            self.bump();
        }
        match self.bad_end() {
            Some(bad) => bad,
            None => self.token(kind),
        }
    }

    fn bad_end(&mut self) -> Option<Token<'a>> {
        if self.at_terminator() {
            return None;
        }
        let bad = self.peek().map_or(0, u32::from);
        Some(self.error(format!("bad character U+{bad:04X}")))
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None | Some(' ' | '\t' | '\r' | '\n' | '.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(_) => self.rest().starts_with(RIGHT),
        }
    }

    fn quoted(&mut self, quote: char, kind: Kind, unterminated: &str) -> Token<'a> {
        loop {
            match self.bump() {
                Some('\\') => {
                    if matches!(self.bump(), None | Some('\n')) {
                        return self.error(unterminated);
                    }
                }
                None | Some('\n') => return self.error(unterminated),
                Some(next) if next == quote => return self.token(kind),
                Some(_) => {}
            }
        }
    }

    fn raw(&mut self) -> Token<'a> {
        match self.rest().find('`') {
            Some(length) => {
                self.at += length + 1;
                self.token(Kind::RawString)
            }
            None => self.error("unterminated raw quoted string"),
        }
    }

    fn number(&mut self) -> Token<'a> {
        let mut kind = Kind::Number;
        let mut good = self.scan_number();
        if good && matches!(self.peek(), Some('+' | '-')) {
            good = self.scan_number() && self.source[..self.at].ends_with('i');
            kind = Kind::Complex;
        }
        if good {
            return self.token(kind);
        }
        let text = &self.source[self.start..self.at];
        self.error(format!("bad number syntax: {text:?}"))
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        while self.accept(digits) {}
        if self.accept(".") {
            while self.accept(digits) {}
        }
        let exponent = match digits.len() {
            11 => "eE",
            23 => "pP",
            _ => "",
        };
        if self.accept(exponent) {
            self.accept("+-");
            while self.accept("0123456789_") {}
        }
        self.accept("i");
        if self.peek().is_some_and(alphanumeric) {
            self.bump();
            return false;
        }
        true
    }
}

fn alphanumeric(character: char) -> bool {
    character == '_' || is_letter(character) || is_digit(character)
}

fn trims_left(rest: &str) -> bool {
    let bytes = rest.as_bytes();
    bytes.len() >= 2 && bytes[0] == b'-' && SPACES.contains(&char::from(bytes[1]))
}

fn trims_right(rest: &str) -> bool {
    let bytes = rest.as_bytes();
    bytes.len() >= 2 && SPACES.contains(&char::from(bytes[0])) && bytes[1] == b'-'
}
