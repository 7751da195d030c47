//! The sled store of one segment, behind its fences (docs/reference/dependencies.md). This file alone names sled.
//! It holds rows and knows no event. sled's own promise of durability is not trusted: every sync is
//! `flush` (sled hands everything to the file) and then `sync_data` on a handle of our own.

use std::{
    any::Any,
    fs::{File, OpenOptions},
    io,
    ops::ControlFlow,
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use super::rows::{Op, ReadRows, Row, Rows, RowsError, Visit};

/// The file that has sled's data.
pub(super) const DATA_FILE: &str = "db";
/// Pinned at birth: sled writes it into its `conf` and refuses another. Values up to a quarter of it stay in
/// the file instead of becoming blob files, which are freed late or never.
const SEGMENT_BYTES: usize = 8 * 1024 * 1024;
const CACHE_BYTES: u64 = 16 * 1024 * 1024;
/// sled's background flusher is also its garbage collector, so it stays on; durability does not wait for it.
const FLUSH_EVERY_MS: u64 = 500;
/// Longest wait for sled's IO threads while closing, and the interval of checks.
const CLOSE_WAIT_MAX: Duration = Duration::from_secs(5);
const CLOSE_POLL: Duration = Duration::from_millis(2);

/// One clusterset's tree. The last clone closes the store.
#[derive(Clone)]
pub(super) struct SledRows {
    tree: sled::Tree,
    // Dropped after the tree: the lock must outlive sled's own files.
    files: Arc<Files>,
}

/// Dropped after the last tree, then waits until sled has really closed its file.
struct Files {
    /// Our own handle of sled's data file, opened before the first write: an error of a write-back is
    /// reported once per handle, and this one must not miss it.
    data: File,
    _lock: Arc<File>,
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
                    return Self::Damaged(String::from(
                        "the store found damage at no particular place; if it is its file snap.*, then moving that one file aside is enough, the store makes it anew",
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

/// A store that is open.
pub(super) struct Store {
    db: sled::Db,
    files: Arc<Files>,
}

impl Store {
    /// Opens the store, or makes it. `lock` is kept until it is closed.
    pub(super) fn open(dir: &Path, lock: Arc<File>) -> Result<Self, RowsError> {
        let data = open_data_file(dir)?;
        let config = sled::Config::new()
            .path(dir)
            .segment_size(SEGMENT_BYTES)
            .cache_capacity(CACHE_BYTES)
            .flush_every_ms(Some(FLUSH_EVERY_MS));
        let db = attempt(|| config.open())?;
        let files = Arc::new(Files { data, _lock: lock });
        Ok(Self { db, files })
    }

    /// The trees of clustersets that are there.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.db.tree_names().into_iter();
        let names = names.map(|name| String::from_utf8_lossy(&name).into_owned());
        let mut names: Vec<_> = names.filter(|name| name.starts_with("clusterset:")).collect();
        names.sort();
        names
    }

    /// A tree, made if it is not there.
    pub(super) fn tree(&self, name: &str) -> Result<SledRows, RowsError> {
        let tree = attempt(|| self.db.open_tree(name))?;
        let files = Arc::clone(&self.files);
        Ok(SledRows { tree, files })
    }
}

fn open_data_file(dir: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.open(dir.join(DATA_FILE))
}

impl ReadRows for SledRows {
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
}

impl Rows for SledRows {
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
}
