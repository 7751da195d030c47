//! Owns: the segments of a log as they lie in its directory: how many went, and what is there takes.
//! Never: opens one.

use std::{collections::BTreeSet, ffi::OsString, fs, io, os::unix::fs::MetadataExt, path::Path};

/// Bytes of a block, as the system counts them.
const BLOCK_BYTES: u64 = 512;

/// Observations of segments so far.
pub(super) struct Segments {
    seen: BTreeSet<OsString>,
    present: usize,
}

impl Segments {
    /// As they are now.
    pub(super) fn of(data: &Path) -> io::Result<Self> {
        let mut segments = Self {
            seen: BTreeSet::new(),
            present: 0,
        };
        segments.look(data)?;
        Ok(segments)
    }

    /// Looks again; what they take on the disk.
    pub(super) fn look(&mut self, data: &Path) -> io::Result<u64> {
        let (mut bytes, mut present) = (0, 0);
        for entry in fs::read_dir(data)? {
            let entry = entry?;
            let is_segment = entry.file_name().to_string_lossy().starts_with("log") && entry.path().is_dir();
            if is_segment {
                present += 1;
                bytes += bytes_below(&entry.path());
                self.seen.insert(entry.file_name());
            }
        }
        self.present = present;
        Ok(bytes)
    }

    /// Those that were there once and are not any more.
    pub(super) fn went(&self) -> usize {
        self.seen.len() - self.present
    }
}

/// Bytes below a directory; a file deleted during the count has none.
fn bytes_below(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.blocks() * BLOCK_BYTES,
        Err(_) => 0,
    });
    bytes.sum()
}
