//! Owns: how much a comparison has seen: how cases ended, and of which functions a call gave a value.
//! Never: judges a case.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::ensure;

use super::draw::{Case, WORDS};

/// Functions of which no call gives a value: one fails always, and of the other nothing that is drawn can be called.
const NEVER_OF_VALUE: [&str; 2] = ["fail", "call"];

/// The result of a case, in both engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Seen {
    /// The same value.
    Value,
    /// It is no template.
    NoTemplate,
    /// It cannot be carried out.
    NotExecuted,
    /// The same text, which is no YAML.
    NoYaml,
    /// Ours refuses what takes too much, by a count.
    Bound,
    /// A call or a regular expression that ours refuses.
    Refused,
    /// Go gives one result and another, and ours is one of them.
    Open,
    /// Go does not come to an end, and ours refuses it.
    NoEnd,
}

impl Seen {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Value, "values"),
        (Self::NoTemplate, "no templates"),
        (Self::NotExecuted, "not executed"),
        (Self::NoYaml, "no YAML"),
        (Self::Bound, "over a bound"),
        (Self::Refused, "refused"),
        (Self::Open, "one of several in Go"),
        (Self::NoEnd, "without an end in Go"),
    ];
}

/// The results so far.
#[derive(Debug, Default)]
pub(super) struct Guarded {
    seen: BTreeMap<Seen, u64>,
    of_value: BTreeSet<&'static str>,
}

impl Guarded {
    /// A case was the same in both.
    pub(super) fn add(&mut self, case: &Case, seen: Seen) {
        *self.seen.entry(seen).or_default() += 1;
        if seen == Seen::Value {
            let words: BTreeSet<&str> = case
                .template
                .split(|one: char| !one.is_ascii_alphanumeric() && one != '_')
                .collect();
            let called = WORDS
                .signatures
                .iter()
                .map(|(name, _)| name.as_str())
                .filter(|name| words.contains(name));
            self.of_value.extend(called);
        }
    }

    /// One line.
    pub(super) fn shown(&self) -> String {
        let counts: Vec<String> = Seen::ALL
            .iter()
            .map(|(seen, name)| format!("{} {name}", self.seen.get(seen).copied().unwrap_or_default()))
            .collect();
        let (of_value, all) = (self.of_value.len(), WORDS.signatures.len());
        format!(
            "{}; {of_value} of {all} functions in a template that has a value",
            counts.join(", ")
        )
    }

    /// Each function had a call in a template that has a value.
    ///
    /// # Errors
    ///
    /// The functions of which that is not so.
    pub(super) fn complete(&self) -> anyhow::Result<()> {
        let names = WORDS.signatures.iter().map(|(name, _)| name.as_str());
        let missing: Vec<&str> = names
            .filter(|name| !self.of_value.contains(name) && !NEVER_OF_VALUE.contains(name))
            .collect();
        ensure!(
            missing.is_empty(),
            "{}; no template with a value had {}: play more seeds",
            self.shown(),
            missing.join(", ")
        );
        Ok(())
    }
}
