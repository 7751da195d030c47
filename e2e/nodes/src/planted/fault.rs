//! Owns: faults as they stand in `e2e/planted/nodes`, one file each: what hub or agent does wrong, and which row sees it.
//! Never: builds or runs anything.

use std::{fs, path::Path};

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::{
    installed::{AGENT, HUB},
    row::Row,
};
use variants::{
    Number, UNCHANGED,
    lines::{self, Lines},
    plan::Variant,
};

/// Their directory, from the root of the workspace.
const DIRECTORY: &str = "e2e/planted/nodes";
/// A hub with a fault ends as one that was killed: a snapshot would have digests of what it derived, which the hub
/// after it derives otherwise and would refuse.
const ENDS_WITHOUT_A_SNAPSHOT: &str = "
file: hub/core/src/writer/actor.rs
find: if self.durable.revision.0 > self.snapshot_at {
replace: if self.durable.revision.0 < self.snapshot_at {
";

/// A program that can have a fault. A fault of the hub is shown first: agents have none then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Program {
    Hub,
    Agent,
}

impl Program {
    pub(super) const ALL: [Self; 2] = [Self::Hub, Self::Agent];

    /// Cargo's name for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hub => HUB,
            Self::Agent => AGENT,
        }
    }

    /// The program whose source a file is.
    fn of(file: &Path) -> Option<Self> {
        let own = |directory: &str| file.starts_with(directory);
        match () {
            () if own("hub") => Some(Self::Hub),
            () if own("agent") => Some(Self::Agent),
            () => None,
        }
    }
}

/// A fault.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fault {
    /// The name of its file.
    #[serde(skip)]
    pub(super) name: String,
    /// The fault, in a sentence.
    pub(super) what: String,
    /// The row that must see it.
    pub(super) row: Row,
    edits: Vec<Lines>,
}

impl Fault {
    /// The program that all of its edits are in.
    pub(super) fn program(&self) -> anyhow::Result<Program> {
        let mut programs = self.edits.iter().map(|lines| Program::of(lines.file()));
        let first = programs.next().flatten();
        let first = first.filter(|first| programs.all(|other| other == Some(*first)));
        first.with_context(|| {
            format!(
                "the fault {} is not in hub/src alone, nor in agent/src",
                self.name
            )
        })
    }

    /// The product with it.
    pub(super) fn variant(&self, number: Number, root: &Path) -> anyhow::Result<Variant> {
        let mut wanted = self.edits.clone();
        if self.program()? == Program::Hub {
            wanted.push(serde_norway::from_str(ENDS_WITHOUT_A_SNAPSHOT)?);
        }
        let edits = lines::edits(&wanted, root).with_context(|| self.name.clone())?;
        Ok(Variant { number, edits })
    }
}

/// All of them, by name, each with the number of its variant.
pub(super) fn all(workspace: &Path) -> anyhow::Result<Vec<(Number, Fault)>> {
    let directory = workspace.join(DIRECTORY);
    let entries = fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut faults = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut fault: Fault =
            serde_norway::from_str(&text).with_context(|| format!("{} is no fault", path.display()))?;
        let name = path.file_stem().and_then(|stem| stem.to_str());
        name.context("its name is not UTF-8")?.clone_into(&mut fault.name);
        faults.push(fault);
    }
    if faults.is_empty() {
        bail!("{} has no fault", directory.display());
    }
    faults.sort_by(|one: &Fault, other| one.name.cmp(&other.name));
    Ok((UNCHANGED + 1..).zip(faults).collect())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use variants::{plan::Plan, workspace};

    #[test]
    fn every_fault_still_applies_and_all_fit_into_one_build() {
        let root = workspace();
        let faults = all(&root).unwrap();
        let variant = |(number, fault): &(Number, Fault)| fault.variant(*number, &root).unwrap();
        let variants: Vec<Variant> = faults.iter().map(variant).collect();
        assert!(variants.iter().all(|variant| !variant.edits.is_empty()));
        let unfit = Plan::of(&root, &variants).unwrap().unfit;
        assert!(unfit.is_empty(), "{unfit:?}");
    }

    #[test]
    fn no_row_is_without_a_fault() {
        let faults = all(&workspace()).unwrap();
        for row in Row::value_variants() {
            let seen = faults.iter().any(|(_, fault)| fault.row == *row);
            assert!(seen, "no fault shows that {row:?} sees anything");
        }
    }

    #[test]
    fn a_fault_is_in_the_program_that_its_edits_are_in() {
        let of = |files: &[&str]| {
            let edits: Vec<String> = files
                .iter()
                .map(|file| format!("{{file: {file}, find: a, replace: b}}"))
                .collect();
            let text = format!("{{what: x, row: echo, edits: [{}]}}", edits.join(", "));
            let fault: Fault = serde_norway::from_str(&text).unwrap();
            fault.program().ok()
        };
        assert_eq!(of(&["hub/src/a.rs", "hub/src/b.rs"]), Some(Program::Hub));
        assert_eq!(of(&["agent/src/a.rs"]), Some(Program::Agent));
        for nobodys in [&["hub/src/a.rs", "agent/src/a.rs"][..], &["shared/src/a.rs"], &[]] {
            assert_eq!(of(nobodys), None, "{nobodys:?}");
        }
    }

    #[test]
    fn a_hub_with_a_fault_leaves_no_snapshot() {
        let root = workspace();
        for (number, fault) in all(&root).unwrap() {
            let edits = fault.variant(number, &root).unwrap().edits;
            let ends = edits
                .iter()
                .any(|(file, _)| file.ends_with("hub/core/src/writer/actor.rs"));
            assert_eq!(ends, fault.program().unwrap() == Program::Hub, "{}", fault.name);
        }
    }
}
