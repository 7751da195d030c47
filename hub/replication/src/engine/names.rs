//! The names by which hubs, their processes, terms and engines are told apart.

use std::{fmt, sync::Arc};

use model::name::is_dns_subdomain;

use super::text::{Unreadable, Words, hex};

/// A log's engine, made with its first head. A replica belongs to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineId(pub [u8; 16]);

impl fmt::Display for EngineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// One process of a hub: two pods of the same name are two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance(pub [u8; 8]);

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// Counts who has led a log. It grows whenever a hub takes the lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Term(pub u64);

impl Term {
    /// The term after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The name of a hub among those of its clusterset, such as the name of its pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replica(Arc<str>);

/// The text is not the name of a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name of a hub is a DNS subdomain, such as the name of a pod")]
pub struct InvalidReplica;

impl Replica {
    /// Checks a name.
    pub fn new(name: &str) -> Result<Self, InvalidReplica> {
        if is_dns_subdomain(name) {
            Ok(Self(name.into()))
        } else {
            Err(InvalidReplica)
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads the next word of a line.
    pub(super) fn read(words: &mut Words<'_>) -> Result<Self, Unreadable> {
        let word = words.word()?;
        Self::new(word).map_err(|_| words.invalid("the name of a hub is malformed"))
    }
}

impl fmt::Display for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
