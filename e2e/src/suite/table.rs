//! Owns: the table of scenarios that a run prints at its end: the slowest ones, and sums of all. All of them are in a file.
//! Never: decides an outcome.

use cluster::cost::{Counter, Spent};
use cluster::real::Counts;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Scenarios that are printed; the file has the rest.
const SHOWN_MAX: usize = 40;
/// The file, in the target directory of this binary.
const FILE: &str = "e2e-scenarios.txt";

/// The place of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Simulated,
    Real,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Real => "real",
        }
    }
}

/// The result of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TestResult {
    Passed,
    Failed,
    Ignored,
}

impl TestResult {
    fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Failed => "FAILED",
            Self::Ignored => "ignored",
        }
    }
}

/// Times of a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Measured {
    /// Until it might begin: for a permit, a fleet, the start of one.
    waited: Duration,
    /// From then on.
    took: Duration,
    spent: Spent,
    /// Of hubs and agents, where audit logs tell.
    pub(super) requests: Option<Counts>,
}

impl Measured {
    /// Of a scenario that asked at this moment whether it might begin, waited so long, and has ended now.
    pub(super) fn new(asked: Instant, waited: Duration, counter: &Arc<Counter>) -> Self {
        Self {
            waited,
            took: asked.elapsed().saturating_sub(waited),
            spent: counter.spent(),
            requests: None,
        }
    }
}

#[derive(Debug, Clone)]
struct Row {
    name: String,
    kind: Kind,
    outcome: TestResult,
    measured: Measured,
}

static TABLE: Mutex<Vec<Row>> = Mutex::new(Vec::new());

/// Notes the outcome of a scenario.
pub(super) fn record(name: &str, kind: Kind, outcome: TestResult, measured: Measured) {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    table.push(Row {
        name: name.to_owned(),
        kind,
        outcome,
        measured,
    });
}

/// The table of what was recorded, as far as it is printed; empty when nothing was. Writes the file when it has more.
pub(super) fn shown(git_version: Option<&str>) -> String {
    let mut rows = TABLE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    rows.sort_by_key(|row| std::cmp::Reverse(row.measured.took));
    let printed = rendered(&rows, SHOWN_MAX, git_version);
    if rows.len() <= SHOWN_MAX {
        return printed;
    }
    let Some(path) = file() else { return printed };
    match std::fs::write(&path, rendered(&rows, rows.len(), git_version)) {
        Ok(()) => format!("{printed}all {} scenarios: {}\n", rows.len(), path.display()),
        Err(error) => format!("{printed}{} cannot be written: {error}\n", path.display()),
    }
}

/// This binary lies in target/PROFILE/deps.
fn file() -> Option<PathBuf> {
    let this = std::env::current_exe().ok()?;
    Some(this.ancestors().nth(3)?.join(FILE))
}

fn rendered(rows: &[Row], shown: usize, git_version: Option<&str>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "the slowest of {} scenarios, in seconds{}; the last three are of the processor\n",
        rows.len(),
        git_version.map_or(String::new(), |version| format!(
            ", on Kubernetes {version} where real"
        ))
    );
    let mut line = |cells: [&str; 5], words: &str| {
        let [took, waited, harness, programs, clusters] = cells;
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "{took:>7} {waited:>7} {harness:>8} {programs:>8} {clusters:>8}  {words}"
        );
    };
    line(
        ["took", "waited", "scenario", "programs", "clusters"],
        "scenario, and requests of hubs and agents without Leases",
    );
    let seconds = |time: Duration| format!("{:.1}", time.as_secs_f64());
    let mut of = |took: Duration, waited: Duration, spent: Spent, words: &str| {
        let times = [took, waited, spent.harness, spent.programs, spent.clusters].map(seconds);
        line(times.each_ref().map(String::as_str), words);
    };
    for row in &rows[..shown.min(rows.len())] {
        let requests = row.measured.requests.as_ref().map_or(String::new(), |counts| {
            format!(", {} requests ({} writes)", counts.total(), counts.writes())
        });
        let Measured {
            took, waited, spent, ..
        } = row.measured;
        let words = format!(
            "{:<9} {:<7} {}{requests}",
            row.kind.word(),
            row.outcome.word(),
            row.name
        );
        of(took, waited, spent, &words);
    }
    for kind in [Kind::Simulated, Kind::Real] {
        let of_it = || {
            rows.iter()
                .filter(|row| row.kind == kind)
                .map(|row| &row.measured)
        };
        let count = of_it().count();
        if count == 0 {
            continue;
        }
        let took = of_it().map(|measured| measured.took).sum();
        let waited = of_it().map(|measured| measured.waited).sum();
        let mut spent = Spent::default();
        of_it().for_each(|measured| spent += measured.spent);
        let words = format!(
            "{:<9} sum of {count}, {} of the processor",
            kind.word(),
            seconds(Spent::total(&spent))
        );
        of(took, waited, spent, &words);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_are_shown_and_all_are_summed() {
        let row = |name: &str, kind, outcome, millis| Row {
            name: name.to_owned(),
            kind,
            outcome,
            measured: Measured {
                waited: Duration::from_millis(500),
                took: Duration::from_millis(millis),
                spent: Spent {
                    harness: Duration::from_millis(100),
                    programs: Duration::from_millis(200),
                    clusters: Duration::from_millis(400),
                },
                requests: (kind == Kind::Real).then(Counts::default),
            },
        };
        let rows = [
            row("real::names", Kind::Real, TestResult::Failed, 2_250),
            row("sim::names", Kind::Simulated, TestResult::Passed, 1_250),
            row("real::exports", Kind::Real, TestResult::Ignored, 100),
        ];
        let expected = "the slowest of 3 scenarios, in seconds, on Kubernetes v1.2.3 where real; \
                        the last three are of the processor\n\
                        \x20  took  waited scenario programs clusters  scenario, and requests of hubs and agents without Leases\n\
                        \x20   2.2     0.5      0.1      0.2      0.4  real      FAILED  real::names, 0 requests (0 writes)\n\
                        \x20   1.2     0.5      0.1      0.2      0.4  simulated ok      sim::names\n\
                        \x20   1.2     0.5      0.1      0.2      0.4  simulated sum of 1, 0.7 of the processor\n\
                        \x20   2.4     1.0      0.2      0.4      0.8  real      sum of 2, 1.4 of the processor\n";
        assert_eq!(rendered(&rows, 2, Some("v1.2.3")), expected);
        assert_eq!(rendered(&[], 2, None), "");
    }
}
