//! Owns: what a doctor found, the words in which a person reads it, and the exit code. Pure.
//! Never: looks at anything.

use std::fmt::Write;

/// The exit code when nothing is wrong.
pub const EXIT_FINE: u8 = 0;
/// The exit code when something is wrong, whatever else could not be looked at.
pub const EXIT_FAULT: u8 = 1;
/// The exit code when nothing that was seen is wrong, and something could not be looked at.
pub const EXIT_UNSEEN: u8 = 2;

/// Longest text of a check that is shown, in characters: others' words are in it.
pub const TEXT_CHARS_MAX: usize = 1_000;
/// Width of the column of names.
const NAME_WIDTH: usize = 22;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its name; the same in every release.
    pub name: &'static str,
    /// Its verdict.
    pub verdict: Verdict,
}

/// The verdict of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Fine(String),
    /// As it may be; somebody may want to know.
    Note(String),
    /// Not as it should be.
    Fault {
        /// The fault.
        what: String,
        /// The next step: a command, or a sentence.
        fix: String,
    },
    /// It should have been looked at, and could not.
    Unseen {
        /// Why.
        why: String,
        /// The next step that makes the check possible.
        fix: String,
    },
    /// There is nothing to look at, or not from here.
    Skipped(String),
}

/// Everything that was looked at, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The checks.
    pub checks: Vec<Check>,
}

impl Check {
    /// All is well.
    pub fn fine(name: &'static str, what: impl Into<String>) -> Self {
        let verdict = Verdict::Fine(what.into());
        Self { name, verdict }
    }

    /// Somebody may want to know.
    pub fn note(name: &'static str, what: impl Into<String>) -> Self {
        let verdict = Verdict::Note(what.into());
        Self { name, verdict }
    }

    /// Something is wrong.
    pub fn fault(name: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        let (what, fix) = (what.into(), fix.into());
        let verdict = Verdict::Fault { what, fix };
        Self { name, verdict }
    }

    /// It could not be looked at.
    pub fn unseen(name: &'static str, why: impl Into<String>, fix: impl Into<String>) -> Self {
        let (why, fix) = (why.into(), fix.into());
        let verdict = Verdict::Unseen { why, fix };
        Self { name, verdict }
    }

    /// There is nothing to look at.
    pub fn skipped(name: &'static str, why: impl Into<String>) -> Self {
        let verdict = Verdict::Skipped(why.into());
        Self { name, verdict }
    }

    /// Returns true if there is a fault.
    pub fn is_fault(&self) -> bool {
        matches!(self.verdict, Verdict::Fault { .. })
    }
}

impl Verdict {
    /// The word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Fine(_) => "ok",
            Self::Note(_) => "note",
            Self::Fault { .. } => "fault",
            Self::Unseen { .. } => "unseen",
            Self::Skipped(_) => "skipped",
        }
    }

    /// The finding, and the next step if there is one.
    pub fn words(&self) -> (String, Option<String>) {
        match self {
            Self::Fine(what) | Self::Note(what) | Self::Skipped(what) => (plain(what), None),
            Self::Fault { what, fix } | Self::Unseen { why: what, fix } => (plain(what), Some(plain(fix))),
        }
    }
}

impl Report {
    /// The faults.
    pub fn faults(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.is_fault())
    }

    /// Adds what was found.
    pub fn extend(&mut self, checks: impl IntoIterator<Item = Check>) {
        self.checks.extend(checks);
    }

    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        let unseen = |check: &Check| matches!(check.verdict, Verdict::Unseen { .. });
        if self.faults().next().is_some() {
            EXIT_FAULT
        } else if self.checks.iter().any(unseen) {
            EXIT_UNSEEN
        } else {
            EXIT_FINE
        }
    }

    /// A line for each check, and one under it where something is to be done.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Check { name, verdict } in &self.checks {
            let word = match verdict {
                Verdict::Fault { .. } => "FAULT",
                other => other.word(),
            };
            let (what, fix) = verdict.words();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{word:<8}{name:<NAME_WIDTH$} {what}");
            if let Some(fix) = fix {
                let _ = writeln!(text, "{:8}{:NAME_WIDTH$} fix: {fix}", "", "");
            }
        }
        let unseen = self
            .checks
            .iter()
            .filter(|check| check.verdict.word() == "unseen");
        let (faults, unseen) = (self.faults().count(), unseen.count());
        let _ = match (faults, unseen) {
            (0, 0) => writeln!(text, "Nothing is wrong."),
            (0, unseen) => writeln!(text, "Nothing seen is wrong; could not be looked at: {unseen}."),
            (faults, 0) => writeln!(text, "Faults: {faults}."),
            (faults, unseen) => writeln!(text, "Faults: {faults}; could not be looked at: {unseen}."),
        };
        text
    }
}

/// A text of bounded length on one line, whatever others have put into it.
fn plain(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(TEXT_CHARS_MAX).map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(checks: Vec<Check>) -> Report {
        Report { checks }
    }

    #[test]
    fn a_fault_counts_before_what_could_not_be_seen() {
        let (fine, note) = (Check::fine("a", "well"), Check::note("b", "old"));
        let (unseen, skipped) = (Check::unseen("c", "no", "look"), Check::skipped("d", "none"));
        let fault = Check::fault("e", "broken", "mend it");
        assert_eq!(of(vec![]).exit_code(), EXIT_FINE);
        assert_eq!(of(vec![fine.clone(), note, skipped]).exit_code(), EXIT_FINE);
        assert_eq!(of(vec![fine.clone(), unseen.clone()]).exit_code(), EXIT_UNSEEN);
        assert_eq!(of(vec![unseen, fault, fine]).exit_code(), EXIT_FAULT);
    }

    #[test]
    fn a_fault_is_named_with_its_fix_and_the_rest_is_short() {
        let text = of(vec![
            Check::fine("hub-name", "it resolves"),
            Check::fault("hub-port", "closed", "open it"),
        ])
        .text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[0].starts_with("ok      hub-name"), "{text}");
        assert!(
            lines[1].starts_with("FAULT   hub-port") && lines[1].ends_with("closed"),
            "{text}"
        );
        assert!(lines[2].ends_with("fix: open it"), "{text}");
        assert_eq!(lines[3], "Faults: 1.");
        assert!(of(vec![]).text().contains("Nothing is wrong."));
        let unseen = of(vec![Check::unseen("a", "b", "c")]).text();
        assert!(unseen.contains("could not be looked at: 1."), "{unseen}");
    }

    #[test]
    fn words_of_others_stay_on_one_line_and_within_a_bound() {
        let said = format!("a\nFAULT\u{1b}[31m{}", "x".repeat(2 * TEXT_CHARS_MAX));
        let (what, _) = Check::fine("a", said).verdict.words();
        assert!(what.starts_with("a FAULT [31m"), "{what}");
        assert_eq!(what.chars().count(), TEXT_CHARS_MAX);
    }
}
