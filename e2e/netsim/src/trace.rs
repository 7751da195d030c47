//! The trace of a simulation: one line per event and per request, hashed, and printed if that is wanted.
//! Two runs of a seed give the same hash.

use std::fmt;

/// Destination of lines.
pub(super) struct Trace {
    hasher: blake3::Hasher,
    print: bool,
}

impl Trace {
    pub(super) fn new(print: bool) -> Self {
        Self {
            hasher: blake3::Hasher::new(),
            print,
        }
    }

    pub(super) fn line(&mut self, at: u64, what: fmt::Arguments<'_>) {
        let line = format!("{at:>7} {what}\n");
        self.hasher.update(line.as_bytes());
        if self.print {
            print!("{line}");
        }
    }

    /// The hash of all lines so far.
    pub(super) fn hash(&self) -> String {
        self.hasher.finalize().to_hex()[..16].to_owned()
    }
}
