//! Owns: what one cluster holds of one service, taken to pieces, and how two such sets differ.
//! Never: says which pieces should be there.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use super::picture::text;

/// The owner of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// The ServiceImport.
    Import,
    /// The readiness of the import: it has the addresses of its derived Service, or needs none.
    Readiness,
    /// A clusterset IP. No one can foretell it; it has to stay.
    Ip,
    /// The derived Service.
    Derived,
    /// The imported EndpointSlices.
    Slices,
    /// The conditions of a ServiceExport.
    Export,
}

/// One piece of what a cluster holds: *port http/TCP/80 of the import*.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// Its owner.
    pub of: Of,
    /// The piece, in words.
    pub what: String,
}

impl Part {
    pub(super) fn new(of: Of, what: impl Into<String>) -> Self {
        Self {
            of,
            what: what.into(),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// All pieces of one service in one cluster.
pub type Parts = BTreeSet<Part>;

/// A kind of fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// All that must be there is there, and something besides.
    #[error("{0}")]
    TooMuch(String),
    /// Something that must be there is not there, or is another thing.
    #[error("{0}")]
    Lacking(String),
}

/// Compares what is shown with what must be there.
pub fn compare(shown: &Parts, expected: &Parts) -> Result<(), Wrong> {
    let judged = |part: &&Part| part.of != Of::Ip;
    let lacking = in_words(expected.difference(shown).filter(judged));
    let too_much = in_words(shown.difference(expected).filter(judged));
    match (lacking.is_empty(), too_much.is_empty()) {
        (true, true) => Ok(()),
        (true, false) => Err(Wrong::TooMuch(format!("too much: {too_much}"))),
        (false, true) => Err(Wrong::Lacking(format!("lacking: {lacking}"))),
        (false, false) => Err(Wrong::Lacking(format!("lacking: {lacking}; instead: {too_much}"))),
    }
}

/// Pieces for people, one after the other.
pub fn in_words<'a>(parts: impl Iterator<Item = &'a Part>) -> String {
    let words: Vec<&str> = parts.map(|part| part.what.as_str()).collect();
    words.join(", ")
}

/// A port as Services and slices have it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) protocol: String,
    pub(super) number: i64,
    pub(super) app_protocol: String,
}

impl Port {
    pub(super) fn all(ports: &Value) -> Vec<Self> {
        let port = |port: &Value| Self {
            name: text(&port["name"]),
            protocol: port["protocol"].as_str().unwrap_or("TCP").to_owned(),
            number: port["port"].as_i64().unwrap_or_default(),
            app_protocol: text(&port["appProtocol"]),
        };
        ports.as_array().into_iter().flatten().map(port).collect()
    }

    /// The protocol and number that clients connect to.
    pub(super) fn number(&self) -> (&str, i64) {
        (&self.protocol, self.number)
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port \"{}\" {}/{}", self.name, self.number, self.protocol)?;
        match self.app_protocol.as_str() {
            "" => Ok(()),
            app_protocol => write!(f, " ({app_protocol})"),
        }
    }
}
