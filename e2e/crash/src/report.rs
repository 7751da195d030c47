//! Owns: what became of each kind of crash, as a table and a verdict.
//! Never: crashes anything.

use std::{path::PathBuf, time::Duration};

use super::args::Crash;
use oracle::laws::{Guarded, Law};

/// The laws that a kind of crash is judged by. Over a log that was set back nothing promises what was acknowledged
/// after the copy; there it is the new epoch that counts.
fn laws(kind: Crash) -> &'static [Law] {
    match kind {
        Crash::Hub | Crash::FullDisk => &[Law::Holds, Law::Stood, Law::Durable],
        Crash::Agent | Crash::PausedHub | Crash::PausedAgent => &[Law::Holds, Law::Stood],
        Crash::LowDisk => &[Law::Holds, Law::Stood, Law::Reserve],
        Crash::RestoredCopy | Crash::RestoredBackup => &[Law::Holds, Law::Stood, Law::Rewinds],
    }
}

/// The result of one kind.
#[derive(Debug)]
pub(super) struct KindResult {
    /// The kind.
    pub kind: Crash,
    /// Rounds that were wanted.
    pub wanted: u32,
    /// The recovery of each round that went well.
    pub recoveries: Vec<Duration>,
    /// Objects that each law guarded in them.
    pub guarded: Guarded,
    /// Further figures, in words.
    pub counted: String,
    /// Its end.
    pub end: End,
}

/// The end of a kind.
#[derive(Debug)]
pub(super) enum End {
    /// Every round went well.
    Passed,
    /// A rule was broken; the logs of its programs are there.
    Violated(String, PathBuf),
    /// It cannot run here.
    NotRun(String),
}

impl KindResult {
    fn violations(&self) -> u32 {
        u32::from(matches!(self.end, End::Violated(..)))
    }

    /// The laws that went to the end of the run and guarded nothing.
    fn idle(&self) -> Vec<&'static str> {
        match self.end {
            End::Passed => self.guarded.idle(laws(self.kind)),
            End::Violated(..) | End::NotRun(_) => Vec::new(),
        }
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
pub(super) fn text(outcomes: &[KindResult], seed: u64, took: Duration) -> String {
    let head = "               rounds violations   recovery in ms";
    let mut lines = vec![
        format!("{head:<56}  counted"),
        format!("{:<14} {:>9} {:>10} {:>9} {:>9}", "kind", "", "", "p50", "max"),
    ];
    lines.extend(outcomes.iter().map(KindResult::line));
    for outcome in outcomes {
        let kind = outcome.kind.name();
        lines.push(String::new());
        if !matches!(outcome.end, End::NotRun(_)) {
            lines.push(format!("{kind}:"));
            lines.extend(outcome.guarded.lines(laws(outcome.kind)));
        }
        match &outcome.end {
            End::Passed if outcome.idle().is_empty() => {}
            End::Passed => lines.push(format!(
                "{kind}: every law held, but these guarded nothing: {}",
                outcome.idle().join(", ")
            )),
            End::Violated(what, logs) => lines.push(format!(
                "violation in {kind}, round {}: {what}\nthe logs are in {}",
                outcome.recoveries.len() + 1,
                logs.display()
            )),
            End::NotRun(why) => lines.push(format!("{kind} was not run: {why}")),
        }
    }
    let rounds: usize = outcomes.iter().map(|outcome| outcome.recoveries.len()).sum();
    let violations: u32 = outcomes.iter().map(KindResult::violations).sum();
    let not_run = outcomes
        .iter()
        .filter(|outcome| matches!(outcome.end, End::NotRun(_)))
        .count();
    let idle: usize = outcomes.iter().map(|outcome| outcome.idle().len()).sum();
    let verdict = match (violations, idle, not_run) {
        (0, 0, 0) => "PASSED".to_owned(),
        (0, 0, not_run) => format!("PASSED, but for {not_run} kinds that were not run"),
        (0, ..) => "FAILED, for laws that guarded nothing".to_owned(),
        _ => "FAILED".to_owned(),
    };
    lines.push(format!("seed {seed}, {} s", took.as_secs()));
    lines.push(format!(
        "verdict: {verdict}: {rounds} rounds, {violations} violations"
    ));
    lines.join("\n")
}

/// Returns true if the run is a success. A kind with a law that guarded nothing is none, and in CI one that was not
/// run.
pub(super) fn passed(outcomes: &[KindResult], ci: bool) -> bool {
    outcomes.iter().all(|outcome| match outcome.end {
        End::Passed => outcome.idle().is_empty(),
        End::Violated(..) => false,
        End::NotRun(_) => !ci,
    })
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    fn guarding(laws: &[Law]) -> Guarded {
        let mut guarded = Guarded::default();
        laws.iter().for_each(|law| guarded.count(*law, 12));
        guarded
    }

    fn outcome(kind: Crash, end: End) -> KindResult {
        let recoveries = [30, 10, 20].map(Duration::from_millis).to_vec();
        KindResult {
            kind,
            wanted: 3,
            recoveries,
            guarded: guarding(laws(kind)),
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

    #[test]
    fn each_kind_says_what_it_guarded_and_one_that_guarded_nothing_fails() {
        for kind in Crash::value_variants() {
            let mut run = [outcome(*kind, End::Passed)];
            let all = text(&run, 9, Duration::ZERO);
            for law in laws(*kind) {
                assert!(all.contains(&format!("guarded by: {}", law.name())), "{all}");
            }
            assert!(passed(&run, false), "{all}");
            let (idle, guarding_laws) = laws(*kind).split_last().expect("every kind has laws");
            run[0].guarded = guarding(guarding_laws);
            let all = text(&run, 9, Duration::ZERO);
            let told = format!(
                "{}: every law held, but these guarded nothing: {}",
                kind.name(),
                idle.name()
            );
            assert!(
                all.contains(&told) && all.contains("verdict: FAILED, for laws"),
                "{all}"
            );
            assert!(!passed(&run, false), "{all}");
        }
    }
}
