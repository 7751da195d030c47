//! Owns: that docs/reference/dependencies.md has a reason for each direct dependency of the workspace, and for no other.
//! Never: judges a reason.

use super::root;
use anyhow::{Context, ensure};
use regex::Regex;
use std::collections::BTreeSet;

/// The page.
const PAGE: &str = "docs/reference/dependencies.md";

pub(super) fn have_reasons() -> anyhow::Result<()> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml"))?;
    let (_, table) = manifest
        .split_once("[workspace.dependencies]\n")
        .context("Cargo.toml has the table")?;
    let table = table.split("\n[").next().unwrap_or_default();
    // A crate of ours has a path.
    let foreign = table.lines().filter(|line| !line.contains("path = "));
    let name = Regex::new("^([a-z0-9_-]+) = ")?;
    let direct: BTreeSet<String> = foreign
        .filter_map(|line| name.captures(line))
        .map(|found| found[1].to_owned())
        .collect();
    ensure!(direct.len() > 30, "Cargo.toml was not read: {direct:?}");
    let page = std::fs::read_to_string(root().join(PAGE)).context(PAGE)?;
    let row = Regex::new(r"(?m)^\| `([a-z0-9_-]+)` \| \S")?;
    let explained: BTreeSet<String> = row
        .captures_iter(&page)
        .map(|found| found[1].to_owned())
        .collect();
    let differing: Vec<_> = direct.symmetric_difference(&explained).collect();
    ensure!(
        differing.is_empty(),
        "{PAGE} and Cargo.toml differ in {differing:?}"
    );
    Ok(())
}
