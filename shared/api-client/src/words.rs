//! Owns: how a failure and a foreign text are put into a line for people: no cause twice, no `os error`, no control
//! characters.
//! Never: chooses the message.

use std::{
    fmt::{self, Display},
    io,
    path::Path,
};

use model::visible;

/// The error and its causes in one line. A cause that the line before it names already is left out.
pub fn reason(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain() {
        let told = cause.to_string();
        if told.is_empty() || said.ends_with(&told) {
            continue;
        }
        if !said.is_empty() {
            said.push_str(": ");
        }
        said.push_str(&told);
    }
    plain(&said)
}

/// Returns the words for an error of a file or a socket.
pub fn io_words(error: &io::Error) -> String {
    plain(&error.to_string())
}

/// A file that a person named cannot be read: its text has the cause, and no cause follows.
#[derive(Debug)]
pub struct FileError(String);

impl FileError {
    /// `flag`: the flag that names the file; empty where none does.
    pub fn new(flag: &str, path: &Path, error: &io::Error) -> Self {
        let colon = if flag.is_empty() { "" } else { ": " };
        Self(format!(
            "{flag}{colon}cannot read {}: {}",
            path.display(),
            io_words(error)
        ))
    }
}

impl Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FileError {}

/// Numbers of the operating system are left out, and what it says most often is shortened.
fn plain(text: &str) -> String {
    const OS_ERROR: &str = " (os error ";
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(OS_ERROR) {
        let (before, after) = rest.split_at(at);
        plain.push_str(before);
        let number = &after[OS_ERROR.len()..];
        rest = number.split_once(')').map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    for (said, short) in [
        ("No such file or directory", "no such file"),
        ("Permission denied", "permission denied"),
        ("Is a directory", "it is a directory"),
        ("Connection refused", "connection refused"),
    ] {
        if plain.contains(said) {
            plain = plain.replace(said, short);
        }
    }
    plain
}

/// A foreign text for a log line: invisible characters are escaped, as [`visible`] does.
pub struct Foreign<'a>(pub &'a str);

impl Display for Foreign<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&visible(self.0))
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use anyhow::Context;

    use super::*;

    /// An error that names its cause itself and has it as its source too, as many libraries do.
    #[derive(Debug, thiserror::Error)]
    #[error("cannot read /nope: {0}")]
    struct Twice(#[source] io::Error);

    #[test]
    fn no_cause_is_said_twice() {
        let missing = || io::Error::from_raw_os_error(2);
        let twice = anyhow::Error::new(Twice(missing()));
        assert_eq!(reason(&twice), "cannot read /nope: no such file");
        let above = twice.context("the credentials cannot be used");
        assert_eq!(
            reason(&above),
            "the credentials cannot be used: cannot read /nope: no such file"
        );
        let once = Err::<(), _>(missing()).context("cannot read /nope");
        assert_eq!(
            reason(&once.expect_err("missing")),
            "cannot read /nope: no such file"
        );
    }

    #[test]
    fn a_file_error_names_flag_path_and_cause_once() {
        let error = FileError::new("--tls-cert", Path::new("/nope"), &io::Error::from_raw_os_error(2));
        assert_eq!(error.to_string(), "--tls-cert: cannot read /nope: no such file");
        assert!(error.source().is_none());
        let denied = FileError::new("", Path::new("/secret/key"), &io::Error::from_raw_os_error(13));
        assert_eq!(denied.to_string(), "cannot read /secret/key: permission denied");
    }

    #[test]
    fn a_strangers_text_stays_on_its_line() {
        let text = Foreign("0.1.0\n2026-11-28 ERROR \u{1b}[31mall is lost").to_string();
        assert_eq!(text, "0.1.0\\n2026-11-28 ERROR \\u{1b}[31mall is lost");
        assert_eq!(Foreign("1.2.3-rc.1 \u{fc}").to_string(), "1.2.3-rc.1 \u{fc}");
        assert_eq!(Foreign("a\u{202e}b").to_string(), "a\\u{202e}b");
    }
}
