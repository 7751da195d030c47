//! Owns: the copy of the working tree in which bugs are planted, below `target/planted`.
//! Never: writes into the working tree itself.
//!
//! A file that is right already is not written again, so that a build has little to do. The copy has a target
//! directory of its own, which all bugs share.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};

/// Most files of a working tree: more is a mistake.
const FILES_MAX: usize = 20_000;

/// A copy that this process alone uses.
#[derive(Debug)]
pub(super) struct Copy {
    workspace: PathBuf,
    root: PathBuf,
    target: PathBuf,
    /// Locked while the process lives.
    _lock: File,
}

impl Copy {
    /// The copy of a workspace, which may be outdated or hold a bug.
    pub(super) fn open(workspace: &Path) -> anyhow::Result<Self> {
        let directory = workspace.join("target").join("planted");
        let root = directory.join("copy");
        fs::create_dir_all(&root)?;
        let lock = File::create(directory.join("lock"))?;
        if lock.try_lock().is_err() {
            bail!("another run uses {}: wait for it, or end it", root.display());
        }
        Ok(Self {
            workspace: workspace.to_owned(),
            target: directory.join("target"),
            root,
            _lock: lock,
        })
    }

    /// Where the copy is.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Where it is built.
    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    /// Makes it equal to the tracked files of the working tree, as they are there now.
    pub(super) fn heal(&self) -> anyhow::Result<()> {
        let tracked = tracked(&self.workspace)?;
        for file in &tracked {
            let text = fs::read(self.workspace.join(file))
                .with_context(|| format!("cannot read the tracked file {}", file.display()))?;
            let copied = self.root.join(file);
            if fs::read(&copied).is_ok_and(|known| known == text) {
                continue;
            }
            let directory = copied.parent().context("every file is in a directory")?;
            fs::create_dir_all(directory)?;
            fs::write(&copied, text).with_context(|| format!("cannot write {}", copied.display()))?;
        }
        remove_others(&self.root, Path::new(""), &tracked)
    }
}

/// The tracked files that are there, by their paths within the workspace.
fn tracked(workspace: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached"])
        .current_dir(workspace)
        .output()
        .context("cannot run git, which knows the files of the working tree")?;
    ensure!(
        listed.status.success(),
        "git ls-files failed: {}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let names = String::from_utf8(listed.stdout).context("a tracked file's name is not UTF-8")?;
    let files: BTreeSet<PathBuf> = names
        .split_terminator('\0')
        .map(PathBuf::from)
        .filter(|file| workspace.join(file).is_file())
        .collect();
    ensure!(files.len() <= FILES_MAX, "{} files are tracked", files.len());
    Ok(files)
}

/// What tests of an earlier bug left behind, and files that are tracked no more.
fn remove_others(root: &Path, directory: &Path, tracked: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(root.join(directory))? {
        let entry = entry?;
        let file = directory.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(root, &file, tracked)?;
        } else if !tracked.contains(&file) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
