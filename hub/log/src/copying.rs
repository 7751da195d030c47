//! The receiving half of a copy of a running hub's log: its parts are written to a directory of their own, held against
//! what was announced, and verified; then they may replace the log of a replica.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use model::{Clusterset, Cursor};

use super::{
    copy::LogCopy,
    copy_end::CopyEnd,
    directory,
    error::OpenError,
    verify::{Report, verify},
};

/// Directory, below the log's, of the copy that a replica makes.
const COPYING: &str = "copying";
/// The name of a directory with events that the shared log never had begins so.
const DIVERGED: &str = "diverged";

/// The announced contents of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyBegin {
    /// Its last event.
    pub end: CopyEnd,
    /// Number of its segments.
    pub segments: u32,
}

/// A copy is not what was announced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IncompleteCopy {
    /// Parts are missing.
    #[error("the copy was cut short after {rows} rows: begin again")]
    CutShort {
        /// Number of the rows that came.
        rows: u64,
    },
    /// The disk, or the directory.
    #[error(transparent)]
    Log(#[from] OpenError),
}

/// A copy that is being received. Its calls block on the disk.
pub struct Receiving {
    copy: LogCopy,
    begin: CopyBegin,
    segments: u32,
    rows: u64,
}

impl Receiving {
    /// Begins in a directory that holds no log.
    pub fn begin(dir: &Path, clusterset: &Clusterset, begin: CopyBegin) -> Result<Self, OpenError> {
        let copy = LogCopy::begin(dir, clusterset)?;
        Ok(Self {
            copy,
            begin,
            segments: 0,
            rows: 0,
        })
    }

    /// The next segment follows. Returns its number, from 1.
    pub fn segment(&mut self, name: &str) -> Result<u32, OpenError> {
        self.segments += 1;
        self.copy.segment(name)?;
        Ok(self.segments)
    }

    /// Rows of it, key and value.
    pub fn rows(&mut self, rows: Vec<(Vec<u8>, Vec<u8>)>) -> Result<(), OpenError> {
        self.rows += rows.len() as u64;
        self.copy.rows(rows)
    }

    /// The sender says how many rows it sent; `None`: it said nothing. Everything is durable when this returns, and
    /// not verified yet. Returns the number of rows.
    pub fn finish(self, sent: Option<u64>) -> Result<u64, IncompleteCopy> {
        let Self {
            copy,
            begin,
            segments,
            rows,
        } = self;
        if sent != Some(rows) || segments != begin.segments {
            return Err(IncompleteCopy::CutShort { rows });
        }
        copy.finish(&begin.end)?;
        Ok(rows)
    }
}

/// An empty directory for a replica's copy, below that of its log.
pub fn copying_dir(data_dir: &Path) -> io::Result<PathBuf> {
    let dir = data_dir.join(COPYING);
    match fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(dir),
    }
}

/// Puts the copy in [`copying_dir`] in the place of a closed replica's log, once it is verified. `diverged` is the head of a
/// log that is to be kept, because it has events that the shared one never had; other logs are removed. Whatever
/// interrupts this leaves a log that is a prefix of the old one or of the copy.
pub fn replace(
    data_dir: &Path,
    clusterset: &Clusterset,
    diverged: Option<Cursor>,
) -> Result<Report, OpenError> {
    let failed = |error: io::Error| directory::store_error(data_dir, error.into());
    let copying = data_dir.join(COPYING);
    let report = verify(&copying, &mut |_| {})?;
    let is_ours = report
        .logs
        .iter()
        .any(|log| log.clusterset == clusterset.to_string());
    let end = CopyEnd::read(&copying).map_err(failed)?;
    if !report.is_good() || !is_ours || !end.is_some_and(|end| end.is_reached(&report)) {
        return Err(OpenError::Io {
            dir: copying,
            reason: "the copy of the log is damaged or cut short".into(),
        });
    }
    let _lock = directory::lock(data_dir)?;
    set_aside(data_dir, diverged).map_err(failed)?;
    // Oldest first: what is there after an interruption is the beginning of the copy.
    for name in directory::names(&copying).map_err(failed)? {
        let name = name.to_string();
        fs::rename(copying.join(&name), data_dir.join(&name)).map_err(failed)?;
        directory::sync_names(data_dir).map_err(failed)?;
    }
    fs::remove_dir_all(&copying).map_err(failed)?;
    directory::sync_names(data_dir).map_err(failed)?;
    Ok(report)
}

/// Newest first: what is left after an interruption is the beginning of the old log.
fn set_aside(data_dir: &Path, diverged: Option<Cursor>) -> io::Result<()> {
    let aside = diverged.map(|at| data_dir.join(format!("{DIVERGED}-{}-{}", at.epoch, at.revision)));
    if let Some(aside) = &aside {
        directory::make(aside)?;
    }
    for name in directory::names(data_dir)?.into_iter().rev() {
        let name = name.to_string();
        match &aside {
            Some(aside) => fs::rename(data_dir.join(&name), aside.join(&name))?,
            None => fs::remove_dir_all(data_dir.join(&name))?,
        }
        directory::sync_names(data_dir)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
