//! Owns: that the tests that docs/threat-model.md names are there.
//! Never: runs them.

use super::{root, sources};
use anyhow::ensure;
use regex::Regex;
use std::collections::BTreeSet;

/// The page, and where tests are.
const PAGE: &str = "docs/threat-model.md";
const PLACES: [&str; 4] = ["hub", "agent", "shared", "e2e"];
/// The fewest tests that the page has to name.
const NAMED_MIN: usize = 30;

pub(super) fn named_tests_exist() -> anyhow::Result<()> {
    let page = std::fs::read_to_string(root().join(PAGE))?;
    // Names of tests are sentences: nothing else in code spans has as many words.
    let name = Regex::new("`([a-z0-9]+(?:_[a-z0-9]+){3,})`")?;
    let named: BTreeSet<&str> = name
        .captures_iter(&page)
        .filter_map(|found| found.get(1))
        .map(|found| found.as_str())
        .collect();
    ensure!(
        named.len() >= NAMED_MIN,
        "{PAGE} names {} tests only",
        named.len()
    );
    let tests = tests()?;
    let missing: Vec<&&str> = named.iter().filter(|name| !tests.contains(**name)).collect();
    ensure!(
        missing.is_empty(),
        "{PAGE} names tests that are nowhere: {missing:?}"
    );
    Ok(())
}

/// Every function that is a test by its attribute.
fn tests() -> anyhow::Result<BTreeSet<String>> {
    let test = Regex::new(r"#\[(?:tokio::)?test[^\]]*\](?:\s*#\[[^\]]*\])*\s*(?:async )?fn ([a-z0-9_]+)")?;
    let mut tests = BTreeSet::new();
    for place in PLACES {
        for path in sources(&root().join(place))? {
            let text = std::fs::read_to_string(&path)?;
            tests.extend(test.captures_iter(&text).map(|found| found[1].to_owned()));
        }
    }
    Ok(tests)
}
