//! Owns: what came of one attack: a row of the table, and whether it held.
//! Never: measures.

use std::{fmt, time::Duration};

use super::{attack::Attack, played::Played};
use crate::report::Section;

/// Fewer calls than this prove nothing.
const CALLS_MIN: usize = 2;
/// By how much the hub's memory may grow in all attacks together: 8 connections of the hostile member with a megabyte
/// of window each, 16 streams of 64 KiB and one of 4 MiB are 13 MB; a thousand sockets in their handshakes, and what
/// the allocator keeps of what is gone, are the rest.
pub(super) const GROWTH_BYTES_MAX: u64 = 64_000_000;

/// An operator's calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    /// Duration of each; `None` for one that was not answered in time.
    took: Vec<Option<Duration>>,
    /// The first reason why one was not.
    unanswered: Option<String>,
}

impl Calls {
    /// One more.
    pub(super) fn note(&mut self, answered: anyhow::Result<Duration>) {
        self.took.push(answered.as_ref().ok().copied());
        if let Err(error) = answered {
            self.unanswered.get_or_insert(format!("{error:#}"));
        }
    }

    fn answered(&self) -> impl Iterator<Item = Duration> {
        self.took.iter().flatten().copied()
    }

    fn slowest(&self) -> Duration {
        self.answered().max().unwrap_or_default()
    }
}

/// Observations beside an attack.
pub(super) struct Row {
    pub(super) attack: Attack,
    /// The attacker's deeds, and their required amount.
    pub(super) played: Played,
    pub(super) least: u64,
    pub(super) calls: Calls,
    /// Members, and those of them still in the session that they began.
    pub(super) members: usize,
    pub(super) in_session: usize,
    /// The longest that one of them heard nothing.
    pub(super) silence: Duration,
    /// Resident bytes of the hub: before the first attack, before this one, at most, and after.
    pub(super) start: u64,
    pub(super) before: u64,
    pub(super) peak: u64,
    pub(super) after: u64,
}

/// Bytes as people read them.
pub(super) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

impl Row {
    /// The line above the rows.
    pub(super) fn head() -> String {
        let (answered, slowest, session, silent) = ("calls answered", "slowest", "in session", "silent");
        let (before, peak, after) = ("MB before", "peak", "after");
        format!(
            "{:<18} {answered:>14} {slowest:>8} {session:>10} {silent:>8} {before:>9} {peak:>5} {after:>5}  played",
            "attack"
        )
    }

    /// Broken requirements.
    pub(super) fn broken(&self) -> Vec<String> {
        let attack = self.attack;
        let (asked, answered) = (self.calls.took.len(), self.calls.answered().count());
        let mut broken = Vec::new();
        if let Some(why) = self.played.too_little(self.least) {
            broken.push(format!("{attack}: {why}"));
        }
        if let Some(why) = self.played.too_many() {
            broken.push(format!("{attack}: {why}"));
        }
        if answered < asked || asked < CALLS_MIN {
            let why = self.calls.unanswered.as_deref().unwrap_or("too few were made");
            broken.push(format!(
                "{attack}: {answered} of {asked} calls of the operator were answered ({why})"
            ));
        }
        if self.in_session < self.members {
            let (kept, members) = (self.in_session, self.members);
            broken.push(format!("{attack}: {kept} of {members} members stayed in session"));
        }
        let growth = self.peak.saturating_sub(self.start);
        if growth > GROWTH_BYTES_MAX {
            let (growth, most) = (megabytes(growth), megabytes(GROWTH_BYTES_MAX));
            broken.push(format!(
                "{attack}: the hub has grown by {growth:.0} MB since the first attack, and {most:.0} are allowed"
            ));
        }
        broken
    }

    /// Adds it to what is written.
    pub(super) fn describe(&self, section: &mut Section) {
        let attack = self.attack;
        let mut figure =
            |what: &str, value: f64, unit| section.figure(format!("{attack}: {what}"), value, unit);
        figure(self.played.what, self.played.amount as f64, "");
        figure("operator's calls", self.calls.took.len() as f64, "");
        figure(
            "of them answered in time",
            self.calls.answered().count() as f64,
            "",
        );
        figure("the slowest of those", self.calls.slowest().as_secs_f64(), "s");
        figure("members in session", self.in_session as f64, "");
        figure("longest silence", self.silence.as_secs_f64(), "s");
        figure("hub memory before", megabytes(self.before), "MB");
        figure("hub memory at its peak", megabytes(self.peak), "MB");
        figure("hub memory after", megabytes(self.after), "MB");
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            in_session, members, ..
        } = self;
        let answered = format!("{} of {}", self.calls.answered().count(), self.calls.took.len());
        let held = format!("{in_session} of {members}");
        let verdict = if self.broken().is_empty() { "" } else { "  BROKEN" };
        write!(
            f,
            "{:<18} {answered:>14} {:>6.2} s {held:>10} {:>6.1} s {:>9.0} {:>5.0} {:>5.0}  {}{verdict}",
            self.attack.to_string(),
            self.calls.slowest().as_secs_f64(),
            self.silence.as_secs_f64(),
            megabytes(self.before),
            megabytes(self.peak),
            megabytes(self.after),
            self.played,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let mut calls = Calls::default();
        for _ in 0..CALLS_MIN {
            calls.note(Ok(Duration::from_millis(20)));
        }
        Row {
            attack: Attack::SilentSockets,
            played: Played {
                amount: 10,
                what: "sockets",
                met: 10,
                held: Some((8, 8)),
                words: "10 closed".to_owned(),
            },
            least: 10,
            calls,
            members: 2,
            in_session: 2,
            silence: Duration::from_secs(1),
            start: 1,
            before: 0,
            peak: 1 + GROWTH_BYTES_MAX,
            after: 0,
        }
    }

    #[test]
    fn whatever_did_not_hold_is_named() {
        assert_eq!(row().broken(), Vec::<String>::new());
        let mut unanswered = row();
        unanswered.calls.note(Err(anyhow::anyhow!("deaf")));
        let mut few = row();
        few.calls.took.truncate(1);
        let left = Row {
            in_session: 1,
            ..row()
        };
        let grown = Row { start: 0, ..row() };
        let little = Row { least: 11, ..row() };
        let mut many = row();
        many.played.held = Some((9, 8));
        for (row, what) in [
            (unanswered, "2 of 3 calls of the operator were answered (deaf)"),
            (few, "too few were made"),
            (left, "1 of 2 members stayed"),
            (grown, "grown by 64 MB"),
            (little, "10 sockets were played"),
            (many, "held 9 sockets"),
        ] {
            let broken = row.broken();
            assert!(broken.len() == 1 && broken[0].contains(what), "{broken:?}");
            assert!(row.to_string().ends_with("BROKEN"));
        }
    }
}
