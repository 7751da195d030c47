//! The segments of a log as directories below the hub's data directory, a sled store in each. It makes, lists and removes
//! directories and says in the operator's words what is wrong with them; it knows no row.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use model::Clusterset;

use super::{
    Space,
    error::{Corruption, LogError, OpenError},
    give_back, key,
    rows::{RowsError, Volume},
    segment_name::SegmentName,
    sled::{DATA_FILE, SledRows, Store},
    start::StartError,
};

/// Held by the one process that has the log open.
const LOCK_FILE: &str = "log.lock";
/// Directory of the segments of a log while it is restored from a backup.
pub(super) const RESTORING: &str = "restoring";
/// A directory that is called so is being deleted.
const REMOVED: &str = "removed.";
/// The unit in which the system counts blocks of files.
const BLOCK_BYTES: u64 = 512;

/// The data directory, with the clusterset whose log is meant.
#[derive(Clone)]
pub(super) struct Directory {
    data_dir: PathBuf,
    /// Prefix of the names of the clusterset's trees.
    space: Arc<str>,
    lock: Arc<File>,
}

impl Directory {
    /// Takes a data directory for this process, and makes it if it is not there.
    pub(super) fn open(data_dir: &Path, clusterset: &Clusterset) -> Result<Self, OpenError> {
        let failed = |error: io::Error| store_error(data_dir, error.into());
        make(data_dir).map_err(failed)?;
        let lock = Arc::new(lock(data_dir)?);
        refuse_half_a_log(data_dir)?;
        remove_leftovers(data_dir).map_err(failed)?;
        Ok(Self {
            data_dir: data_dir.to_path_buf(),
            space: key::space_name(clusterset).into(),
            lock,
        })
    }

    /// Takes a data directory for this process and gives the log of every clusterset in it, by its name as written.
    pub(super) fn open_all(data_dir: &Path) -> Result<Vec<(String, Self)>, OpenError> {
        let failed = |error: RowsError| store_error(data_dir, error);
        let missing = || OpenError::Missing {
            dir: data_dir.to_path_buf(),
        };
        let names = names(data_dir).map_err(|_| missing())?;
        refuse_half_a_log(data_dir)?;
        let newest = *names.last().ok_or_else(missing)?;
        let lock = Arc::new(lock(data_dir)?);
        let store = Store::open(&data_dir.join(newest.to_string()), Arc::clone(&lock)).map_err(failed)?;
        let spaces = store.names().into_iter().map(|space| {
            let clusterset = owner(&space).to_owned();
            let directory = Self {
                data_dir: data_dir.to_path_buf(),
                space: space.into(),
                lock: Arc::clone(&lock),
            };
            (clusterset, directory)
        });
        Ok(spaces.collect())
    }

    fn dir(&self, name: SegmentName) -> PathBuf {
        self.data_dir.join(name.to_string())
    }

    fn open_store(&self, name: SegmentName) -> Result<SledRows, RowsError> {
        let store = Store::open(&self.dir(name), Arc::clone(&self.lock))?;
        let spaces = store.names();
        if let Some(other) = spaces.first()
            && !spaces.iter().any(|space| **space == *self.space)
        {
            // A hub with a new certificate authority must not silently start from nothing.
            return Err(RowsError::NotOurs(owner(other).into()));
        }
        store.tree(&self.space)
    }
}

impl Volume for Directory {
    type Rows = SledRows;

    fn segments(&self) -> Result<Vec<SegmentName>, RowsError> {
        Ok(names(&self.data_dir)?)
    }

    fn open(&self, name: SegmentName) -> Result<SledRows, RowsError> {
        if !self.dir(name).is_dir() {
            return Err(RowsError::Damaged(format!("the directory {name} is missing")));
        }
        let within = |what: String| RowsError::Damaged(format!("{name}/: {what}"));
        self.open_store(name).map_err(|error| match error {
            RowsError::Damaged(what) => within(what),
            other => other,
        })
    }

    /// The directory first, and durable: a store in it that is not is found empty.
    fn create(&self, name: SegmentName) -> Result<SledRows, RowsError> {
        let dir = self.dir(name);
        make(&dir)?;
        let rows = self.open_store(name)?;
        File::open(&dir)?.sync_all()?;
        sync_names(&self.data_dir)?;
        Ok(rows)
    }

    /// Under another name first, which is atomic: files that are deleted one by one are no segment any more. The next
    /// start deletes the remains.
    fn remove(&self, name: SegmentName) -> Result<(), RowsError> {
        let removed = self.data_dir.join(format!("{REMOVED}{name}"));
        match fs::rename(self.dir(name), &removed) {
            // Renamed by a try before this one.
            Err(error) if error.kind() == io::ErrorKind::NotFound && removed.exists() => {}
            renamed => renamed?,
        }
        sync_names(&self.data_dir)?;
        Ok(give_back::remove_dir(&removed)?)
    }

    fn bytes_on_disk(&self, name: SegmentName) -> u64 {
        // A file that goes while it is counted takes nothing.
        bytes_below(&self.dir(name)).unwrap_or_default()
    }

    fn space(&self) -> Option<Space> {
        space_of(&self.data_dir)
    }
}

/// The room on the disk under a directory, if it can be told.
pub fn space_of(directory: &Path) -> Option<Space> {
    let found = rustix::fs::statvfs(directory).ok()?;
    // As `df` counts: what only root may use is neither free nor used.
    let used = found.f_blocks.saturating_sub(found.f_bfree);
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Some(Space {
        free: bytes(found.f_bavail),
        total: bytes(used.saturating_add(found.f_bavail)),
    })
}

/// Makes a directory, and those above it, closed to users outside its group: a log names addresses and holds hashes of
/// tokens. One that is there keeps its permissions.
pub(super) fn make(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o770).create(dir)
}

pub(super) fn names(data_dir: &Path) -> io::Result<Vec<SegmentName>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(data_dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name: Option<SegmentName> = name.to_str().and_then(|name| name.parse().ok());
        names.extend(name.filter(|_| entry.path().join(DATA_FILE).exists()));
    }
    names.sort();
    Ok(names)
}

fn bytes_below(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        bytes += if metadata.is_dir() {
            bytes_below(&entry.path())?
        } else {
            metadata.blocks() * BLOCK_BYTES
        };
    }
    Ok(bytes)
}

/// Deletes what a removal that was interrupted left.
fn remove_leftovers(data_dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(data_dir)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(REMOVED) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// New names are durable only when their directories are; the parent's may not be ours to open.
pub(super) fn sync_names(data_dir: &Path) -> io::Result<()> {
    File::open(data_dir)?.sync_all()?;
    let parent: Option<PathBuf> = data_dir.canonicalize()?.parent().map(Into::into);
    match parent.map(File::open) {
        Some(Ok(parent)) => parent.sync_all(),
        _ => Ok(()),
    }
}

pub(super) fn lock(data_dir: &Path) -> Result<File, OpenError> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(data_dir.join(LOCK_FILE));
    let file = file.map_err(|error| store_error(data_dir, error.into()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked {
            dir: data_dir.to_path_buf(),
        }),
        Err(TryLockError::Error(error)) => Err(store_error(data_dir, error.into())),
    }
}

/// Looks whether a directory holds the copy of a log, and keeps others of this machine from it, without writing there:
/// it may be on a medium that takes no writes. If a lock cannot be had for that reason, nobody changes the copy either.
pub(super) fn copy_at_rest(copy: &Path) -> Result<Option<File>, OpenError> {
    let dir = copy.to_path_buf();
    if names(copy).is_ok_and(|names| names.is_empty()) || !copy.is_dir() {
        return Err(OpenError::Missing { dir });
    }
    refuse_half_a_log(copy)?;
    let Ok(file) = File::open(copy.join(LOCK_FILE)) else {
        return Ok(None);
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { dir }),
        _ => Ok(Some(file)),
    }
}

fn refuse_half_a_log(data_dir: &Path) -> Result<(), OpenError> {
    if data_dir.join(RESTORING).exists() {
        let dir = data_dir.to_path_buf();
        return Err(OpenError::Restoring { dir });
    }
    Ok(())
}

fn owner(space: &str) -> &str {
    space.split_once(':').map_or(space, |(_, name)| name)
}

/// Says in the operator's words why a directory could not be opened.
pub(super) fn open_error(data_dir: &Path, clusterset: &Clusterset, error: StartError) -> OpenError {
    let dir = data_dir.to_path_buf();
    match error {
        StartError::Corrupt(corruption) => OpenError::Corrupt { dir, corruption },
        StartError::Rows(error) => store_error(data_dir, error),
        StartError::Other(reason) => OpenError::Io { dir, reason },
        StartError::NotOurs(found) => OpenError::NotOurs {
            dir,
            found,
            wanted: clusterset.to_string(),
        },
    }
}

/// The same of what was found while a log was looked at.
pub(super) fn contents_error(data_dir: &Path, error: LogError) -> OpenError {
    let dir = data_dir.to_path_buf();
    match error {
        LogError::Corrupt(corruption) => OpenError::Corrupt { dir, corruption },
        other => OpenError::Io {
            dir,
            reason: other.to_string(),
        },
    }
}

pub(super) fn store_error(data_dir: &Path, error: RowsError) -> OpenError {
    let dir = data_dir.to_path_buf();
    match error {
        RowsError::Full(reason) => OpenError::Full { dir, reason },
        RowsError::Damaged(what) => OpenError::Corrupt {
            corruption: Corruption::new("the store's files", what),
            dir,
        },
        other => OpenError::Io {
            dir,
            reason: other.to_string(),
        },
    }
}
