//! The directory of a demo: one demo at a time, its files, and what a killed one left behind.
//! It knows the names of the files, not what is in them.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::{ErrorKind, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

use advice::DEMO_IMPORTS;

/// Locked as long as the demo lives; the kernel lets go of it when the demo is killed.
const LOCK: &str = "lock";
/// Directory of the programs' certificates, data and logs.
const CLUSTERSET: &str = "clusterset";
/// For kubectl: a context per cluster.
const KUBECONFIG: &str = "kubeconfig";
/// Socket for `kill` and `start`.
const CONTROL: &str = "control.sock";
/// Files that are of use only while the demo runs.
const RUNNING_ONLY: [&str; 6] = [
    KUBECONFIG,
    CONTROL,
    "ca.crt",
    "operator.crt",
    "operator.key",
    "hub.addr",
];

/// A demo's directory, by path.
#[derive(Debug, Clone)]
pub(super) struct DemoDirectory(PathBuf);

impl DemoDirectory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.file(KUBECONFIG)
    }

    pub(super) fn control(&self) -> PathBuf {
        self.file(CONTROL)
    }

    pub(super) fn clusterset(&self) -> PathBuf {
        self.file(CLUSTERSET)
    }
}

/// A directory that belongs to this process until it is dropped.
pub(super) struct Claimed {
    pub(super) place: DemoDirectory,
    /// True if a demo that was killed had left its files.
    pub(super) swept: bool,
    _lock: File,
}

impl Claimed {
    /// Takes the directory, or says that another demo has it. What a killed demo left is removed.
    pub(super) fn claim(place: DemoDirectory) -> anyhow::Result<Self> {
        let path = place.path().display();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(place.path());
        made.with_context(|| format!("cannot make {path}"))?;
        let mut lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(place.file(LOCK))
            .with_context(|| format!("cannot open the lock in {path}"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "a demo runs in {path} already: use it from here (`{DEMO_IMPORTS}`), stop it with Ctrl-C \
                 where it runs, or give this one a place of its own with --directory"
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {path}"));
            }
        }
        lock.set_len(0)?;
        writeln!(lock, "{}", std::process::id())?;
        let swept = remove_running_only(&place)?;
        match fs::remove_dir_all(place.clusterset()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).context("cannot remove what an earlier demo left");
            }
            _ => {}
        }
        Ok(Self {
            place,
            swept,
            _lock: lock,
        })
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        // The logs stay for whoever wants to read them; an error here has nobody to tell.
        let _ = remove_running_only(&self.place);
    }
}

fn remove_running_only(place: &DemoDirectory) -> anyhow::Result<bool> {
    let mut found = false;
    for name in RUNNING_ONLY {
        match fs::remove_file(place.file(name)) {
            Ok(()) => found = true,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot remove {name}")),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_demo_at_a_time_and_leftovers_are_recognised() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let place = DemoDirectory::new(parent.path().join("demo"));
        let first = Claimed::claim(place.clone()).expect("free");
        assert!(!first.swept);
        let refused = Claimed::claim(place.clone()).err().expect("taken");
        assert!(refused.to_string().contains("--directory"), "{refused}");
        fs::write(place.kubeconfig(), "").expect("written");
        drop(first);
        assert!(
            !place.kubeconfig().exists(),
            "a clean end leaves nothing that points nowhere"
        );
        fs::write(place.kubeconfig(), "").expect("as a killed demo leaves it");
        let second = Claimed::claim(place.clone()).expect("free again");
        assert!(second.swept && !place.kubeconfig().exists());
    }
}
