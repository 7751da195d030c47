//! Owns: that pages which somebody reads at one go stay short.
//! Never: counts words of generated pages.

use super::root;
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};

/// A page or a folder of pages, and the most words that each may have.
const LIMITS: [(&str, usize); 5] = [
    ("README.md", 900),
    ("ARCHITECTURE.md", 1_500),
    ("docs/design.md", 3_000),
    ("docs/adr", 450),
    ("docs/runbooks", 400),
];
/// The list of decisions, which grows with them.
const LIST: &str = "docs/adr/README.md";

pub(super) fn are_kept() -> anyhow::Result<()> {
    let mut long = Vec::new();
    for (place, limit) in LIMITS {
        let pages = pages(&root().join(place)).with_context(|| place.to_owned())?;
        ensure!(!pages.is_empty(), "{place} has no pages");
        for page in pages {
            let words = std::fs::read_to_string(&page)?.split_whitespace().count();
            if words > limit && !page.ends_with(LIST) {
                long.push(format!("{}: {words} words, the limit is {limit}", page.display()));
            }
        }
    }
    ensure!(
        long.is_empty(),
        "pages that are too long; say it shorter:\n{}",
        long.join("\n")
    );
    Ok(())
}

fn pages(place: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if place.is_file() {
        return Ok(vec![place.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(place)? {
        let path = entry?.path();
        found.extend(path.extension().is_some_and(|end| end == "md").then_some(path));
    }
    Ok(found)
}
