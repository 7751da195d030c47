//! Owns: the directory of a fleet, and removing those that killed processes left behind.
//! Never: removes a directory whose owner lives, or one that was to be kept.

use super::Error;
use std::fs::{File, TryLockError};
use std::path::Path;
use tempfile::TempDir;

/// Prefix of every fleet's directory.
const PREFIX: &str = "tributary-clusters-";
/// A file locked as long as the owner lives; a directory without it is nobody's to remove.
const LOCK: &str = "owner.lock";
/// Entries of the temporary directory that are looked at for leftovers.
const ENTRIES_MAX: usize = 10_000;

/// A directory that goes when it is dropped, or with the next fleet when its process was killed.
pub(super) struct FleetDirectory {
    directory: TempDir,
    _lock: Option<File>,
}

impl FleetDirectory {
    pub(super) fn create(keep: bool) -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        if let Err(error) = sweep(&parent) {
            tracing::debug!(%error, "leftovers of killed fleets could not be removed");
        }
        Self::create_in(&parent, keep).map_err(Error::io("create a directory in", &parent))
    }

    fn create_in(parent: &Path, keep: bool) -> std::io::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .disable_cleanup(keep)
            .tempdir_in(parent)?;
        if keep {
            return Ok(Self {
                directory,
                _lock: None,
            });
        }
        // Locked before it gets its name: nobody ever sees the file unlocked while the owner lives.
        let unnamed = directory.path().join("owner.new");
        let lock = File::create(&unnamed)?;
        lock.lock()?;
        std::fs::rename(&unnamed, directory.path().join(LOCK))?;
        Ok(Self {
            directory,
            _lock: Some(lock),
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the directories whose owner is gone.
fn sweep(parent: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(parent)?.take(ENTRIES_MAX) {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Ok(lock) = File::open(entry.path().join(LOCK)) else {
            continue;
        };
        match lock.try_lock() {
            Ok(()) => std::fs::remove_dir_all(entry.path())?,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_killed_owner_left_is_swept() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let living = FleetDirectory::create_in(parent.path(), false).expect("created");
        let kept = FleetDirectory::create_in(parent.path(), true).expect("created");
        let abandoned = parent.path().join(format!("{PREFIX}abandoned"));
        std::fs::create_dir(&abandoned).expect("created");
        std::fs::write(abandoned.join(LOCK), "").expect("unlocked, as the kernel leaves it");
        let foreign = parent.path().join("foreign");
        std::fs::create_dir(&foreign).expect("created");
        std::fs::write(foreign.join(LOCK), "").expect("written");
        sweep(parent.path()).expect("swept");
        assert!(living.path().exists() && kept.path().exists() && foreign.exists());
        assert!(!abandoned.exists());
        let gone = living.path().to_path_buf();
        drop(living);
        assert!(!gone.exists());
    }
}
