//! Owns: planted bugs as they stand in `e2e/planted`, one file each, and what each changes in the product.
//! Never: builds or runs anything.
//!
//! A bug replaces whole lines. They are compared without their indentation, and must be found exactly once: when
//! the product moves on, the bug fails by name until somebody moves it along.

use std::{
    collections::BTreeSet,
    fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::{
    build::TestTarget,
    edit::Edit,
    lines::{self, Lines},
};

use super::ring::Ring;

/// Directory of the programs' bugs, from the root of the workspace.
pub(super) const PROGRAMS: &str = "e2e/planted";
/// Directory of the bugs in installed parts.
pub(super) const INSTALLATION: &str = "e2e/planted/installation";

/// Crates that no program uses yet: only their own tests can see a bug in them.
const UNUSED: [&str; 2] = ["tributary-replication", "tributary-etcd"];

/// A bug.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bug {
    /// The name of its file.
    #[serde(skip)]
    pub(super) name: String,
    /// The fault, in a sentence.
    pub(super) what: String,
    /// The rings of tests that see it.
    #[serde(default)]
    pub(super) seen_by: BTreeSet<Ring>,
    /// The other guard behind which it changes nothing that a cluster, a member or an operator could see; absent: there
    /// is none.
    pub(super) second_guard: Option<String>,
    /// The tests of its own room, which may see it.
    pub(super) tests: Tests,
    /// The scenarios that it is shown to: those whose path has this in it; absent: none.
    scenarios: Option<String>,
    /// Its replacements.
    edits: Vec<Lines>,
}

/// Tests of one crate.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
pub(super) struct Tests {
    package: String,
    /// The integration test's target; absent: the tests in the library.
    target: Option<String>,
    /// Those whose path has this in it.
    pub(super) filter: String,
}

impl fmt::Display for Tests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, `{}`", self.program(), self.filter)
    }
}

impl Tests {
    /// The program that they are in.
    pub(super) fn program(&self) -> TestTarget {
        TestTarget {
            package: self.package.clone(),
            target: self.target.clone(),
        }
    }
}

/// Every bug of a directory, by name.
pub(super) fn all(workspace: &Path, directory: &str) -> anyhow::Result<Vec<Bug>> {
    let directory = workspace.join(directory);
    let mut bugs = Vec::new();
    for entry in fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            bugs.push(read(&path).with_context(|| format!("{} is no planted bug", path.display()))?);
        }
    }
    if bugs.is_empty() {
        bail!("{} has no planted bug", directory.display());
    }
    bugs.sort_by(|one: &Bug, other| one.name.cmp(&other.name));
    Ok(bugs)
}

fn read(path: &Path) -> anyhow::Result<Bug> {
    let mut bug: Bug = serde_norway::from_str(&fs::read_to_string(path)?)?;
    let name = path.file_stem().and_then(|stem| stem.to_str());
    name.context("its name is not UTF-8")?.clone_into(&mut bug.name);
    Ok(bug)
}

impl Bug {
    /// Returns true if a cluster, a member or an operator could see it.
    pub(super) fn changes_behaviour(&self) -> bool {
        self.second_guard.is_none() && !UNUSED.contains(&self.tests.package.as_str())
    }

    /// The scenarios that it is shown to, if there are any.
    pub(super) fn scenarios(&self) -> Option<Tests> {
        let filter = self.scenarios.clone()?;
        Some(Tests {
            package: "tributary-e2e".to_owned(),
            target: Some("e2e".to_owned()),
            filter,
        })
    }

    /// Its edits in the files below `root`. An error names a missing text.
    pub(super) fn edits(&self, root: &Path) -> anyhow::Result<Vec<(PathBuf, Edit)>> {
        lines::edits(&self.edits, root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    /// The fewest bugs that have to be planted of each kind.
    const BUGS_MIN: usize = 16;

    #[test]
    fn every_planted_bug_still_applies() {
        let root = workspace();
        for directory in [PROGRAMS, INSTALLATION] {
            let bugs = all(&root, directory).unwrap();
            let count = bugs.len();
            assert!(count >= BUGS_MIN, "only {count} bugs are planted in {directory}");
            let failures: Vec<String> = bugs
                .iter()
                .filter_map(|bug| bug.edits(&root).err().map(|why| format!("{}: {why:#}", bug.name)))
                .collect();
            assert!(failures.is_empty(), "{}", failures.join("\n"));
        }
    }
}
