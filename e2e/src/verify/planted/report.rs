//! Owns: what became of the planted bugs, as a table and a verdict.
//! Never: plants or runs anything.

use std::time::Duration;

use super::{bug::Bug, judge::Verdict, swarm::Sight};

/// How one bug went.
#[derive(Debug)]
pub(super) struct Outcome<'a> {
    /// Which.
    pub(super) bug: &'a Bug,
    /// What the tests said.
    pub(super) tests: Verdict,
    /// What the swarm saw.
    pub(super) sight: Sight,
    /// How long that took.
    pub(super) took: Duration,
}

impl Outcome<'_> {
    /// Whether anything saw it.
    pub(super) fn is_caught(&self) -> bool {
        self.tests.is_caught() || self.sight.is_caught()
    }

    /// It in one line, but for what a compiler or a patch says.
    pub(super) fn line(&self) -> String {
        format!(
            "{:<36} {:>5} s  swarm: {:<48}  tests: {}",
            self.bug.name,
            self.took.as_secs(),
            self.sight.words(),
            self.tests.words()
        )
    }
}

/// The bugs, and what each is.
pub(super) fn list(bugs: &[Bug]) -> String {
    let lines = bugs.iter().map(|bug| format!("{:<32} {}", bug.name, bug.what));
    lines.collect::<Vec<_>>().join("\n")
}

/// The table, and the verdict in the last line.
pub(super) fn text(outcomes: &[Outcome<'_>], took: Duration) -> String {
    let mut lines = vec![format!("{:<36} {:>7}  caught by", "bug", "")];
    lines.extend(outcomes.iter().map(Outcome::line));
    let missed: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| !outcome.is_caught())
        .map(|outcome| &*outcome.bug.name)
        .collect();
    let caught = outcomes.len() - missed.len();
    let verdict = match missed.is_empty() {
        true => "PASSED".to_owned(),
        false => format!("FAILED: {}", missed.join(", ")),
    };
    lines.push(format!(
        "verdict: {verdict}: {caught} of {} planted bugs were caught in {} s",
        outcomes.len(),
        took.as_secs()
    ));
    lines.join("\n")
}
