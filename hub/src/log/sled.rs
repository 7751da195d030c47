//! The sled store, behind its fences (STYLE, section 5). This file alone names sled.
//! It holds rows and knows no event. sled's own promise of durability is not trusted: every sync is
//! `flush` (sled hands everything to the file) and then `sync_data` on a handle of our own.

use std::{
    any::Any,
    fs::{self, File, OpenOptions, TryLockError},
    io,
    ops::ControlFlow,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use shared::model::Clusterset;

use super::{
    error::{Corruption, OpenError},
    key,
    rows::{Op, Row, Rows, RowsError, Visit},
    start::StartError,
};

/// The directory below the data directory that is sled's.
const STORE_DIR: &str = "log";
/// Held by the one process that has the log open.
const LOCK_FILE: &str = "log.lock";
/// Pinned at birth: sled writes it into its `conf` and refuses another. Values up to a quarter of it stay in
/// the file instead of becoming blob files, which are freed late or never.
const SEGMENT_BYTES: usize = 8 * 1024 * 1024;
const CACHE_BYTES: u64 = 16 * 1024 * 1024;
/// sled's background flusher is also its garbage collector, so it stays on; durability does not wait for it.
const FLUSH_EVERY_MS: u64 = 500;
/// How long closing waits for sled's IO threads, and how often it looks.
const CLOSE_WAIT_MAX: Duration = Duration::from_secs(5);
const CLOSE_POLL: Duration = Duration::from_millis(2);

/// One clusterset's tree. The last clone closes the store.
#[derive(Clone)]
pub(super) struct SledRows {
    tree: sled::Tree,
    // Dropped after the tree: the lock must outlive sled's own files.
    files: Arc<Files>,
}

/// Dropped after the last tree, and then waits until sled has really let go of its file.
struct Files {
    /// Our own handle of sled's data file, opened before the first write: an error of a write-back is
    /// reported once per handle, and this one must not miss it.
    data: File,
    _lock: File,
}

impl Drop for Files {
    /// sled's IO threads may still write after its last handle is dropped, and keep their lock meanwhile. There
    /// is no call that waits for it with a bound, so the lock is tried.
    fn drop(&mut self) {
        let until = Instant::now() + CLOSE_WAIT_MAX;
        while self.data.try_lock().is_err() && Instant::now() < until {
            thread::sleep(CLOSE_POLL);
        }
    }
}

/// Runs something that may panic inside sled, which damaged files make it do.
pub(super) fn guard<T>(body: impl FnOnce() -> T) -> Result<T, RowsError> {
    panic::catch_unwind(AssertUnwindSafe(body)).map_err(|cause| {
        let text = panic_text(cause.as_ref());
        RowsError::Damaged(format!("the store panicked, as it does on damaged files: {text}"))
    })
}

fn panic_text(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| cause.downcast_ref::<&str>().copied());
    text.unwrap_or("without a message").to_owned()
}

fn attempt<T>(body: impl FnOnce() -> sled::Result<T>) -> Result<T, RowsError> {
    Ok(guard(body)??)
}

impl From<sled::Error> for RowsError {
    fn from(error: sled::Error) -> Self {
        match error {
            sled::Error::Io(error) => error.into(),
            sled::Error::Corruption { at, .. } => {
                let Some(at) = at else {
                    return Self::Damaged(format!(
                        "the store found damage at no particular place; if it is {STORE_DIR}/snap.*, then moving that one file aside is enough, the store makes it anew"
                    ));
                };
                Self::Damaged(format!("the store found damage at {at:?} of its data file"))
            }
            other => Self::Damaged(other.to_string()),
        }
    }
}

impl From<io::Error> for RowsError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(error.to_string()),
            _ => Self::Io(error.to_string()),
        }
    }
}

/// Opens the tree of a clusterset, making directory and tree as needed. A directory that holds only other
/// clustersets' logs is refused: a hub with a new certificate authority must not silently start from nothing.
pub(super) fn open(data_dir: &Path, clusterset: &Clusterset) -> Result<SledRows, OpenError> {
    let failed = |error: RowsError| open_error(data_dir, clusterset, StartError::Rows(error));
    create_dir(data_dir).map_err(|error| failed(error.into()))?;
    let store = Store::open(data_dir)?;
    let ours = key::space_name(clusterset);
    let names = store.names();
    if let Some(other) = names.first()
        && !names.contains(&ours)
    {
        let found = other.split_once(':').map_or(other.as_str(), |(_, name)| name);
        return Err(open_error(
            data_dir,
            clusterset,
            StartError::NotOurs(found.into()),
        ));
    }
    let rows = store.tree(&ours).map_err(failed)?;
    sync_dirs(data_dir).map_err(|error| failed(error.into()))?;
    Ok(rows)
}

/// Every clusterset's rows below a data directory, by the clusterset's name as written.
pub(super) fn open_all(data_dir: &Path) -> Result<Vec<(String, SledRows)>, OpenError> {
    let dir = || data_dir.to_path_buf();
    if !data_dir.join(STORE_DIR).join("db").exists() {
        return Err(OpenError::Missing { dir: dir() });
    }
    let store = Store::open(data_dir)?;
    let opened = store.names().into_iter().map(|name| {
        let rows = store.tree(&name).map_err(|error| store_error(data_dir, error))?;
        let clusterset = name.split_once(':').map_or(name.as_str(), |(_, rest)| rest);
        Ok((clusterset.to_owned(), rows))
    });
    opened.collect()
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

fn store_error(data_dir: &Path, error: RowsError) -> OpenError {
    let dir = data_dir.to_path_buf();
    match error {
        RowsError::Full(reason) => OpenError::Full { dir, reason },
        RowsError::Io(reason) => OpenError::Io { dir, reason },
        RowsError::Damaged(what) => OpenError::Corrupt {
            corruption: Corruption::new(format!("the store's files in {STORE_DIR}/"), what),
            dir,
        },
    }
}

struct Store {
    db: sled::Db,
    files: Arc<Files>,
}

impl Store {
    fn open(data_dir: &Path) -> Result<Self, OpenError> {
        let failed = |error: RowsError| store_error(data_dir, error);
        let lock = lock(data_dir)?;
        let dir = data_dir.join(STORE_DIR);
        let data = open_data_file(&dir).map_err(|error| failed(error.into()))?;
        let config = sled::Config::new()
            .path(&dir)
            .segment_size(SEGMENT_BYTES)
            .cache_capacity(CACHE_BYTES)
            .flush_every_ms(Some(FLUSH_EVERY_MS));
        let db = attempt(|| config.open()).map_err(failed)?;
        let files = Arc::new(Files { data, _lock: lock });
        Ok(Self { db, files })
    }

    fn names(&self) -> Vec<String> {
        let names = self.db.tree_names().into_iter();
        let names = names.map(|name| String::from_utf8_lossy(&name).into_owned());
        let mut names: Vec<_> = names.filter(|name| name.starts_with("clusterset:")).collect();
        names.sort();
        names
    }

    fn tree(&self, name: &str) -> Result<SledRows, RowsError> {
        let tree = attempt(|| self.db.open_tree(name))?;
        let files = Arc::clone(&self.files);
        Ok(SledRows { tree, files })
    }
}

fn lock(data_dir: &Path) -> Result<File, OpenError> {
    let dir = || data_dir.to_path_buf();
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(data_dir.join(LOCK_FILE));
    let file = file.map_err(|error| store_error(data_dir, error.into()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { dir: dir() }),
        Err(TryLockError::Error(error)) => Err(store_error(data_dir, error.into())),
    }
}

fn create_dir(data_dir: &Path) -> io::Result<()> {
    fs::create_dir_all(data_dir.join(STORE_DIR))
}

fn open_data_file(dir: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.open(dir.join("db"))
}

/// New names are durable only when their directories are; the parent's may not be ours to open.
fn sync_dirs(data_dir: &Path) -> io::Result<()> {
    File::open(data_dir.join(STORE_DIR))?.sync_all()?;
    File::open(data_dir)?.sync_all()?;
    let parent: Option<PathBuf> = data_dir.canonicalize()?.parent().map(Into::into);
    match parent.map(File::open) {
        Some(Ok(parent)) => parent.sync_all(),
        _ => Ok(()),
    }
}

impl Rows for SledRows {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, RowsError> {
        let value = attempt(|| self.tree.get(key))?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn last(&self, from: &[u8], to: &[u8]) -> Result<Option<Row>, RowsError> {
        let last = attempt(|| self.tree.range(from..to).next_back().transpose())?;
        Ok(last.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), RowsError> {
        attempt(|| {
            for row in self.tree.range(from..to) {
                let (key, value) = row?;
                if visit(&key, &value) == ControlFlow::Break(()) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn apply(&self, ops: Vec<Op>) -> Result<(), RowsError> {
        let mut batch = sled::Batch::default();
        for op in ops {
            match op {
                Op::Put(key, value) => batch.insert(key, value),
                Op::Remove(key) => batch.remove(key),
            }
        }
        attempt(|| self.tree.apply_batch(batch))
    }

    fn sync(&self) -> Result<(), RowsError> {
        attempt(|| self.tree.flush())?;
        Ok(self.files.data.sync_data()?)
    }

    fn bytes_on_disk(&self) -> u64 {
        self.files.data.metadata().map_or(0, |metadata| metadata.len())
    }
}
