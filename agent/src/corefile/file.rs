//! Owns: a Corefile that is a file: read with a bound, written so that nobody reads half of it.
//! Never: looks into it.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;

use super::{args::STANDARD_INPUT, edit::COREFILE_BYTES_MAX};

/// Reads the file, or standard input.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    if path.as_os_str() == STANDARD_INPUT {
        return bounded(&mut io::stdin().lock()).context("cannot read a Corefile from standard input");
    }
    let text = File::open(path).and_then(|mut file| bounded(&mut file));
    text.with_context(|| format!("cannot read --file {}", path.display()))
}

/// Reads one byte more than allowed, so that the caller sees that the text is too large.
fn bounded(from: &mut dyn Read) -> io::Result<String> {
    let most = u64::try_from(COREFILE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > COREFILE_BYTES_MAX {
        // The bound may have cut a character, which is no fault of the file's.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Writes beside the file, with its permissions, and renames it; a link still leads to it.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let replaced = path.canonicalize().and_then(|path| replace(&path, text));
    replaced.with_context(|| format!("cannot write --file {}; it is as it was", path.display()))
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = OsString::from(path.as_os_str());
    beside.push(".new");
    let beside = PathBuf::from(beside);
    // An existing file of that name is an error.
    let mut file = File::create_new(&beside)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.set_permissions(fs::metadata(path)?.permissions()))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The message is the reason why it could not be written.
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_where_a_link_leads_and_keeps_its_permissions() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().expect("a directory");
        let (path, link) = (directory.path().join("Corefile"), directory.path().join("link"));
        fs::write(&path, "old").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
        symlink(&path, &link).expect("linked");
        write(&link, "new").expect("written");
        assert_eq!(read(&path).expect("read"), "new");
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert!(link.is_symlink());

        fs::write(directory.path().join("Corefile.new"), "of somebody else").expect("written");
        let error = format!("{:#}", write(&path, "newer").expect_err("in the way"));
        assert!(error.contains("it is as it was"), "{error}");
        assert_eq!(read(&path).expect("read"), "new");
    }

    #[test]
    fn no_more_is_read_than_is_judged() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("Corefile");
        for letter in ["x", "\u{e9}"] {
            fs::write(&path, letter.repeat(10 * COREFILE_BYTES_MAX)).expect("written");
            let length = read(&path).expect("read").len();
            assert!(
                length > COREFILE_BYTES_MAX && length < COREFILE_BYTES_MAX + 4,
                "{length}"
            );
        }
        fs::write(&path, b"\xff").expect("written");
        assert!(read(&path).is_err());
    }
}
