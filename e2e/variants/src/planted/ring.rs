//! Owns: the rings of tests that a bug is shown to, and what one of them may see.
//! Never: asks them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A ring of tests, the innermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ring {
    /// The tests that the bug's file names.
    Tests,
    /// Small worlds.
    Swarm,
    /// The programs under a simulated network.
    Netsim,
    /// Scenarios with the programs as processes, those that the bug's file names.
    Scenarios,
}

impl Ring {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Tests, Self::Swarm, Self::Netsim, Self::Scenarios];

    /// As it is called in the file of a bug.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tests => "tests",
            Self::Swarm => "swarm",
            Self::Netsim => "netsim",
            Self::Scenarios => "scenarios",
        }
    }
}

/// A ring's sight of a bug.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Sight {
    /// This.
    Seen(String),
    /// Nothing, in so much.
    Nothing(String),
}

impl Sight {
    /// Returns true if it saw anything.
    pub(super) fn is_seen(&self) -> bool {
        matches!(self, Self::Seen(_))
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Seen(what) => what.clone(),
            Self::Nothing(much) => format!("nothing in {much}"),
        }
    }
}

/// Sights of the rings that were asked.
pub(super) type Sights = BTreeMap<Ring, Sight>;
