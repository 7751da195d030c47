//! Owns: edits as people write them into a file: these whole lines of that file become those.
//! Never: builds or runs anything.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, ensure};
use serde::Deserialize;

use super::edit::Edit;

/// Lines of a file, and what stands in their place.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    file: PathBuf,
    find: String,
    replace: String,
}

impl Lines {
    /// The file that they stand in, from the root of the workspace.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

/// The edits of these in the files below `root`. An error names a missing text.
pub fn edits(all: &[Lines], root: &Path) -> anyhow::Result<Vec<(PathBuf, Edit)>> {
    let mut edits = Vec::new();
    for Lines { file, find, replace } in all {
        let text =
            fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {}", file.display()))?;
        let edit = Edit::of_lines(&text, find, replace)
            .map_err(|why| anyhow!("{}: {why}:\n{find}", file.display()))?;
        ensure!(
            text[edit.range.clone()] != edit.replacement,
            "{}: it changes nothing",
            file.display()
        );
        edits.push((file.clone(), edit));
    }
    Ok(edits)
}
