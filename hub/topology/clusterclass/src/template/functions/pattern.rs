//! Owns: what Go's regular expressions mean in the words of the `regex` crate: classes of ASCII, `\Q…\E`, and what one
//! of them takes for an operator that is none to the other.

/// Longest regular expression, bytes.
pub(super) const MAX_PATTERN: usize = 10_000;

/// The same expression for the `regex` crate; an error if Go has none such.
pub(super) fn translated(pattern: &str) -> Result<String, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("expression is longer than {MAX_PATTERN} bytes"));
    }
    let mut translator = Translator {
        rest: pattern,
        out: String::with_capacity(pattern.len() * 2),
        repeated: false,
        named: 0,
    };
    translator.run()?;
    Ok(translator.out)
}

/// The classes that have a name between colons.
const NAMED: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

struct Translator<'a> {
    rest: &'a str,
    out: String,
    /// True if the last part read is a repetition, which no other may follow.
    repeated: bool,
    /// Number of named groups so far.
    named: usize,
}

impl Translator<'_> {
    fn take(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(next) = self.take() {
            let before = std::mem::take(&mut self.repeated);
            match next {
                '*' | '+' | '?' => {
                    self.out.push(next);
                    self.repetition(before)?;
                }
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '(' => self.group()?,
                '{' if self.braces() => self.repetition(before)?,
                '{' => self.out.push_str("\\{"),
                ' ' | '#' | '&' | '~' | '-' => self.literal(next),
                other => self.out.push(other),
            }
        }
        Ok(())
    }

    fn literal(&mut self, character: char) {
        // With a backslash these two are the ends of words to the crate.
        if character.is_ascii_punctuation() && !matches!(character, '<' | '>') {
            self.out.push('\\');
        }
        self.out.push(character);
    }

    fn escape(&mut self, class: bool) -> Result<(), String> {
        let next = self.take().ok_or("trailing backslash at end of expression")?;
        match next {
            'd' => self.out.push_str("[0-9]"),
            'D' => self.out.push_str("[^0-9]"),
            's' => self.out.push_str("[\\t\\n\\f\\r ]"),
            'S' => self.out.push_str("[^\\t\\n\\f\\r ]"),
            'w' => self.out.push_str("[0-9A-Za-z_]"),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            'b' if !class => self.out.push_str("(?-u:\\b)"),
            'B' if !class => self.out.push_str("(?-u:\\B)"),
            'A' | 'z' if !class => self.out.push_str(if next == 'A' { "\\A" } else { "\\z" }),
            'Q' if !class => {
                let end = self.rest.find("\\E").unwrap_or(self.rest.len());
                let (quoted, rest) = self.rest.split_at(end);
                self.rest = rest.strip_prefix("\\E").unwrap_or(rest);
                quoted.chars().for_each(|character| self.literal(character));
            }
            'a' | 'f' | 't' | 'n' | 'r' | 'v' => {
                self.out.push('\\');
                self.out.push(next);
            }
            'x' => {
                self.out.push_str("\\x");
                if !self.rest.starts_with('{')
                    && self.rest.chars().take(2).filter(char::is_ascii_hexdigit).count() < 2
                {
                    return Err("invalid escape sequence".to_owned());
                }
                // The digits and braces are copied here: a brace is no repetition.
                let length = if self.rest.starts_with('{') {
                    self.rest.find('}').map_or(1, |at| at + 1)
                } else {
                    2
                };
                let (digits, rest) = self.rest.split_at(length);
                self.out.push_str(digits);
                self.rest = rest;
            }
            'p' | 'P' => {
                self.out.push('\\');
                self.out.push(next);
                self.property()?;
            }
            '0'..='7' => self.octal(next)?,
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => self.literal(other),
            other => return Err(format!("invalid escape sequence: `\\{other}`")),
        }
        Ok(())
    }

    /// The name of a property: a letter, or a name in braces.
    fn property(&mut self) -> Result<(), String> {
        let length = match self.rest.strip_prefix('{') {
            Some(_) => self
                .rest
                .find('}')
                .map(|at| at + 1)
                .ok_or("invalid character class range")?,
            None => self.rest.chars().next().map_or(0, char::len_utf8),
        };
        let (name, rest) = self.rest.split_at(length);
        let bare = name.trim_matches(['{', '}', '^']);
        // Go knows categories and scripts by their own names only.
        let known = !bare.is_empty() && bare.chars().all(|sign| sign.is_ascii_alphabetic() || sign == '_');
        if !known || !bare.starts_with(|sign: char| sign.is_ascii_uppercase()) {
            return Err(format!("invalid character class range: `\\p{name}`"));
        }
        self.out.push_str(name);
        self.rest = rest;
        Ok(())
    }

    fn octal(&mut self, first: char) -> Result<(), String> {
        let more = self
            .rest
            .bytes()
            .take(2)
            .take_while(|digit| (b'0'..=b'7').contains(digit))
            .count();
        if first != '0' && more == 0 {
            return Err("invalid escape sequence".to_owned());
        }
        let (digits, rest) = self.rest.split_at(more);
        self.rest = rest;
        let code = u32::from_str_radix(&format!("{first}{digits}"), 8).unwrap_or(0);
        self.out.push_str(&format!("\\x{{{code:x}}}"));
        Ok(())
    }

    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        let Some(rest) = self.rest.strip_prefix('?') else {
            return Ok(());
        };
        if rest.starts_with("P<") || rest.starts_with('<') {
            let end = rest.find('>').ok_or("invalid named capture")?;
            let name = &rest[rest.find('<').map_or(0, |at| at + 1)..end];
            let good = !name.is_empty()
                && name
                    .chars()
                    .all(|sign| sign == '_' || sign.is_ascii_alphanumeric());
            if !good {
                return Err("invalid named capture".to_owned());
            }
            // Several groups may have it, and it may begin with a digit.
            self.named += 1;
            self.out.push_str(&format!("?P<_{}.{name}>", self.named));
            self.rest = &rest[end + 1..];
            return Ok(());
        }
        let end = rest
            .find([':', ')'])
            .ok_or("missing argument to repetition operator")?;
        let flags = &rest[..end];
        let minus = flags.matches('-').count();
        if !flags.chars().all(|flag| "imsU-".contains(flag)) || minus > 1 || flags.ends_with('-') {
            return Err("invalid or unsupported Perl syntax".to_owned());
        }
        self.out.push('?');
        self.out.push_str(&rest[..=end]);
        self.rest = &rest[end + 1..];
        Ok(())
    }

    /// Behind a repetition: what makes it lazy.
    fn repetition(&mut self, before: bool) -> Result<(), String> {
        if before {
            return Err("invalid nested repetition operator".to_owned());
        }
        if let Some(rest) = self.rest.strip_prefix('?') {
            self.rest = rest;
            self.out.push('?');
        }
        self.repeated = true;
        Ok(())
    }

    /// A repetition in braces, if it is one.
    fn braces(&mut self) -> bool {
        let Some(end) = self.rest.find('}') else {
            return false;
        };
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        let repeats = match self.rest[..end].split_once(',') {
            Some((least, most)) => digits(least) && (most.is_empty() || digits(most)),
            None => digits(&self.rest[..end]),
        };
        if repeats {
            self.out.push('{');
            self.out.push_str(&self.rest[..=end]);
            self.rest = &self.rest[end + 1..];
        }
        repeats
    }

    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.rest.starts_with('^') {
            self.rest = &self.rest[1..];
            self.out.push('^');
        }
        let mut first = true;
        loop {
            if let Some(rest) = self.rest.strip_prefix("[:")
                && let Some(end) = rest.find(":]")
            {
                let name = &rest[..end];
                if !NAMED.contains(&name.strip_prefix('^').unwrap_or(name)) {
                    return Err(format!("invalid character class range: `[:{name}:]`"));
                }
                self.out.push_str(&self.rest[..end + 4]);
                self.rest = &rest[end + 2..];
                first = false;
                continue;
            }
            if !first && self.rest.starts_with(']') {
                self.take();
                break;
            }
            first = false;
            let is_one = self.class_item()?;
            let after = self.rest.strip_prefix('-');
            if is_one && after.is_some_and(|after| !after.is_empty() && !after.starts_with(']')) {
                self.take();
                self.out.push('-');
                if !self.class_item()? {
                    return Err("invalid character class range".to_owned());
                }
            }
        }
        self.out.push(']');
        Ok(())
    }

    /// Reads one thing of a class; whether it is one character, with which a range may begin or end.
    fn class_item(&mut self) -> Result<bool, String> {
        match self.take().ok_or("missing closing ]")? {
            '\\' => {
                let is_class = self.rest.starts_with(['d', 'D', 's', 'S', 'w', 'W', 'p', 'P']);
                self.escape(true)?;
                Ok(!is_class)
            }
            other => {
                self.literal(other);
                Ok(true)
            }
        }
    }
}

/// The name of a group as it is written, by its name in the translation.
pub(super) fn written_name(name: &str) -> Option<&str> {
    name.split_once('.').map(|(_, written)| written)
}

/// Largest number of repetitions.
const MAX_REPEAT: u64 = 1_000;

/// Returns true if no repetition exceeds the bound of Go.
pub(super) fn bounded(pattern: &str) -> bool {
    pattern.split('{').skip(1).all(|body| {
        let body = body.split('}').next().unwrap_or("");
        body.split(',')
            .all(|number| number.parse::<u64>().map_or(true, |number| number <= MAX_REPEAT))
    })
}
