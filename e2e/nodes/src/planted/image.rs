//! Owns: an image of a program of this machine, with the libraries that it asks for.
//! Never: knows what the program does.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use tributary_image::{
    architecture::Architecture,
    layer::{self, Effort, File},
    layout::{Layout, Runs},
};

use cluster::real::command::printed;

/// Writes an archive of an image with this name, in which the program lies where ours do.
pub(crate) fn write(name: &str, program: &Path, archive: &Path) -> anyhow::Result<()> {
    let own = program
        .file_name()
        .context("a program has a name")?
        .to_string_lossy();
    let mut files = vec![file(program, format!("usr/local/bin/{own}"))?];
    for library in libraries(&printed(Command::new("ldd").arg(program))?) {
        let place = library.strip_prefix("/").unwrap_or(&library);
        files.push(file(&library, place.to_string_lossy().into_owned())?);
    }
    let mut layout = Layout::new(name, Effort::Fast);
    layout.add(
        Architecture::of_this_machine()?,
        &layer::archive(&files, 0)?,
        &Runs::default(),
    )?;
    let image = layer::archive(&layout.into_files()?, 0)?;
    fs::write(archive, image).with_context(|| format!("cannot write {}", archive.display()))
}

fn file(from: &Path, path: String) -> anyhow::Result<File> {
    let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    Ok(File {
        path,
        mode: 0o755,
        bytes,
    })
}

/// The files that ldd names: those with a path, behind an arrow or alone.
fn libraries(said: &str) -> Vec<PathBuf> {
    let words = said
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_with_a_path() {
        let said = "\tlinux-vdso.so.1 (0x7)\n\tlibc.so.6 => /lib/libc.so.6 (0x7)\n\t/lib64/ld.so.2 (0x7)\n";
        assert_eq!(
            libraries(said),
            [Path::new("/lib/libc.so.6"), Path::new("/lib64/ld.so.2")]
        );
    }
}
