//! Owns: the rows that are asked on nodes, how long a right answer is awaited, and what a wrong one is called.
//! Never: asks.

use std::{
    cell::RefCell,
    fmt,
    path::Path,
    time::{Duration, Instant},
};

use serde::Deserialize;

use super::control::wait_at_most;

/// A row of questions; each alone if one is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Row {
    /// Pods of all clusters answer.
    Echo,
    /// Only the cluster that exports it answers, and the local Service is unaffected.
    Partial,
    /// Only the cluster whose definition of the port won answers.
    Conflict,
    /// Pods of all clusters answer at a port that each of them names differently.
    Renamed,
    /// A change of exported labels and annotations changes nothing else.
    Labelled,
    /// Session affinity.
    Sticky,
    /// internalTrafficPolicy.
    OnNode,
    /// trafficDistribution.
    InZone,
    /// Names.
    Names,
    /// Requests while everything is replaced; asked of planted faults only, as a row of its own command.
    #[value(hide = true)]
    Churn,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Echo => "echo",
            Self::Partial => "partial",
            Self::Conflict => "conflict",
            Self::Renamed => "renamed",
            Self::Labelled => "labelled",
            Self::Sticky => "sticky",
            Self::OnNode => "on-node",
            Self::InZone => "in-zone",
            Self::Names => "names",
            Self::Churn => "churn",
        })
    }
}

/// A right answer that took longer is told, with the last one that was not.
const LATE: Duration = Duration::from_secs(10);

/// The way in which rows are asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// Only this one.
    pub(super) only: Option<Row>,
    /// Time for the right answer: a recent write must reach kube-proxy and CoreDNS, which caches for half a minute that
    /// there is no such name.
    pub(super) patience: Duration,
}

impl Asked {
    /// Everything, with patience for a slow machine.
    pub(super) fn all(only: Option<Row>) -> Self {
        Self {
            only,
            patience: Duration::from_secs(120),
        }
    }

    /// Returns true if this row is asked.
    pub(super) fn wants(self, row: Row) -> bool {
        self.only.is_none_or(|only| only == row)
    }

    /// Asks until it is right, and what could not be asked again too, for pods come and go. The last answer counts:
    /// only a wrong one is called [`Wrong`].
    pub(super) fn until(
        self,
        what: &str,
        logs: &Path,
        ask: impl Fn() -> anyhow::Result<Verdict>,
    ) -> anyhow::Result<()> {
        let (last, began) = (RefCell::new(None), Instant::now());
        let right = || {
            let error = match ask() {
                Ok(Ok(())) => return true,
                Ok(Err(why)) => Wrong(format!("{what}: {why}")).into(),
                Err(error) => error.context(format!("{what}: this could not be asked")),
            };
            last.replace(Some(error));
            false
        };
        wait_at_most(self.patience, what, logs, right).map_err(|late| last.take().unwrap_or(late))?;
        if let Some(before) = last.take().filter(|_| began.elapsed() >= LATE) {
            let seconds = began.elapsed().as_secs();
            eprintln!("late: right after {seconds} s, and before that: {before:#}");
        }
        Ok(())
    }
}

/// The verdict on an answer, with the fault.
pub(super) type Verdict = Result<(), String>;

/// A wrong answer, which is another thing than clusters that cannot be asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Wrong(pub(super) String);

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    fn asked(ask: impl Fn() -> anyhow::Result<Verdict>) -> anyhow::Result<()> {
        let asked = Asked {
            only: None,
            patience: Duration::ZERO,
        };
        asked.until("echo", Path::new("logs"), ask)
    }

    #[test]
    fn only_an_answer_is_wrong() {
        assert!(asked(|| Ok(Ok(()))).is_ok());
        let wrong = asked(|| Ok(Err("c2 answered".to_owned()))).unwrap_err();
        assert_eq!(wrong.to_string(), "echo: c2 answered");
        assert!(wrong.is::<Wrong>());
        let unasked = asked(|| Err(anyhow!("no such pod"))).unwrap_err();
        assert_eq!(
            format!("{unasked:#}"),
            "echo: this could not be asked: no such pod"
        );
        assert!(!unasked.is::<Wrong>(), "a fault is not seen by who cannot ask");
    }
}
