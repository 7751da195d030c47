//! Owns: programs that Go built, kept outside the checkout by the hash of what they were built from.
//! Never: builds one.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

use anyhow::Context;

/// Names the directory of kept programs; set to nothing, none is kept.
const DIRECTORY_VARIABLE: &str = "TRIBUTARY_GO_PROGRAMS";
/// Builds of one program that are kept. Older ones go when a new one comes.
const BUILDS_MAX: usize = 3;
/// Characters of the hash that a file name has.
const HASH_CHARACTERS: usize = 32;

/// The directory of kept programs. Every checkout of a user shares it.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    directory: Option<PathBuf>,
}

impl Kept {
    /// The directory that the environment names, or `tributary/go` in the user's cache.
    pub(crate) fn of_this_user() -> Self {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let cache = || {
            let of_user = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
            let cache = of_user.or_else(|| Some(variable("HOME")?.join(".cache")));
            cache.map(|cache| cache.join("tributary").join("go"))
        };
        let directory = variable(DIRECTORY_VARIABLE).or_else(cache);
        Self {
            directory: directory.filter(|path| !path.as_os_str().is_empty()),
        }
    }

    #[cfg(test)]
    fn at(directory: &Path) -> Self {
        Self {
            directory: Some(directory.to_path_buf()),
        }
    }

    /// Puts the program that was built from `parts` at `place`, or builds it there and keeps it.
    ///
    /// `parts` must name everything that decides the program's bytes, the toolchain among them. A directory of kept
    /// programs that cannot be written costs a line on standard error, not the build.
    pub(crate) fn program(
        &self,
        place: &Path,
        parts: &[&str],
        build: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let Some(directory) = &self.directory else {
            return build();
        };
        let kept = directory.join(format!("{name}-{}", key(parts)));
        if kept.is_file() {
            eprintln!(
                "{name}: built before from the same sources, found in {}",
                directory.display()
            );
            return copy(&kept, place).with_context(|| format!("cannot copy {}", kept.display()));
        }
        build()?;
        if let Err(error) = keep(directory, &name, place, &kept) {
            eprintln!("note: {name} is not kept in {}: {error}", directory.display());
        }
        Ok(())
    }
}

/// A hash of all parts, none of which runs into the next.
fn key(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let mut key = hasher.finalize().to_hex().to_string();
    key.truncate(HASH_CHARACTERS);
    key
}

/// Copies to a file beside `to` and renames it: a copy that is cut off leaves nothing that looks like a program.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let fresh = to.with_extension(format!("{}.copy", std::process::id()));
    fs::copy(from, &fresh)?;
    fs::rename(&fresh, to)
}

fn keep(directory: &Path, name: &str, place: &Path, kept: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    copy(place, kept)?;
    for old in builds(directory, name)?.into_iter().skip(BUILDS_MAX) {
        fs::remove_file(old)?;
    }
    Ok(())
}

/// The kept builds of a program, newest first.
fn builds(directory: &Path, name: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let file = entry.file_name();
        let hash = file
            .to_str()
            .and_then(|file| file.strip_prefix(name)?.strip_prefix('-'));
        let is_build = hash.is_some_and(|hash| {
            hash.len() == HASH_CHARACTERS && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        if is_build {
            found.push((
                entry.metadata()?.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                entry.path(),
            ));
        }
    }
    found.sort();
    Ok(found.into_iter().rev().map(|(_, path)| path).collect())
}

/// A hash of the files of one directory of Go sources: programs, `go.mod` and `go.sum`.
pub(crate) fn sources_hash(directory: &Path) -> anyhow::Result<String> {
    super::module::Module::at(directory, directory)
        .hash()
        .with_context(|| format!("cannot read {}", directory.display()))
}

/// The toolchain that Go uses in a directory, which its `go.mod` may choose.
pub(crate) fn toolchain(directory: &Path) -> anyhow::Result<String> {
    let output = Command::new("go")
        .current_dir(directory)
        .args(["env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64"])
        .output()
        .context("cannot run go")?;
    anyhow::ensure!(
        output.status.success(),
        "go env failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(place: &Path, text: &str) -> anyhow::Result<()> {
        Ok(fs::write(place, text)?)
    }

    #[test]
    fn a_program_is_built_once_for_its_sources() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let kept = Kept::at(&directory.path().join("kept"));
        let place = directory.path().join("helm");
        kept.program(&place, &["a", "go1"], || written(&place, "first"))
            .expect("it is built");
        fs::remove_file(&place).expect("another checkout");
        kept.program(&place, &["a", "go1"], || anyhow::bail!("built a second time"))
            .expect("it is found");
        assert_eq!(fs::read_to_string(&place).expect("the program"), "first");
        // Another toolchain is another program, and so are parts that only look alike when they are joined.
        for parts in [["a", "go2"], ["ag", "o1"]] {
            kept.program(&place, &parts, || written(&place, "second"))
                .expect("it is built");
            assert_eq!(fs::read_to_string(&place).expect("the program"), "second");
        }
    }

    #[test]
    fn a_build_that_fails_keeps_nothing() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let kept = Kept::at(directory.path());
        let place = directory.path().join("place").join("helm");
        kept.program(&place, &["a"], || anyhow::bail!("no compiler"))
            .expect_err("it cannot be built");
        assert_eq!(
            builds(directory.path(), "helm").expect("a directory"),
            Vec::<PathBuf>::new()
        );
    }

    #[test]
    fn old_builds_go_and_other_programs_stay() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let kept = Kept::at(&directory.path().join("kept"));
        let place = directory.path().join("helm");
        let other = directory.path().join("helm-docs");
        kept.program(&other, &["x"], || written(&other, "other"))
            .expect("it is built");
        for version in ["1", "2", "3", "4", "5"] {
            kept.program(&place, &[version], || written(&place, version))
                .expect("it is built");
        }
        let left = |name| {
            builds(&directory.path().join("kept"), name)
                .expect("a directory")
                .len()
        };
        assert_eq!(left("helm"), BUILDS_MAX);
        assert_eq!(left("helm-docs"), 1);
    }

    #[test]
    fn a_directory_that_cannot_be_written_costs_no_build() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("file");
        written(&file, "in the way").expect("a file");
        let place = directory.path().join("helm");
        Kept::at(&file)
            .program(&place, &["a"], || written(&place, "built"))
            .expect("it is built");
        assert_eq!(fs::read_to_string(&place).expect("the program"), "built");
    }
}
