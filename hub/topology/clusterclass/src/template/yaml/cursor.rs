//! Owns: a place in a YAML text, its line and column, and the classes of characters that YAML has.

/// The sign behind the end. No text has it: control characters are refused first.
pub(super) const END: char = '\0';

/// A place in a text.
#[derive(Debug)]
pub(super) struct Cursor {
    chars: Vec<char>,
    /// Offset, characters.
    pub(super) at: usize,
    /// From 0.
    pub(super) line: usize,
    /// From 0, characters.
    pub(super) column: usize,
}

impl Cursor {
    /// The start of a text; an error if a character may not stand in YAML.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if !text.chars().all(allowed) {
            return Err("control characters are not allowed".to_owned());
        }
        Ok(Self {
            chars: text.chars().collect(),
            at: 0,
            line: 0,
            column: 0,
        })
    }

    /// The character that many places further on.
    pub(super) fn peek(&self, ahead: usize) -> char {
        self.chars
            .get(self.at.saturating_add(ahead))
            .copied()
            .unwrap_or(END)
    }

    /// The character here.
    pub(super) fn here(&self) -> char {
        self.peek(0)
    }

    /// Advances by one character that breaks no line.
    pub(super) fn skip(&mut self) {
        if self.at < self.chars.len() {
            self.at += 1;
            self.column += 1;
        }
    }

    /// Advances to the next line, if the line breaks here.
    pub(super) fn skip_line(&mut self) {
        let length = match (self.here(), self.peek(1)) {
            ('\r', '\n') => 2,
            (here, _) if is_break(here) => 1,
            _ => return,
        };
        self.at += length;
        self.column = 0;
        self.line += 1;
    }

    /// Advances by one character and keeps it.
    pub(super) fn read(&mut self, into: &mut String) {
        if self.at < self.chars.len() {
            into.push(self.here());
            self.skip();
        }
    }

    /// Advances to the next line and keeps the break; most are written as `\n`.
    pub(super) fn read_line(&mut self, into: &mut String) {
        match self.here() {
            '\r' | '\n' | '\u{85}' => into.push('\n'),
            other if is_break(other) => into.push(other),
            _ => return,
        }
        self.skip_line();
    }

    /// Advances over spaces and tabs.
    pub(super) fn skip_blanks(&mut self) {
        while is_blank(self.here()) {
            self.skip();
        }
    }

    /// Advances to the end of a line, if there is a comment here.
    pub(super) fn skip_comment(&mut self) {
        if self.here() == '#' {
            while !is_breakz(self.here()) {
                self.skip();
            }
        }
    }

    /// Returns true if a document starts or ends here: three dashes or dots that begin a line.
    pub(super) fn at_document(&self, sign: char) -> bool {
        self.column == 0 && (0..3).all(|ahead| self.peek(ahead) == sign) && is_blankz(self.peek(3))
    }
}

fn allowed(character: char) -> bool {
    matches!(character,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}'
        | '\u{10000}'..='\u{10ffff}')
}

/// A letter or digit of a name.
pub(super) fn is_alpha(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

/// A space or a tab.
pub(super) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// A line break.
pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A line break or the end.
pub(super) fn is_breakz(character: char) -> bool {
    character == END || is_break(character)
}

/// White space or the end.
pub(super) fn is_blankz(character: char) -> bool {
    is_blank(character) || is_breakz(character)
}
