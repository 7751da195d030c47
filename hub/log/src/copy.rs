//! Puts a copy of a log together in a directory of its own, and puts a copy back in the place of a log that is not there.
//! A copy has the form of a log, so that whatever reads one reads the other. It never changes a log that is there.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use model::Clusterset;

use super::{
    copy_end::CopyEnd,
    directory::{self, Directory, RESTORING},
    error::OpenError,
    rows::{Op, Rows as _, RowsError, Volume as _},
    sled::SledRows,
};

/// Rows that are written at once.
const ROWS_OF_A_PIECE: usize = 1_024;

/// A copy that is being put together. Its calls block on the disk.
pub struct LogCopy {
    data_dir: PathBuf,
    directory: Directory,
    segment: Option<SledRows>,
}

impl LogCopy {
    /// Begins a copy in a directory that holds no log.
    pub fn begin(data_dir: &Path, clusterset: &Clusterset) -> Result<Self, OpenError> {
        let directory = Directory::open(data_dir, clusterset)?;
        let copy = Self {
            data_dir: data_dir.to_path_buf(),
            directory,
            segment: None,
        };
        match copy.directory.segments().map_err(|error| copy.failed(error))? {
            there if there.is_empty() => Ok(copy),
            _ => Err(OpenError::Occupied { dir: copy.data_dir }),
        }
    }

    fn failed(&self, error: RowsError) -> OpenError {
        directory::store_error(&self.data_dir, error)
    }

    /// Continues with the next segment. The one before is durable then.
    pub fn segment(&mut self, name: &str) -> Result<(), OpenError> {
        self.seal()?;
        let unknown = || RowsError::Damaged(format!("{name:?} is not the name of a segment"));
        let name = name.parse().map_err(|_| self.failed(unknown()))?;
        let made = self.directory.create(name).map_err(|error| self.failed(error))?;
        self.segment = Some(made);
        Ok(())
    }

    /// Writes rows, key and value, to the segment that was named last.
    pub fn rows(&mut self, rows: Vec<(Vec<u8>, Vec<u8>)>) -> Result<(), OpenError> {
        let unnamed = || RowsError::Damaged("rows come before the name of a segment".into());
        let segment = self.segment.as_ref().ok_or_else(|| self.failed(unnamed()))?;
        let mut rows = rows.into_iter().map(|(key, value)| Op::Put(key, value));
        loop {
            let piece: Vec<Op> = rows.by_ref().take(ROWS_OF_A_PIECE).collect();
            if piece.is_empty() {
                return Ok(());
            }
            segment.apply(piece).map_err(|error| self.failed(error))?;
        }
    }

    /// Everything is durable after it, and the copy says that it reaches this far.
    pub fn finish(mut self, end: &CopyEnd) -> Result<(), OpenError> {
        self.seal()?;
        end.write(&self.data_dir)
            .map_err(|error| self.failed(error.into()))
    }

    fn seal(&mut self) -> Result<(), OpenError> {
        let sealed = self.segment.take().map_or(Ok(()), |segment| segment.sync());
        sealed.map_err(|error| self.failed(error))
    }
}

/// Puts the log that `copy` holds into `data_dir`, which must not hold one. `prepare` receives the directory of the
/// copy before it becomes the log; a refused copy is removed, unless an earlier call was interrupted. The next call
/// repeats an interrupted step, and no hub starts before. Nothing is written to `copy`, which may be on a medium that
/// takes no writes.
pub fn restore<E: From<OpenError>>(
    copy: &Path,
    data_dir: &Path,
    prepare: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let failed = |error: io::Error| directory::store_error(data_dir, error.into());
    directory::make(data_dir).map_err(failed)?;
    let _lock = directory::lock(data_dir)?;
    let _at_rest = directory::copy_at_rest(copy)?;
    let restoring = data_dir.join(RESTORING);
    let was_interrupted = restoring.exists();
    clear(data_dir, &restoring).map_err(failed)??;
    copy_segments(copy, &restoring).map_err(failed)?;
    if let Err(refused) = prepare(&restoring) {
        // After an interrupted call the directory stays: nothing else says that there was to be a log.
        if !was_interrupted {
            fs::remove_dir_all(&restoring).map_err(failed)?;
            directory::sync_names(data_dir).map_err(failed)?;
        }
        return Err(refused);
    }
    move_segments(&restoring, data_dir).map_err(failed)?;
    Ok(())
}

/// Makes the temporary directory of a copy; removes the remains of an interrupted attempt.
fn clear(data_dir: &Path, restoring: &Path) -> io::Result<Result<(), OpenError>> {
    let there = directory::names(data_dir)?;
    if restoring.exists() {
        for name in there {
            fs::remove_dir_all(data_dir.join(name.to_string()))?;
        }
        fs::remove_dir_all(restoring)?;
    } else if !there.is_empty() {
        let dir = data_dir.to_path_buf();
        return Ok(Err(OpenError::Occupied { dir }));
    }
    fs::create_dir(restoring)?;
    directory::sync_names(data_dir)?;
    Ok(Ok(()))
}

fn copy_segments(from: &Path, to: &Path) -> io::Result<()> {
    for name in directory::names(from)? {
        let name = name.to_string();
        copy_files(&from.join(&name), &to.join(&name))?;
    }
    File::open(to)?.sync_all()
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    directory::make(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copied = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_files(&entry.path(), &copied)?;
        } else {
            // Not its permissions: those of a medium may be of a file that takes no writes.
            let mut file = File::create(&copied)?;
            io::copy(&mut File::open(entry.path())?, &mut file)?;
            file.sync_all()?;
        }
    }
    File::open(to)?.sync_all()
}

/// While the directory is there, the restore is not done.
fn move_segments(restoring: &Path, data_dir: &Path) -> io::Result<()> {
    for name in directory::names(restoring)? {
        let name = name.to_string();
        fs::rename(restoring.join(&name), data_dir.join(&name))?;
    }
    directory::sync_names(data_dir)?;
    fs::remove_dir_all(restoring)?;
    directory::sync_names(data_dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    enum Failed {
        Refused,
        Log(String),
    }

    impl From<OpenError> for Failed {
        fn from(error: OpenError) -> Self {
            Self::Log(error.to_string())
        }
    }

    #[test]
    fn a_copy_that_is_refused_leaves_the_guard_of_an_interrupted_restore() {
        let directory = tempfile::tempdir().unwrap();
        let (copy, data) = (directory.path().join("copy"), directory.path().join("data"));
        let clusterset = Clusterset::new("example.org", "default").unwrap();
        let mut begun = LogCopy::begin(&copy, &clusterset).unwrap();
        begun.segment("log").unwrap();
        begun.rows(vec![(b"k".to_vec(), b"v".to_vec())]).unwrap();
        begun.seal().unwrap();
        drop(begun);
        let refuse = |_: &Path| Err(Failed::Refused);
        let guard = data.join(RESTORING);
        assert_eq!(restore(&copy, &data, refuse), Err(Failed::Refused));
        assert!(!guard.exists(), "nothing was begun before");
        fs::create_dir(&guard).unwrap();
        assert_eq!(restore(&copy, &data, refuse), Err(Failed::Refused));
        assert!(guard.exists(), "a hub would begin with an empty log");
        assert_eq!(restore(&copy, &data, |_| Ok::<(), Failed>(())), Ok(()));
        assert!(!guard.exists());
    }
}
