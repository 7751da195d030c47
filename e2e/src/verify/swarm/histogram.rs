//! What happened in the worlds that were played, by kind. A kind that never happened was not tested.

use std::{collections::BTreeMap, fmt};

/// Everything that a swarm is expected to meet. A swarm of [`WHOLE_SWARM`] seeds in which one of these never
/// happened has failed, for it proves less than it says.
pub const EXPECTED: &[&str] = &[
    "agent crashed",
    "agent doubled",
    "answer lost",
    "clock skewed",
    "conflict settled",
    "connection broken",
    "crd removed",
    "drift",
    "epoch begun",
    "export removed",
    "half partition",
    "hub crashed",
    "hub lost unsynced batches",
    "hub restored from a backup",
    "hub started empty",
    "hub stopped in order",
    "http 409",
    "http 410",
    "http 429",
    "http 500",
    "interest changed",
    "item refused",
    "listing cut off",
    "namespace came",
    "namespace went",
    "part stalled",
    "partition",
    "removal applied",
    "resume",
    "second session refused",
    "second session took over",
    "service removed",
    "silence ended a session",
    "slice removed",
    "snapshot",
    "stranger",
    "sync failed",
    "time passed",
    "torn batch",
    "watch dropped",
    "watch history lost",
];

/// How many seeds are enough for every kind to happen.
pub const WHOLE_SWARM: u64 = 1_000;

/// Counts by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram(BTreeMap<&'static str, u64>);

impl Histogram {
    /// It happened once more.
    pub fn count(&mut self, kind: &'static str) {
        debug_assert!(EXPECTED.contains(&kind), "{kind} is not among what is expected");
        *self.0.entry(kind).or_default() += 1;
    }

    /// Adds what happened elsewhere.
    pub fn add(&mut self, other: &Self) {
        for (kind, count) in &other.0 {
            *self.0.entry(kind).or_default() += count;
        }
    }

    /// What was expected and never happened.
    pub fn missing(&self) -> Vec<&'static str> {
        let never = |kind: &&&str| !self.0.contains_key(**kind);
        EXPECTED.iter().filter(never).copied().collect()
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kind in EXPECTED {
            writeln!(f, "{:>12}  {kind}", self.0.get(kind).copied().unwrap_or(0))?;
        }
        Ok(())
    }
}
