//! Owns: that links between documents lead to files and to headings in them, and that the sections of the design
//! that sources cite are there.
//! Never: follows a link to another host.

use super::{root, sources};
use anyhow::{Context, ensure};
use regex::Regex;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Folders with documents; the first is the root itself.
const FOLDERS: [&str; 10] = [
    "",
    "docs",
    "docs/adr",
    "docs/guides",
    "docs/runbooks",
    "docs/reference",
    "deploy",
    "deploy/charts/crds",
    "deploy/charts/hub",
    "deploy/charts/agent",
];
/// Folders whose sources cite the design.
const CITING: [&str; 5] = ["hub", "agent", "shared", "proto", "e2e"];

pub(super) fn lead_somewhere() -> anyhow::Result<()> {
    let link = Regex::new(r"\]\(([^)#:]*)(?:#([^)]*))?\)")?;
    let mut broken = Vec::new();
    let (mut seen, mut headings_seen) = (0, 0);
    for path in documents()? {
        let text = fs::read_to_string(&path)?;
        for captured in link.captures_iter(&text) {
            let target = match &captured[1] {
                "" => path.clone(),
                file => path.parent().context("a file lies in a folder")?.join(file),
            };
            seen += 1;
            let leads = match captured.get(2) {
                None => target.exists(),
                Some(anchor) => {
                    headings_seen += 1;
                    anchors(&target).is_ok_and(|anchors| anchors.contains(anchor.as_str()))
                }
            };
            if !leads {
                broken.push(format!("{}: {}", path.display(), &captured[0]));
            }
        }
    }
    ensure!(
        seen > 20 && headings_seen > 0,
        "only {seen} links were found, {headings_seen} to headings"
    );
    ensure!(
        broken.is_empty(),
        "links that lead nowhere:\n{}",
        broken.join("\n")
    );
    Ok(())
}

pub(super) fn cited_sections_exist() -> anyhow::Result<()> {
    let design = fs::read_to_string(root().join("docs/design.md")).context("docs/design.md")?;
    let heading = Regex::new(r"(?m)^## ([0-9]+)\. ")?;
    let sections: BTreeSet<_> = heading
        .captures_iter(&design)
        .map(|found| found[1].to_owned())
        .collect();
    let citation = Regex::new(r"docs/design\.md, sections? ([0-9]+)(?: and ([0-9]+))?")?;
    let former = Regex::new(r"\bDESIGN\b")?;
    let mut wrong = Vec::new();
    let mut cited = 0;
    for folder in CITING {
        for path in sources(&root().join(folder))? {
            let text = fs::read_to_string(&path)?;
            for found in citation.captures_iter(&text) {
                let numbers = [found.get(1), found.get(2)].into_iter().flatten();
                let missing = numbers.filter(|number| !sections.contains(number.as_str()));
                cited += 1;
                wrong
                    .extend(missing.map(|number| format!("{}: section {}", path.display(), number.as_str())));
            }
            if former.is_match(&text) && !path.ends_with("documents/links.rs") {
                wrong.push(format!(
                    "{}: cites DESIGN, which is docs/design.md",
                    path.display()
                ));
            }
        }
    }
    ensure!(cited > 5, "only {cited} citations were found");
    ensure!(
        wrong.is_empty(),
        "citations that lead nowhere:\n{}",
        wrong.join("\n")
    );
    Ok(())
}

/// A decision that a source cites has a page: the reason of one that was folded is said where it matters.
pub(super) fn cited_decisions_exist() -> anyhow::Result<()> {
    let mut pages = BTreeSet::new();
    for entry in fs::read_dir(root().join("docs/adr"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        pages.extend(name.get(..4).map(str::to_owned));
    }
    let citation = Regex::new(r"(?:ADR |\badr/)([0-9]{4})")?;
    let mut wrong = Vec::new();
    let mut cited = 0;
    for folder in CITING {
        for path in sources(&root().join(folder))? {
            let text = fs::read_to_string(&path)?;
            for found in citation.captures_iter(&text) {
                cited += 1;
                if !pages.contains(&found[1]) {
                    wrong.push(format!("{}: {}", path.display(), &found[0]));
                }
            }
        }
    }
    ensure!(cited > 5, "only {cited} citations were found");
    ensure!(
        wrong.is_empty(),
        "decisions that have no page:\n{}",
        wrong.join("\n")
    );
    Ok(())
}

/// The addresses of a document's headings, as forges make them: lower case, spaces as hyphens, no other signs.
fn anchors(path: &Path) -> anyhow::Result<BTreeSet<String>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let kept = |sign: char| match sign {
        ' ' => Some('-'),
        sign if sign.is_alphanumeric() || sign == '-' || sign == '_' => Some(sign.to_ascii_lowercase()),
        _ => None,
    };
    Ok(headings
        .map(|line| {
            line.trim_start_matches('#')
                .trim()
                .chars()
                .filter_map(kept)
                .collect()
        })
        .collect())
}

/// README and its like, and everything below docs and deploy.
fn documents() -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let folder = root().join(folder);
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    Ok(found)
}
