//! Owns: the files of the workspace as tidy reads them: which there are, and their code without comments and tests.
//! Never: states a law.

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use std::path::{Path, PathBuf};
use tributary_e2e::suite::plain_test;

/// More files than this below the workspace mean that something was not left out that should be.
const FILES_MAX: usize = 5_000;
/// Directories that hold nothing of ours.
const LEFT_OUT: [&str; 3] = ["target", ".git", "node_modules"];

/// One file of the workspace.
pub(super) struct Source {
    /// Path below the workspace, with `/`.
    pub(super) path: String,
    /// Its text.
    pub(super) text: String,
}

pub(super) fn trials() -> Vec<Trial> {
    vec![plain_test(
        "tidy::code_is_told_from_comments_and_tests",
        tells_code,
    )]
}

/// Every text file of the workspace whose name ends so.
pub(super) fn files(endings: &[&str]) -> anyhow::Result<Vec<Source>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("e2e lies in the workspace")?;
    let mut paths = Vec::new();
    collect(root, &mut paths)?;
    let mut found = Vec::new();
    for path in paths {
        let below = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
        if endings.iter().any(|ending| below.ends_with(ending)) {
            let text = std::fs::read_to_string(&path).with_context(|| below.clone())?;
            found.push(Source { path: below, text });
        }
    }
    ensure!(!found.is_empty(), "no file ends with {endings:?}");
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// The text of one file, by its path below the workspace.
pub(super) fn text_of(path: &str) -> anyhow::Result<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned())
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let kind = entry.file_type()?;
        if kind.is_dir() && !LEFT_OUT.iter().any(|left_out| name == *left_out) {
            collect(&entry.path(), found)?;
        } else if kind.is_file() {
            found.push(entry.path());
        }
        ensure!(found.len() <= FILES_MAX, "more than {FILES_MAX} files");
    }
    Ok(())
}

impl Source {
    /// True for files that hold nothing but tests.
    pub(super) fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.contains("/tests/")
            || self.path.contains("/testing/")
            || ["tests.rs", "testing.rs"].contains(&name)
    }

    /// The lines of code with their numbers: no comments, no inline test modules.
    pub(super) fn code(&self) -> Vec<(usize, &str)> {
        let mut lines = Vec::new();
        let mut in_tests = false;
        let mut after_attribute = false;
        for (index, line) in self.text.lines().enumerate() {
            if in_tests {
                // rustfmt puts the end of a module where its beginning is.
                in_tests = line != "}";
                continue;
            }
            let opens_module = line.starts_with("mod ") || line.starts_with("pub mod ");
            if after_attribute && opens_module && line.ends_with('{') {
                in_tests = true;
            } else if !line.trim_start().starts_with("//") {
                lines.push((index + 1, line));
            }
            after_attribute = line == "#[cfg(test)]";
        }
        lines
    }
}

fn tells_code() -> anyhow::Result<()> {
    let source = Source {
        path: "hub/src/example.rs".to_owned(),
        text:
            "//! Words.\nuse a;\n    // why\nfn f() {}\n#[cfg(test)]\nmod tests {\n    use b;\n}\nfn g() {}\n"
                .to_owned(),
    };
    let code: Vec<_> = source.code().into_iter().map(|(number, _)| number).collect();
    ensure!(code == [2, 4, 5, 9], "{code:?}");
    ensure!(!source.is_test(), "{}", source.path);
    Ok(())
}

/// Returns true for a source of what people run.
pub(super) fn is_product(path: &str) -> bool {
    let crates = ["shared/", "hub/", "agent/", "cli/"];
    crates.iter().any(|place| path.starts_with(place)) && path.contains("/src/")
}

/// Returns true for a source of what verifies, measures or shows the product, and for none of the scenarios.
pub(super) fn is_e2e(path: &str) -> bool {
    path.starts_with("e2e/") && path.contains("/src/") && !path.starts_with("e2e/fuzz/")
}
