//! Owns: the directory that a maintainer is given: texts without secrets, within bounds of size and number.
//! Never: writes over anything, or decides what belongs in it.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, ensure};

use super::redact::Secrets;

/// Largest file, in bytes; what is longer is cut, and says so.
pub const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most bytes of all files.
pub const BUNDLE_BYTES_MAX: usize = 48 * 1024 * 1024;
/// Longest time for one of its parts.
pub const PART_WAIT: Duration = Duration::from_secs(10);
/// Longest time for all of it; what is not there by then is left out, and says so.
pub const BUNDLE_WAIT: Duration = Duration::from_secs(50);
/// The end of a text that was cut.
const CUT: &str = "\n[cut here: the bound of a file is reached]\n";

/// A directory that is being filled.
pub struct Bundle {
    directory: PathBuf,
    secrets: Secrets,
    bytes: usize,
    files: Vec<String>,
}

impl Bundle {
    /// Makes the directory, which must not be there.
    pub fn create(directory: &Path, secrets: Secrets) -> anyhow::Result<Self> {
        ensure!(
            !directory.exists(),
            "{} is there already: name a directory that is not",
            directory.display()
        );
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let made = builder.create(directory);
        made.with_context(|| format!("cannot make the directory {}", directory.display()))?;
        Ok(Self {
            directory: directory.to_owned(),
            secrets,
            bytes: 0,
            files: Vec::new(),
        })
    }

    /// Adds a text under a name of letters, digits, `-` and `.`.
    pub fn add(&mut self, name: &str, text: &str) -> anyhow::Result<()> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        ensure!(name.chars().all(plain), "{name:?} is no name of a file here");
        let redacted = self.secrets.redact(text);
        let left = FILE_BYTES_MAX.min(BUNDLE_BYTES_MAX - self.bytes);
        let text = cut(&redacted, left);
        let written = write(&self.directory.join(name), &text);
        written.with_context(|| format!("cannot write {name} in {}", self.directory.display()))?;
        self.bytes += text.len().min(left);
        self.files.push(name.to_owned());
        Ok(())
    }

    /// The files written.
    pub fn files(&self) -> &[String] {
        &self.files
    }
}

/// A text of at most so many bytes, but for what says that it was cut.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{CUT}", &text[..end])
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(secrets: Secrets) -> (tempfile::TempDir, Bundle) {
        let place = tempfile::tempdir().expect("a directory");
        let bundle = Bundle::create(&place.path().join("bundle"), secrets).expect("made");
        (place, bundle)
    }

    fn read(place: &tempfile::TempDir, name: &str) -> String {
        fs::read_to_string(place.path().join("bundle").join(name)).expect("written")
    }

    #[test]
    fn secrets_never_reach_a_file() {
        let mut secrets = Secrets::default();
        secrets.add("0123456789abcdef");
        let (place, mut bundle) = bundle(secrets);
        bundle.add("a.txt", "key 0123456789abcdef\n").expect("added");
        assert_eq!(read(&place, "a.txt"), "key [redacted]\n");
        assert_eq!(bundle.files(), ["a.txt"]);
    }

    #[test]
    fn a_file_and_all_files_have_a_bound() {
        let (place, mut bundle) = bundle(Secrets::default());
        let large = "é".repeat(FILE_BYTES_MAX);
        for index in 0..=BUNDLE_BYTES_MAX / FILE_BYTES_MAX {
            bundle.add(&format!("{index}.txt"), &large).expect("added");
        }
        let first = read(&place, "0.txt");
        assert!(first.ends_with(CUT) && first.len() <= FILE_BYTES_MAX + CUT.len());
        let last = read(&place, &format!("{}.txt", BUNDLE_BYTES_MAX / FILE_BYTES_MAX));
        assert_eq!(last, CUT);
    }

    #[test]
    fn nothing_is_written_over_or_elsewhere() {
        let (place, mut bundle) = bundle(Secrets::default());
        assert!(Bundle::create(&place.path().join("bundle"), Secrets::default()).is_err());
        bundle.add("../a", "x").expect_err("another place");
        bundle.add("a", "x").expect("added");
        bundle.add("a", "y").expect_err("is there");
    }
}
