//! A log on this disk that follows one elsewhere: its batches are durable there before they come here. It takes them
//! without a sync, and says how much of them this disk has.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use model::{Clusterset, Cursor};

use super::{
    AppendError, Batch, Log, LogReader, Space, Stats, directory, error::OpenError, shared_head::SharedHead,
};

/// The file that says which engine's log a directory follows.
const MARK_FILE: &str = "engine";
/// Longest name of an engine.
const NAME_BYTES_MAX: usize = 64;

/// A log on this disk that follows one elsewhere. It is never appended to otherwise.
///
/// Law: the events on this disk are a prefix of those applied. A crash may remove the newest ones, up to
/// [`Replica::synced`].
pub trait Replica: Log {
    /// Appends a batch that is durable elsewhere. Readers see it when this returns; this disk has it later.
    fn apply(&mut self, batch: Batch) -> Result<Cursor, AppendError>;

    /// Begins to make what was applied durable on this disk. A failure shows in [`Log::stats`].
    fn begin_sync(&mut self);

    /// The position that this disk has, whatever crashes.
    fn synced(&self) -> Cursor;

    /// Reads the log while somebody else owns it.
    fn view(&self) -> ReplicaView;

    /// Notes on the disk which engine's log this is. A hub without that engine refuses it from then on.
    fn mark(&mut self, engine: &str) -> io::Result<()>;

    /// The engine that was noted.
    fn marked(&self) -> io::Result<Option<String>>;
}

/// Reads a replica beside its owner.
#[derive(Clone)]
pub struct ReplicaView {
    pub(super) clusterset: Clusterset,
    pub(super) shared: Arc<SharedHead>,
    pub(super) reader: LogReader,
    pub(super) cursors: LogReader,
    pub(super) space: Arc<dyn Fn() -> Option<Space> + Send + Sync>,
}

impl ReplicaView {
    /// The clusterset whose log it is.
    pub fn clusterset(&self) -> &Clusterset {
        &self.clusterset
    }

    /// The last event that readers see.
    pub fn head(&self) -> Cursor {
        self.shared.head()
    }

    /// Reads history.
    pub fn reader(&self) -> LogReader {
        self.reader.clone()
    }

    /// Looks up positions of members.
    pub fn cursors(&self) -> LogReader {
        self.cursors.clone()
    }

    /// Figures of the log on this disk.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// The volume.
    pub fn space(&self) -> Option<Space> {
        (self.space)()
    }
}

/// Returns true if a directory holds a log.
pub fn has_log(data_dir: &Path) -> io::Result<bool> {
    match directory::names(data_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        names => Ok(!names?.is_empty()),
    }
}

/// Refuses a directory whose log several hubs share.
pub(super) fn refuse_shared(data_dir: &Path) -> Result<(), OpenError> {
    match read_mark(data_dir) {
        Ok(None) => Ok(()),
        Ok(Some(engine)) => Err(OpenError::Shared {
            dir: data_dir.to_path_buf(),
            engine,
        }),
        Err(error) => Err(directory::store_error(data_dir, error.into())),
    }
}

/// Writes the mark of a directory: the whole of it is there, or none.
pub(super) fn write_mark(data_dir: &Path, engine: &str) -> io::Result<()> {
    let new: PathBuf = data_dir.join(format!("{MARK_FILE}.new"));
    let mut file = File::create(&new)?;
    file.write_all(engine.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, data_dir.join(MARK_FILE))?;
    directory::sync_names(data_dir)
}

/// The engine that a directory is marked with.
pub(super) fn read_mark(data_dir: &Path) -> io::Result<Option<String>> {
    let mark = match fs::read_to_string(data_dir.join(MARK_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    if mark.is_empty() || mark.len() > NAME_BYTES_MAX {
        let what = format!("{MARK_FILE} does not name an engine");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok(Some(mark))
}

#[cfg(test)]
mod tests;
