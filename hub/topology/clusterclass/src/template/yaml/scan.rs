//! Owns: the tokens of a YAML text, as libyaml cuts them: indentation, simple keys, flow levels.
//! Never: nests deeper than [`MAX_NESTING`].

use std::collections::VecDeque;

use super::{
    super::limits::MAX_NESTING,
    cursor::{Cursor, END, is_alpha, is_blank, is_blankz, is_break},
    scalars::{self, at},
    tags::{self, Directive},
};

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    StreamEnd,
    Directive(Directive),
    DocumentStart,
    DocumentEnd,
    BlockSequence,
    BlockMapping,
    BlockEnd,
    FlowSequence,
    FlowSequenceEnd,
    FlowMapping,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag(String, String),
    /// Text, and whether it is plain.
    Scalar(String, bool),
}

/// Longest text between the start of a key and its colon, characters.
const MAX_SIMPLE_KEY: usize = 1024;

/// A place where a key may begin that no `?` announces.
#[derive(Debug, Clone, Copy)]
struct SimpleKey {
    required: bool,
    /// Number of the token that it begins with.
    token: usize,
    at: usize,
    line: usize,
    column: usize,
    /// True if its first token waits until the reader knows whether it is a key.
    awaited: bool,
}

/// Cuts a text.
#[derive(Debug)]
pub(super) struct Scanner {
    cursor: Cursor,
    tokens: VecDeque<Token>,
    /// Number of tokens taken.
    taken: usize,
    ended: bool,
    /// Column of the block here, or -1.
    indent: isize,
    indents: Vec<isize>,
    allowed: bool,
    /// One for each flow level, and one for no level.
    keys: Vec<Option<SimpleKey>>,
    /// For each of them the number of the token of its last key, or of the one that opened the level.
    numbers: Vec<usize>,
}

impl Scanner {
    /// At the start of a text.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        Ok(Self {
            cursor: Cursor::new(text)?,
            tokens: VecDeque::new(),
            taken: 0,
            ended: false,
            indent: -1,
            indents: Vec::new(),
            allowed: true,
            keys: vec![None],
            numbers: vec![0],
        })
    }

    /// The next token, which stays.
    pub(super) fn peek(&mut self) -> Result<&Token, String> {
        self.fill()?;
        Ok(self.tokens.front().unwrap_or(&Token::StreamEnd))
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Result<Token, String> {
        self.fill()?;
        self.taken += 1;
        Ok(self.tokens.pop_front().unwrap_or(Token::StreamEnd))
    }

    /// A message with the line.
    pub(super) fn error<T>(&self, message: &str) -> Result<T, String> {
        Err(at(&self.cursor, message))
    }

    fn flow(&self) -> bool {
        self.keys.len() > 1
    }

    /// Reads until it is known that no key begins with the next token.
    fn fill(&mut self) -> Result<(), String> {
        while !self.ended {
            if !self.tokens.is_empty() {
                let waiting = (0..self.keys.len()).rev().find(|level| {
                    self.keys[*level].is_some_and(|key| key.awaited && key.token == self.taken)
                });
                let Some(level) = waiting else {
                    return Ok(());
                };
                if self.valid(level)?.is_none() {
                    return Ok(());
                }
            }
            self.fetch()?;
        }
        Ok(())
    }

    /// The key that may begin at a level, unless too much text follows it.
    fn valid(&mut self, level: usize) -> Result<Option<SimpleKey>, String> {
        let Some(key) = self.keys[level] else {
            return Ok(None);
        };
        if key.line < self.cursor.line || key.at + MAX_SIMPLE_KEY < self.cursor.at {
            if key.required {
                return self.error("could not find expected ':'");
            }
            self.keys[level] = None;
            return Ok(None);
        }
        Ok(Some(key))
    }

    fn save_key(&mut self) -> Result<(), String> {
        if !self.allowed {
            return Ok(());
        }
        self.remove_key()?;
        let column = self.cursor.column;
        let key = SimpleKey {
            required: !self.flow() && usize::try_from(self.indent) == Ok(column),
            token: self.taken + self.tokens.len(),
            at: self.cursor.at,
            line: self.cursor.line,
            column,
            awaited: true,
        };
        if let Some(number) = self.numbers.last_mut() {
            *number = key.token;
        }
        if let Some(last) = self.keys.last_mut() {
            *last = Some(key);
        }
        Ok(())
    }

    fn remove_key(&mut self) -> Result<(), String> {
        let Some(last) = self.keys.last_mut() else {
            return Ok(());
        };
        if last.take().is_some_and(|key| key.required) {
            return self.error("could not find expected ':'");
        }
        Ok(())
    }

    /// Begins a block if the column is deeper than the one around it.
    fn roll(&mut self, column: usize, token: Token, before: Option<usize>) -> Result<(), String> {
        let column = isize::try_from(column).unwrap_or(isize::MAX);
        if self.flow() || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > MAX_NESTING {
            return self.error(&format!("exceeded max depth of {MAX_NESTING}"));
        }
        self.insert(before, token);
        Ok(())
    }

    /// Puts a token before the one of that number, or behind all if that is taken already.
    fn insert(&mut self, before: Option<usize>, token: Token) {
        match before.and_then(|number| number.checked_sub(self.taken)) {
            Some(at) if at <= self.tokens.len() => self.tokens.insert(at, token),
            _ => self.tokens.push_back(token),
        }
    }

    fn unroll(&mut self, column: isize) {
        while !self.flow() && self.indent > column {
            self.tokens.push_back(Token::BlockEnd);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn skip_to_token(&mut self) {
        // One mark was taken as the sign of the encoding; libyaml lets another one begin a line.
        if self.cursor.at == 0 && self.cursor.here() == '\u{feff}' {
            self.cursor.skip();
        }
        loop {
            let tabs = self.flow() || !self.allowed;
            while self.cursor.here() == ' ' || tabs && self.cursor.here() == '\t' {
                self.cursor.skip();
            }
            self.cursor.skip_comment();
            if !is_break(self.cursor.here()) {
                return;
            }
            self.cursor.skip_line();
            if !self.flow() {
                self.allowed = true;
            }
        }
    }

    fn fetch(&mut self) -> Result<(), String> {
        self.skip_to_token();
        self.unroll(isize::try_from(self.cursor.column).unwrap_or(isize::MAX));
        let here = self.cursor.here();
        let flow = self.flow();
        let spaced = is_blankz(self.cursor.peek(1));
        match here {
            END => self.end(),
            '%' if self.cursor.column == 0 => {
                self.unroll(-1);
                self.remove_key()?;
                self.allowed = false;
                let directive = tags::directive(&mut self.cursor)?;
                self.tokens.push_back(Token::Directive(directive));
                Ok(())
            }
            '-' if self.cursor.at_document('-') => self.document(Token::DocumentStart),
            '.' if self.cursor.at_document('.') => self.document(Token::DocumentEnd),
            '[' => self.open(Token::FlowSequence),
            '{' => self.open(Token::FlowMapping),
            ']' => self.close(Token::FlowSequenceEnd),
            '}' => self.close(Token::FlowMappingEnd),
            ',' => self.single(Token::FlowEntry, true),
            '-' if spaced => self.entry(),
            '?' if flow || spaced => self.key(),
            ':' if flow || spaced => self.value(),
            '*' | '&' => self.anchor(here),
            '!' => {
                self.save_key()?;
                self.allowed = false;
                let (handle, suffix) = tags::tag(&mut self.cursor)?;
                self.tokens.push_back(Token::Tag(handle, suffix));
                Ok(())
            }
            '|' | '>' if !flow => {
                self.remove_key()?;
                self.allowed = true;
                let text = scalars::block(&mut self.cursor, here == '|', self.indent)?;
                self.tokens.push_back(Token::Scalar(text, false));
                Ok(())
            }
            '\'' | '"' => {
                self.save_key()?;
                self.allowed = false;
                let text = scalars::quoted(&mut self.cursor, here)?;
                self.tokens.push_back(Token::Scalar(text, false));
                Ok(())
            }
            _ => self.plain(here, flow),
        }
    }

    fn plain(&mut self, here: char, flow: bool) -> Result<(), String> {
        let next = self.cursor.peek(1);
        let begins = !is_blankz(here) && !"-?:,[]{}#&*!|>'\"%@`".contains(here)
            || here == '-' && !is_blank(next)
            || !flow && matches!(here, '?' | ':') && !is_blankz(next);
        if !begins {
            return self.error("found character that cannot start any token");
        }
        self.save_key()?;
        self.allowed = false;
        let indent = usize::try_from(self.indent + 1).unwrap_or(0);
        let (text, broken) = scalars::plain(&mut self.cursor, flow, indent)?;
        if broken {
            self.allowed = true;
        }
        self.tokens.push_back(Token::Scalar(text, true));
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        if self.cursor.column != 0 {
            self.cursor.column = 0;
            self.cursor.line += 1;
        }
        self.unroll(-1);
        self.remove_key()?;
        self.allowed = false;
        self.ended = true;
        self.tokens.push_back(Token::StreamEnd);
        Ok(())
    }

    fn document(&mut self, token: Token) -> Result<(), String> {
        self.unroll(-1);
        self.remove_key()?;
        self.allowed = false;
        (0..3).for_each(|_| self.cursor.skip());
        self.tokens.push_back(token);
        Ok(())
    }

    fn single(&mut self, token: Token, allowed: bool) -> Result<(), String> {
        self.remove_key()?;
        self.allowed = allowed;
        self.cursor.skip();
        self.tokens.push_back(token);
        Ok(())
    }

    fn open(&mut self, token: Token) -> Result<(), String> {
        self.save_key()?;
        self.keys.push(None);
        self.numbers.push(self.taken + self.tokens.len());
        if self.keys.len() > MAX_NESTING {
            return self.error(&format!("exceeded max depth of {MAX_NESTING}"));
        }
        self.allowed = true;
        self.cursor.skip();
        self.tokens.push_back(token);
        Ok(())
    }

    fn close(&mut self, token: Token) -> Result<(), String> {
        self.remove_key()?;
        if self.flow() {
            self.keys.pop();
            // As in libyaml for Go: a collection without any key in it forgets that it may be a key itself.
            let number = self.numbers.pop();
            for key in self.keys.iter_mut().flatten() {
                key.awaited &= Some(key.token) != number;
            }
        }
        self.allowed = false;
        self.cursor.skip();
        self.tokens.push_back(token);
        Ok(())
    }

    fn entry(&mut self) -> Result<(), String> {
        if !self.flow() {
            if !self.allowed {
                return self.error("block sequence entries are not allowed in this context");
            }
            self.roll(self.cursor.column, Token::BlockSequence, None)?;
        }
        self.single(Token::BlockEntry, true)
    }

    fn key(&mut self) -> Result<(), String> {
        if !self.flow() {
            if !self.allowed {
                return self.error("mapping keys are not allowed in this context");
            }
            self.roll(self.cursor.column, Token::BlockMapping, None)?;
        }
        self.single(Token::Key, !self.flow())
    }

    fn value(&mut self) -> Result<(), String> {
        let level = self.keys.len() - 1;
        if let Some(key) = self.valid(level)? {
            self.insert(Some(key.token), Token::Key);
            self.roll(key.column, Token::BlockMapping, Some(key.token))?;
            self.keys[level] = None;
            self.allowed = false;
        } else {
            if !self.flow() {
                if !self.allowed {
                    return self.error("mapping values are not allowed in this context");
                }
                self.roll(self.cursor.column, Token::BlockMapping, None)?;
            }
            self.allowed = !self.flow();
        }
        self.cursor.skip();
        self.tokens.push_back(Token::Value);
        Ok(())
    }

    fn anchor(&mut self, sign: char) -> Result<(), String> {
        self.save_key()?;
        self.allowed = false;
        self.cursor.skip();
        let mut name = String::new();
        while is_alpha(self.cursor.here()) {
            self.cursor.read(&mut name);
        }
        let here = self.cursor.here();
        if name.is_empty() || !is_blankz(here) && !"?:,]}%@`".contains(here) {
            return self.error("did not find expected alphabetic or numeric character");
        }
        self.tokens.push_back(match sign {
            '*' => Token::Alias(name),
            _ => Token::Anchor(name),
        });
        Ok(())
    }
}
