//! Lines of words as the engine holds them: strict reading, with bounds. Each value has one spelling.

use model::{ChainHash, Cursor, Epoch, Revision};

/// No line is longer.
pub(super) const LINE_BYTES_MAX: usize = 1_024;

/// A value in the engine that this release cannot read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A later release wrote it.
    #[error(
        "the engine's {what} has version {version}, and this release reads version {known}: update this hub"
    )]
    Newer {
        /// The kind of value.
        what: &'static str,
        /// Its version.
        version: u64,
        /// The version that this release reads.
        known: u64,
    },
    /// No release wrote it.
    #[error("the engine's {what} is not valid: {why}")]
    Invalid {
        /// The kind of value.
        what: &'static str,
        /// The reason.
        why: &'static str,
    },
}

/// The words of a line, taken one after the other.
pub(super) struct Words<'a> {
    what: &'static str,
    rest: Option<&'a str>,
}

impl<'a> Words<'a> {
    /// Splits a line.
    pub(super) fn of(what: &'static str, line: &'a [u8]) -> Result<Self, Unreadable> {
        let invalid = |why| Unreadable::Invalid { what, why };
        if line.len() > LINE_BYTES_MAX {
            return Err(invalid("it is too long"));
        }
        let line = str::from_utf8(line).map_err(|_| invalid("it is not text"))?;
        Ok(Self {
            what,
            rest: Some(line),
        })
    }

    /// An error about this line.
    pub(super) fn invalid(&self, why: &'static str) -> Unreadable {
        Unreadable::Invalid { what: self.what, why }
    }

    /// The next word.
    pub(super) fn word(&mut self) -> Result<&'a str, Unreadable> {
        let rest = self.rest.take();
        let rest = rest.ok_or_else(|| self.invalid("a word is missing"))?;
        let (word, behind) = match rest.split_once(' ') {
            Some((word, behind)) => (word, Some(behind)),
            None => (rest, None),
        };
        self.rest = behind;
        if word.is_empty() {
            return Err(self.invalid("a word is empty"));
        }
        Ok(word)
    }

    /// Checks that the line's version is the known one.
    pub(super) fn version(&mut self, known: u64) -> Result<(), Unreadable> {
        match self.number()? {
            version if version == known => Ok(()),
            version if version > known => Err(Unreadable::Newer {
                what: self.what,
                version,
                known,
            }),
            _ => Err(self.invalid("its version does not exist")),
        }
    }

    /// A decimal number without leading zeros.
    pub(super) fn number(&mut self) -> Result<u64, Unreadable> {
        let word = self.word()?;
        let is_plain =
            word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'));
        let number = word.parse().ok().filter(|_| is_plain);
        number.ok_or_else(|| self.invalid("a number is malformed"))
    }

    /// Bytes in lower-case hexadecimal digits.
    pub(super) fn hex<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        from_hex(self.word()?).ok_or_else(|| self.invalid("an id or hash is malformed"))
    }

    /// A position as [`cursor`] writes it.
    pub(super) fn cursor(&mut self) -> Result<Cursor, Unreadable> {
        Ok(Cursor {
            epoch: Epoch::from_bytes(self.hex()?),
            revision: Revision(self.number()?),
            hash: ChainHash(self.hex()?),
        })
    }

    /// Returns true if a word is left.
    pub(super) fn has_more(&self) -> bool {
        self.rest.is_some()
    }

    /// Checks that no word is left.
    pub(super) fn end(self) -> Result<(), Unreadable> {
        if self.has_more() {
            return Err(self.invalid("it has too many words"));
        }
        Ok(())
    }
}

/// Epoch, revision and hash as three words.
pub(super) fn cursor(at: &Cursor) -> String {
    format!("{} {} {}", hex(&at.epoch.to_bytes()), at.revision, at.hash)
}

/// Bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The inverse of [`hex`].
pub(super) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * N || !text.bytes().all(is_hex) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}
