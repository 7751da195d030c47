//! Owns: the check that no test of this binary is silently left out.
//! Never: runs other tests.

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use std::path::{Path, PathBuf};
use tributary_e2e::suite::{check_release_only, plain_test};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        plain_test(
            "registered::no_attribute_stands_in_for_a_registration",
            no_test_attribute,
        ),
        plain_test(
            "registered::every_module_with_trials_is_collected",
            every_module_is_collected,
        ),
    ]
}

/// The list of scenarios that guard a release names existing ones; these are the names of all tests.
pub(crate) fn release_only(names: Vec<String>) -> Trial {
    plain_test("registered::every_release_only_scenario_exists", move || {
        check_release_only(&names)
    })
}

/// `harness = false` drops functions with these attributes without a word.
fn no_test_attribute() -> anyhow::Result<()> {
    for path in sources(&directory())? {
        let text = std::fs::read_to_string(&path)?;
        for (number, line) in text.lines().enumerate() {
            let attribute = line.trim_start();
            let silent = attribute.starts_with("#[test]") || attribute.starts_with("#[tokio::test");
            let place = format!("{}:{}", path.display(), number + 1);
            ensure!(
                !silent,
                "{place}: register it with plain_test, sim_test or real_test in `trials`"
            );
        }
    }
    Ok(())
}

fn every_module_is_collected() -> anyhow::Result<()> {
    let root = std::fs::read_to_string(directory().join("main.rs"))?;
    for path in sources(&directory())? {
        let text = std::fs::read_to_string(&path)?;
        if !text.contains("pub(crate) fn trials()") {
            continue;
        }
        let module = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .context("a module has a name")?;
        ensure!(
            root.contains(&format!("{module}::trials()")) || collected_by_parent(&path, module)?,
            "{}: its trials are not collected",
            path.display()
        );
    }
    Ok(())
}

/// A module in a folder may be collected by the folder's own `mod.rs`.
fn collected_by_parent(path: &Path, module: &str) -> anyhow::Result<bool> {
    let folder = path.parent().context("a source lies in a folder")?;
    let parent = folder.join("mod.rs");
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if module == "mod" {
        let root = std::fs::read_to_string(directory().join("main.rs"))?;
        return Ok(root.contains(&format!("{name}::trials()")));
    }
    Ok(parent.is_file() && std::fs::read_to_string(parent)?.contains(&format!("{module}::trials()")))
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("e2e")
}

fn sources(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
