//! Owns: faults as they stand in `e2e/planted/nodes`, one file each: what the agent does wrong, and which row sees it.
//! Never: builds or runs anything.

use std::{fs, path::Path};

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::{
    nodes::row::Row,
    verify::variants::{
        Number, UNCHANGED,
        lines::{self, Lines},
        plan::Variant,
    },
};

/// Where they are, from the root of the workspace.
const DIRECTORY: &str = "e2e/planted/nodes";

/// A fault.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fault {
    /// The name of its file.
    #[serde(skip)]
    pub(super) name: String,
    /// What is wrong, in a sentence.
    pub(super) what: String,
    /// The row that must see it.
    pub(super) row: Row,
    edits: Vec<Lines>,
}

impl Fault {
    /// The product with it.
    pub(super) fn variant(&self, number: Number, root: &Path) -> anyhow::Result<Variant> {
        let edits = lines::edits(&self.edits, root).with_context(|| self.name.clone())?;
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
    use super::*;
    use crate::verify::variants::workspace;

    /// The fewest faults that have to be planted.
    const FAULTS_MIN: usize = 8;

    #[test]
    fn every_fault_still_applies() {
        let root = workspace();
        let faults = all(&root).unwrap();
        assert!(
            faults.len() >= FAULTS_MIN,
            "only {} faults are planted",
            faults.len()
        );
        for (number, fault) in faults {
            assert!(
                !fault.variant(number, &root).unwrap().edits.is_empty(),
                "{}",
                fault.what
            );
        }
    }
}
