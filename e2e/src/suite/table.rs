//! Owns: the table scenario × {simulated, real} that a run prints at its end.
//! Never: decides an outcome.

use crate::real::Counts;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Where a scenario ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Simulated,
    Real,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TestResult {
    Passed {
        took: Duration,
        requests: Option<Counts>,
    },
    Failed,
    Ignored,
}

impl TestResult {
    pub(super) fn of(result: &anyhow::Result<()>, took: Duration, requests: Option<Counts>) -> Self {
        match result {
            Ok(()) => Self::Passed { took, requests },
            Err(_) => Self::Failed,
        }
    }

    fn cell(&self) -> String {
        match self {
            Self::Passed { took, .. } => format!("ok {:.1} s", took.as_secs_f64()),
            Self::Failed => "FAILED".to_owned(),
            Self::Ignored => "ignored".to_owned(),
        }
    }
}

type Table = BTreeMap<String, BTreeMap<Kind, TestResult>>;

static TABLE: Mutex<Table> = Mutex::new(BTreeMap::new());

/// Notes the outcome of a scenario. The same scenario on both kinds of clusters makes one row: what stands
/// before the first `::` of a name (`sim::` or `real::`) does not count.
pub(super) fn record(name: &str, kind: Kind, outcome: TestResult) {
    let row = ["sim::", "real::"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name);
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    table.entry(row.to_owned()).or_default().insert(kind, outcome);
}

/// The table of everything recorded; empty when nothing was.
pub(super) fn render(git_version: Option<&str>) -> String {
    rendered(&TABLE.lock().unwrap_or_else(PoisonError::into_inner), git_version)
}

fn rendered(table: &Table, git_version: Option<&str>) -> String {
    let Some(width) = table.keys().map(String::len).max() else {
        return String::new();
    };
    let width = width.max("scenario".len());
    let real = git_version.map_or("real".to_owned(), |version| format!("real ({version})"));
    let mut text = String::new();
    let mut line = |name: &str, simulated: &str, real: &str, requests: &str| {
        let row = format!("{name:<width$}  {simulated:<10}  {real:<15}  {requests}");
        // Writing to a String does not fail.
        let _ = writeln!(text, "{}", row.trim_end());
    };
    line(
        "scenario",
        "simulated",
        &real,
        "requests of the tested, without Leases",
    );
    for (name, outcomes) in table {
        let cell = |kind| outcomes.get(&kind).map_or("-".to_owned(), TestResult::cell);
        let requests = match outcomes.get(&Kind::Real) {
            Some(TestResult::Passed {
                requests: Some(counts),
                ..
            }) => {
                format!("{} ({} writes)", counts.total(), counts.writes())
            }
            _ => String::new(),
        };
        line(name, &cell(Kind::Simulated), &cell(Kind::Real), &requests);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_per_scenario_with_both_kinds() {
        let passed = |requests| TestResult::Passed {
            took: Duration::from_millis(1250),
            requests,
        };
        let table = Table::from([
            (
                "exports".to_owned(),
                BTreeMap::from([
                    (Kind::Simulated, passed(None)),
                    (Kind::Real, passed(Some(Counts::default()))),
                ]),
            ),
            (
                "names".to_owned(),
                BTreeMap::from([(Kind::Real, TestResult::Ignored)]),
            ),
        ]);
        let expected = "scenario  simulated   real (v1.2.3)    requests of the tested, without Leases\n\
                        exports   ok 1.2 s    ok 1.2 s         0 (0 writes)\n\
                        names     -           ignored\n";
        assert_eq!(rendered(&table, Some("v1.2.3")), expected);
        assert_eq!(rendered(&Table::new(), None), "");
    }
}
