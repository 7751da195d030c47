//! Owns: what is built: the checkout, its version, its commit and the time of that.
//! Never: changes it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use cargo_metadata::{Metadata, MetadataCommand};

use crate::run;

/// The package of the file that is all programs, and the name of the file.
pub(crate) const PROGRAMS: &str = "tributary-programs";
/// The names of the programs: each is a link to that file.
pub(crate) const NAMES: [&str; 5] = [
    "tributary-hub",
    "tributary-agent",
    "tributary",
    "kubectl-tributary",
    "clusterclass",
];

/// A checkout.
pub(crate) struct Source {
    /// Its root.
    pub(crate) root: PathBuf,
    /// Target directory of cargo.
    pub(crate) target: PathBuf,
    /// The version of the programs.
    pub(crate) version: String,
    /// The commit; with `-dirty` if files differ from it.
    pub(crate) revision: String,
    /// Time at which the commit was made, in seconds: the time of everything in the image.
    pub(crate) created: u64,
}

impl Source {
    /// The checkout that this program was built from.
    pub(crate) fn of_this_workspace() -> anyhow::Result<Self> {
        Self::at(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
    }

    /// Another one.
    pub(crate) fn at(directory: &Path) -> anyhow::Result<Self> {
        let metadata = MetadataCommand::new()
            .current_dir(directory)
            .no_deps()
            .exec()
            .with_context(|| format!("{} is no checkout of ours", directory.display()))?;
        let root = PathBuf::from(&metadata.workspace_root);
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            run::printed(git.current_dir(&root).args(arguments))
        };
        let dirty = if git(&["status", "--porcelain"])?.is_empty() {
            ""
        } else {
            "-dirty"
        };
        Ok(Self {
            target: PathBuf::from(&metadata.target_directory),
            version: version(&metadata)?,
            revision: format!("{}{dirty}", git(&["rev-parse", "HEAD"])?),
            created: git(&["log", "-1", "--format=%ct"])?.parse()?,
            root,
        })
    }
}

fn version(metadata: &Metadata) -> anyhow::Result<String> {
    let programs = metadata.packages.iter().find(|package| package.name == PROGRAMS);
    let programs = programs.with_context(|| format!("there is no package {PROGRAMS} in this workspace"))?;
    Ok(programs.version.to_string())
}
