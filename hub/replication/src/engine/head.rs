//! The head of a log, its pulse, and what an epoch begins with: frozen lines of text.

use model::Cursor;

use super::{
    names::{EngineId, Instance, Replica, Term},
    text::{Unreadable, Words, cursor},
};

const VERSION: u64 = 1;
const RESIGNED: &str = "resigned";

/// The last committed position, and who may follow it. No two heads of a log are equal, since revisions and hashes
/// never come back: so comparing the value is enough to fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The engine that the log lives in.
    pub engine: EngineId,
    /// The term of whoever leads.
    pub term: Term,
    /// The last committed position.
    pub at: Cursor,
    /// The hub that leads.
    pub replica: Replica,
    /// Its process.
    pub instance: Instance,
}

impl Head {
    /// The line that an engine holds.
    pub fn encode(&self) -> String {
        let Self {
            engine,
            term,
            at,
            replica,
            instance,
        } = self;
        format!("{VERSION} {engine} {term} {} {replica} {instance}", cursor(at))
    }

    /// Reads a line.
    pub fn decode(line: &[u8]) -> Result<Self, Unreadable> {
        let mut words = Words::of("head", line)?;
        words.version(VERSION)?;
        let head = Self {
            engine: EngineId(words.hex()?),
            term: Term(words.number()?),
            at: words.cursor()?,
            replica: Replica::read(&mut words)?,
            instance: Instance(words.hex()?),
        };
        words.end()?;
        Ok(head)
    }

    /// Returns true if both name the same process in the same term.
    pub fn is_of(&self, other: &Head) -> bool {
        (self.engine, self.term, self.instance) == (other.engine, other.term, other.instance)
    }
}

/// A sign of life of a leader that commits nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beat {
    /// The leader of a term lives.
    Alive {
        /// The term.
        term: Term,
        /// Grows with each beat.
        count: u64,
    },
    /// The leader of a term gave the lead up.
    Resigned {
        /// The term.
        term: Term,
        /// The hub that may take the lead before others.
        next: Option<Replica>,
    },
}

impl Beat {
    /// The line that an engine holds.
    pub fn encode(&self) -> String {
        match self {
            Self::Alive { term, count } => format!("{term} {count}"),
            Self::Resigned { term, next: None } => format!("{term} {RESIGNED}"),
            Self::Resigned {
                term,
                next: Some(next),
            } => format!("{term} {RESIGNED} {next}"),
        }
    }

    /// Reads a line.
    pub fn decode(line: &[u8]) -> Result<Self, Unreadable> {
        let mut words = Words::of("pulse", line)?;
        let term = Term(words.number()?);
        let resigned = format!("{term} {RESIGNED}");
        let beat = if line.starts_with(resigned.as_bytes()) {
            words.word()?;
            let next = if words.has_more() {
                Some(Replica::read(&mut words)?)
            } else {
                None
            };
            Self::Resigned { term, next }
        } else {
            let count = words.number()?;
            Self::Alive { term, count }
        };
        words.end()?;
        if beat.encode().as_bytes() != line {
            return Err(Unreadable::Invalid {
                what: "pulse",
                why: "it is spelled in another way",
            });
        }
        Ok(beat)
    }
}

/// The position whose state an epoch begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    /// The epoch that begins.
    pub epoch: model::Epoch,
    /// The position, in an earlier epoch, whose state it takes over.
    pub over: Cursor,
}

impl Base {
    /// The line that an engine holds below the epoch's key.
    pub fn encode(&self) -> String {
        format!("{VERSION} {}", cursor(&self.over))
    }

    /// Reads the line of an epoch.
    pub fn decode(epoch: model::Epoch, line: &[u8]) -> Result<Self, Unreadable> {
        let mut words = Words::of("base", line)?;
        words.version(VERSION)?;
        let over = words.cursor()?;
        words.end()?;
        Ok(Self { epoch, over })
    }
}
