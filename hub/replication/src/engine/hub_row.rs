//! The announcement of a hub: a frozen line of text.

use model::Cursor;

use super::{
    names::{Replica, Term},
    text::{Unreadable, Words, cursor},
};

const VERSION: u64 = 1;
const WHAT: &str = "announced hub";
/// Longest address and longest version.
const WORD_BYTES_MAX: usize = 300;

/// One hub, as the others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubRow {
    /// Its name.
    pub replica: Replica,
    /// The address at which other hubs reach it, one word.
    pub address: String,
    /// Its release, one word.
    pub version: String,
    /// The newest rules that it folds by.
    pub rules: u32,
    /// Its present part.
    pub role: Role,
    /// The newest term that its log has.
    pub term: Term,
    /// The position of its log on disk; absent: it has no log.
    pub synced: Option<Cursor>,
}

/// The part of a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It waits for a head.
    Waits,
    /// It follows the log.
    Follows,
    /// It leads.
    Leads,
    /// It copies the log from the leader.
    Copies,
    /// Its log is longer than the engine's.
    Ahead,
}

impl Role {
    const ALL: [(Role, &str); 5] = [
        (Role::Waits, "waits"),
        (Role::Follows, "follows"),
        (Role::Leads, "leads"),
        (Role::Copies, "copies"),
        (Role::Ahead, "ahead"),
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Waits => Self::ALL[0].1,
            Role::Follows => Self::ALL[1].1,
            Role::Leads => Self::ALL[2].1,
            Role::Copies => Self::ALL[3].1,
            Role::Ahead => Self::ALL[4].1,
        }
    }

    fn read(words: &mut Words<'_>) -> Result<Self, Unreadable> {
        let word = words.word()?;
        let found = Self::ALL.iter().find(|(_, name)| *name == word);
        found
            .map(|(role, _)| *role)
            .ok_or_else(|| words.invalid("its role does not exist"))
    }
}

impl HubRow {
    /// The line that an engine holds.
    pub fn encode(&self) -> String {
        let Self {
            replica,
            address,
            version,
            rules,
            role,
            term,
            synced,
        } = self;
        let role = role.as_str();
        let line = format!("{VERSION} {replica} {address} {version} {rules} {role} {term}");
        match synced {
            Some(at) => format!("{line} {}", cursor(at)),
            None => line,
        }
    }

    /// Reads a line.
    pub fn decode(line: &[u8]) -> Result<Self, Unreadable> {
        let mut words = Words::of(WHAT, line)?;
        words.version(VERSION)?;
        let replica = Replica::read(&mut words)?;
        let (address, version) = (word(&mut words)?, word(&mut words)?);
        let rules = u32::try_from(words.number()?).map_err(|_| words.invalid("its rules are too large"))?;
        let (role, term) = (Role::read(&mut words)?, Term(words.number()?));
        let synced = if words.has_more() {
            Some(words.cursor()?)
        } else {
            None
        };
        words.end()?;
        Ok(Self {
            replica,
            address,
            version,
            rules,
            role,
            term,
            synced,
        })
    }
}

fn word(words: &mut Words<'_>) -> Result<String, Unreadable> {
    let word = words.word()?;
    if word.len() > WORD_BYTES_MAX || !word.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(words.invalid("an address or version is malformed"));
    }
    Ok(word.to_owned())
}
