//! Owns: what became of each kind of crash, as a table and a verdict.
//! Never: crashes anything.

use std::{path::PathBuf, time::Duration};

use super::args::Crash;

/// How one kind went.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Which.
    pub kind: Crash,
    /// Rounds that were wanted.
    pub wanted: u32,
    /// The recovery of each round that went well.
    pub recoveries: Vec<Duration>,
    /// What else was counted, in words.
    pub counted: String,
    /// How it ended.
    pub end: End,
}

/// How a kind ended.
#[derive(Debug)]
pub(super) enum End {
    /// Every round went well.
    Passed,
    /// A rule was broken; the logs of its programs are there.
    Violated(String, PathBuf),
    /// It cannot run here.
    NotRun(String),
}

impl Outcome {
    fn violations(&self) -> u32 {
        u32::from(matches!(self.end, End::Violated(..)))
    }

    fn line(&self) -> String {
        let rounds = match self.end {
            End::NotRun(_) => "not run".to_owned(),
            _ => format!("{}/{}", self.recoveries.len(), self.wanted),
        };
        let mut sorted = self.recoveries.clone();
        sorted.sort_unstable();
        let millis = |at: Option<&Duration>| at.map_or("-".to_owned(), |at| at.as_millis().to_string());
        format!(
            "{:<14} {:>9} {:>10} {:>9} {:>9}  {}",
            self.kind.name(),
            rounds,
            self.violations(),
            millis(sorted.get(sorted.len() / 2)),
            millis(sorted.last()),
            self.counted
        )
    }
}

/// The table, what was violated or not run, and the verdict in the last line.
pub(super) fn text(outcomes: &[Outcome], seed: u64, took: Duration) -> String {
    let head = "               rounds violations   recovery in ms";
    let mut lines = vec![
        format!("{head:<56}  counted"),
        format!("{:<14} {:>9} {:>10} {:>9} {:>9}", "kind", "", "", "p50", "max"),
    ];
    lines.extend(outcomes.iter().map(Outcome::line));
    lines.push(String::new());
    for outcome in outcomes {
        let kind = outcome.kind.name();
        match &outcome.end {
            End::Passed => {}
            End::Violated(what, logs) => lines.push(format!(
                "violation in {kind}, round {}: {what}\nthe logs are in {}",
                outcome.recoveries.len() + 1,
                logs.display()
            )),
            End::NotRun(why) => lines.push(format!("{kind} was not run: {why}")),
        }
    }
    let rounds: usize = outcomes.iter().map(|outcome| outcome.recoveries.len()).sum();
    let violations: u32 = outcomes.iter().map(Outcome::violations).sum();
    let not_run = outcomes
        .iter()
        .filter(|outcome| matches!(outcome.end, End::NotRun(_)))
        .count();
    let verdict = match (violations, not_run) {
        (0, 0) => "PASSED".to_owned(),
        (0, not_run) => format!("PASSED, but for {not_run} kinds that were not run"),
        _ => "FAILED".to_owned(),
    };
    lines.push(format!("seed {seed}, {} s", took.as_secs()));
    lines.push(format!(
        "verdict: {verdict}: {rounds} rounds, {violations} violations"
    ));
    lines.join("\n")
}

/// Whether the run is a success. In CI a kind that was not run is none.
pub(super) fn passed(outcomes: &[Outcome], ci: bool) -> bool {
    outcomes.iter().all(|outcome| match outcome.end {
        End::Passed => true,
        End::Violated(..) => false,
        End::NotRun(_) => !ci,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(kind: Crash, end: End) -> Outcome {
        let recoveries = [30, 10, 20].map(Duration::from_millis).to_vec();
        Outcome {
            kind,
            wanted: 3,
            recoveries,
            counted: "7 facts".to_owned(),
            end,
        }
    }

    #[test]
    fn the_verdict_is_the_last_line_and_nothing_is_passed_over() {
        let good = [outcome(Crash::Hub, End::Passed)];
        let all = text(&good, 9, Duration::from_secs(4));
        assert!(all.ends_with("verdict: PASSED: 3 rounds, 0 violations"), "{all}");
        assert!(
            all.contains("seed 9") && all.lines().any(|line| line.contains("20        30  7 facts")),
            "{all}"
        );
        assert!(passed(&good, true));
        let absent = [outcome(Crash::FullDisk, End::NotRun("no mount".to_owned()))];
        assert!(passed(&absent, false) && !passed(&absent, true));
        assert!(text(&absent, 9, Duration::ZERO).contains("full-disk was not run: no mount"));
        let bad = [outcome(
            Crash::Agent,
            End::Violated("lost".to_owned(), "logs".into()),
        )];
        let all = text(&bad, 9, Duration::ZERO);
        assert!(
            all.contains("violation in agent, round 4: lost") && all.ends_with("1 violations"),
            "{all}"
        );
        assert!(!passed(&bad, false));
    }
}
