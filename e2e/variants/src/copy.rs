//! Owns: the copy of the working tree in which variants are built, below `target/variants`.
//! Never: writes into the working tree itself.
//!
//! A file that is right already is not written again, so that a build has little to do. The copy has a target
//! directory of its own, which all variants share.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};

/// Most files of a working tree: more is a mistake.
const FILES_MAX: usize = 20_000;

/// A copy that this process alone uses.
#[derive(Debug)]
pub struct Copy {
    workspace: PathBuf,
    directory: PathBuf,
    /// Locked while the process lives.
    _lock: File,
}

impl Copy {
    /// The copy of a workspace, which may be outdated or hold variants.
    pub fn open(workspace: &Path) -> anyhow::Result<Self> {
        let directory = workspace.join("target").join("variants");
        fs::create_dir_all(directory.join("copy"))?;
        let lock = File::create(directory.join("lock"))?;
        if lock.try_lock().is_err() {
            bail!("another run uses {}: wait for it, or end it", directory.display());
        }
        Ok(Self {
            workspace: workspace.to_owned(),
            directory,
            _lock: lock,
        })
    }

    /// The workspace that it is a copy of.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Root of the copy.
    pub fn root(&self) -> PathBuf {
        self.directory.join("copy")
    }

    /// Its target directory.
    pub fn target(&self) -> PathBuf {
        self.directory.join("target")
    }

    /// Directory of results between runs.
    pub fn record(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Makes it equal to the tracked files of the working tree, as they are there now, but for these texts.
    pub fn fill(&self, texts: &BTreeMap<PathBuf, String>) -> anyhow::Result<()> {
        let tracked = tracked(&self.workspace)?;
        let root = self.root();
        for file in &tracked {
            let text = match texts.get(file) {
                Some(text) => text.clone().into_bytes(),
                None => read(&self.workspace, file)?,
            };
            let copied = root.join(file);
            if fs::read(&copied).is_ok_and(|known| known == text) {
                continue;
            }
            let directory = copied.parent().context("every file is in a directory")?;
            fs::create_dir_all(directory)?;
            fs::write(&copied, text).with_context(|| format!("cannot write {}", copied.display()))?;
        }
        remove_others(&root, Path::new(""), &tracked)
    }

    /// The same for the same tracked files and the same question; documents do not matter.
    pub fn fingerprint(&self, question: &str) -> anyhow::Result<String> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(question.as_bytes());
        for file in tracked(&self.workspace)? {
            if file.extension().is_none_or(|extension| extension != "md") {
                hasher.update(file.as_os_str().as_encoded_bytes());
                hasher.update(blake3::hash(&read(&self.workspace, &file)?).as_bytes());
            }
        }
        Ok(hasher.finalize().to_hex().to_string())
    }
}

fn read(workspace: &Path, file: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(workspace.join(file)).with_context(|| format!("cannot read the tracked file {}", file.display()))
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

/// Removes the leftovers of an earlier bug's tests, and files that are no longer tracked.
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
