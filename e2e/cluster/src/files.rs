//! Owns: how files are written that nobody else may read: keys, and what names them.
//! Never: decides where they stand.

use std::{io::Write, os::unix::fs::OpenOptionsExt, path::Path};

use anyhow::Context;

/// Writes a file that nobody else may read, in the place of one that is there.
pub fn write_private(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let written = std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(content));
    written.with_context(|| format!("cannot write {}", path.display()))
}
