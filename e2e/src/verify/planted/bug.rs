//! Owns: planted bugs as they stand in `e2e/planted`, one file each, and how one gets into the text of the product.
//! Never: builds or runs anything.
//!
//! A bug replaces whole lines. They are compared without their indentation, and must be found exactly once: when
//! the product moves on, the bug fails by name until somebody moves it along.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;

/// Where the bugs are, from the root of the workspace.
const DIRECTORY: &str = "e2e/planted";

/// A bug.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bug {
    /// The name of its file.
    #[serde(skip)]
    pub(super) name: String,
    /// What is wrong with it, in a sentence.
    pub(super) what: String,
    /// What may catch it.
    pub(super) tests: Tests,
    /// What is replaced.
    edits: Vec<Edit>,
}

/// Tests of one crate.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
pub(super) struct Tests {
    /// The crate.
    pub(super) package: String,
    /// The integration test's target; absent: the tests in the library.
    pub(super) target: Option<String>,
    /// Those whose path has this in it.
    pub(super) filter: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    file: PathBuf,
    find: String,
    replace: String,
}

/// Every bug, by name.
pub(super) fn all(workspace: &Path) -> anyhow::Result<Vec<Bug>> {
    let directory = workspace.join(DIRECTORY);
    let mut bugs = Vec::new();
    for entry in fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            bugs.push(read(&path).with_context(|| format!("{} is no planted bug", path.display()))?);
        }
    }
    if bugs.is_empty() {
        bail!("{} has no planted bug", directory.display());
    }
    bugs.sort_by(|one: &Bug, other| one.name.cmp(&other.name));
    Ok(bugs)
}

fn read(path: &Path) -> anyhow::Result<Bug> {
    let mut bug: Bug = serde_norway::from_str(&fs::read_to_string(path)?)?;
    let name = path.file_stem().and_then(|stem| stem.to_str());
    name.context("its name is not UTF-8")?.clone_into(&mut bug.name);
    Ok(bug)
}

impl Bug {
    /// Puts it into the files below `root`. An error says which text is not there, and then nothing was changed.
    pub(super) fn plant(&self, root: &Path) -> Result<(), String> {
        self.planted(root)
            .and_then(|files| {
                for (path, text) in files {
                    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
                }
                Ok(())
            })
            .map_err(|error| format!("{error:#}"))
    }

    /// The files that it changes, as they are with it.
    fn planted(&self, root: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
        let mut files: Vec<(PathBuf, String)> = Vec::new();
        for edit in &self.edits {
            let path = root.join(&edit.file);
            let known = files.iter().position(|(known, _)| *known == path);
            let text = match known {
                Some(at) => files.swap_remove(at).1,
                None => fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", edit.file.display()))?,
            };
            let text = replaced(&text, &edit.find, &edit.replace)
                .map_err(|why| anyhow!("{}: {why}:\n{}", edit.file.display(), edit.find))?;
            files.push((path, text));
        }
        Ok(files)
    }
}

/// `text` with the lines of `find`, which must stand there exactly once, replaced.
fn replaced(text: &str, find: &str, replace: &str) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = find.lines().map(str::trim).collect();
    if wanted.is_empty() {
        return Err("there is nothing to look for".to_owned());
    }
    let same = |lines: &[&str]| lines.iter().map(|line| line.trim()).eq(wanted.iter().copied());
    let mut places = lines
        .windows(wanted.len())
        .enumerate()
        .filter(|(_, lines)| same(lines))
        .map(|(at, _)| at);
    let at = places
        .next()
        .ok_or("this text is not there any more; move the planted bug along with the product")?;
    if places.next().is_some() {
        return Err("this text is there more than once; make it longer".to_owned());
    }
    let (before, from) = lines.split_at(at);
    let all = before
        .iter()
        .copied()
        .chain(replace.lines())
        .chain(from[wanted.len()..].iter().copied());
    Ok(all.flat_map(|line| [line, "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fewest bugs that have to be planted.
    const BUGS_MIN: usize = 16;

    #[test]
    fn every_planted_bug_still_applies() {
        let root = super::super::workspace();
        let bugs = all(&root).unwrap();
        assert!(bugs.len() >= BUGS_MIN, "only {} bugs are planted", bugs.len());
        let failures: Vec<String> = bugs
            .iter()
            .filter_map(|bug| {
                let files = match bug.planted(&root) {
                    Ok(files) => files,
                    Err(why) => return Some(format!("{}: {why:#}", bug.name)),
                };
                let changes = files
                    .iter()
                    .all(|(path, text)| fs::read_to_string(path).unwrap() != *text);
                (!changes).then(|| format!("{}: it changes nothing", bug.name))
            })
            .collect();
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }

    #[test]
    fn lines_are_found_without_their_indentation_and_only_once() {
        let text = "fn f() {\n    one();\n    two();\n}\n";
        let with = replaced(text, "one();\ntwo();\n", "three();\n").unwrap();
        assert_eq!(with, "fn f() {\nthree();\n}\n");
        assert_eq!(replaced(text, "two();", "").unwrap(), "fn f() {\n    one();\n}\n");
        assert!(
            replaced(text, "two();\none();", "")
                .unwrap_err()
                .contains("not there")
        );
        assert!(
            replaced("a\nb\n a\n", "a", "")
                .unwrap_err()
                .contains("more than once")
        );
        assert!(replaced(text, "", "x").is_err());
    }
}
