//! Owns: the deletion of a directory of large files beside somebody who appends: their space goes back to the system in
//! small pieces. Never: decides what is deleted, or makes a deletion durable.

use std::{
    fs::{self, OpenOptions},
    io,
    path::Path,
    thread,
    time::Duration,
};

/// Bytes that go back at once. The file system frees them in the transaction that the next append's sync waits for: a
/// file of 280 MB that goes as a whole makes that sync 30 to 40 ms longer, a piece of this size is not to be seen.
const PIECE_BYTES: u64 = 4 * 1024 * 1024;
/// Between two pieces, so that an append's sync has at most one to wait for. A gigabyte takes 2.5 s.
const PAUSE: Duration = Duration::from_millis(10);

/// Deletes a directory and what is in it. An interrupted call leaves an ordinary directory.
pub(super) fn remove_dir(dir: &Path) -> io::Result<()> {
    shorten_below(dir)?;
    fs::remove_dir_all(dir)
}

/// Shortens all files below a directory to one piece each.
fn shorten_below(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            shorten_below(&entry.path())?;
        } else if kind.is_file() && entry.metadata()?.len() > PIECE_BYTES {
            shorten(&entry.path())?;
        }
    }
    Ok(())
}

fn shorten(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let mut length = file.metadata()?.len();
    while length > PIECE_BYTES {
        length -= PIECE_BYTES;
        file.set_len(length)?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_large_and_what_is_deep_goes_too() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("removed");
        fs::create_dir_all(dir.join("blobs")).unwrap();
        for (name, bytes) in [
            ("db", 3 * PIECE_BYTES + 1),
            ("conf", 0),
            ("blobs/1", PIECE_BYTES + 1),
        ] {
            fs::File::create(dir.join(name)).unwrap().set_len(bytes).unwrap();
        }
        shorten_below(&dir).unwrap();
        for (name, bytes) in [("db", PIECE_BYTES), ("conf", 0), ("blobs/1", PIECE_BYTES)] {
            let left = fs::metadata(dir.join(name)).unwrap().len();
            assert!(left <= bytes, "{name} has {left} bytes");
        }
        remove_dir(&dir).unwrap();
        assert!(!dir.exists());
        assert!(remove_dir(&dir).is_err(), "nothing was there to be deleted");
    }
}
