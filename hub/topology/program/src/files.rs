//! Files on the command line: those that a command is about, and their bytes.

use std::{
    ffi::OsStr,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use clap::Args;

/// Largest file that is read, bytes.
const FILE_MAX: u64 = 64 << 20;

/// The objects that a command is about.
#[derive(Debug, Args)]
pub(crate) struct Files {
    /// File (YAML or JSON), or directory of such files, with ClusterClasses, their templates, and Clusters; may be
    /// repeated
    #[arg(
        short = 'f',
        long = "file",
        env = "TRIBUTARY_FILE",
        value_name = "FILE",
        required = true,
        value_delimiter = ','
    )]
    pub(crate) named: Vec<PathBuf>,
}

/// The objects before an edit.
#[derive(Debug, Args)]
pub(crate) struct Old {
    /// File or directory with the objects as they were before; may be repeated
    #[arg(
        long = "old",
        env = "TRIBUTARY_OLD",
        value_name = "FILE",
        value_delimiter = ','
    )]
    pub(crate) old: Vec<PathBuf>,
}

/// Files, each a name and its bytes; of a directory its files of YAML and JSON, by name.
pub(crate) fn contents(paths: &[PathBuf]) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let documents = documents_of(path)?;
            ensure!(
                !documents.is_empty(),
                "{} has no .yaml, .yml or .json file: name another directory, or files",
                path.display()
            );
            files.extend(documents);
        } else {
            files.push(path.clone());
        }
    }
    let all = files.iter();
    all.map(|file| Ok((file.display().to_string(), read(file)?)))
        .collect()
}

/// The files of YAML and JSON in a directory, not below it, as kubectl takes them.
fn documents_of(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read {}", directory.display());
    let mut files = Vec::new();
    for entry in directory.read_dir().with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let extension = path.extension().and_then(OsStr::to_str);
        if matches!(extension, Some("yaml" | "yml" | "json")) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Reads a file that is not too large.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let mut text = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    file.take(FILE_MAX + 1)
        .read_to_end(&mut text)
        .with_context(|| format!("cannot read {shown}"))?;
    ensure!(
        text.len() as u64 <= FILE_MAX,
        "{shown} has more than {FILE_MAX} bytes: give a smaller file"
    );
    Ok(text)
}
