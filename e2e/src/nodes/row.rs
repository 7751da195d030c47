//! Owns: the rows that are asked on nodes, how long a right answer is awaited, and what a wrong one is called.
//! Never: asks.

use std::{cell::RefCell, path::Path, time::Duration};

use serde::Deserialize;

use super::control::wait_at_most;

/// What is asked; each alone if one is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Row {
    /// Pods of all clusters answer.
    Echo,
    /// Only the cluster that exports it answers, and the local Service is unaffected.
    Partial,
    /// Only the cluster whose definition of the port won answers.
    Conflict,
    /// Session affinity.
    Sticky,
    /// internalTrafficPolicy.
    OnNode,
    /// trafficDistribution.
    InZone,
    /// Names.
    Names,
}

/// How rows are asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// Only this one.
    pub(super) only: Option<Row>,
    /// How long the right answer may take: what was written a moment ago must reach kube-proxy and CoreDNS, which
    /// keeps for half a minute that there is no such name.
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

    /// Whether this row is asked.
    pub(super) fn wants(self, row: Row) -> bool {
        self.only.is_none_or(|only| only == row)
    }

    /// Asks until it is right. `ask` says what is wrong.
    pub(super) fn until(
        self,
        what: &str,
        logs: &Path,
        ask: impl Fn() -> Result<(), String>,
    ) -> anyhow::Result<()> {
        let last = RefCell::new(String::new());
        let right = || ask().map_err(|why| last.replace(why)).is_ok();
        wait_at_most(self.patience, what, logs, right)
            .map_err(|_| Wrong(format!("{what}: {}", last.borrow())).into())
    }
}

/// A wrong answer, which is another thing than clusters that cannot be asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Wrong(String);
