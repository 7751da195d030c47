//! Owns: the list of a program's parts (CycloneDX 1.6), as cargo knows them.
//! Never: lists what only tests or build scripts need.

use std::collections::BTreeSet;

use anyhow::Context;
use cargo_metadata::{MetadataCommand, Package};
use serde_json::{Value, json};

use crate::{
    architecture::Architecture,
    run,
    source::{PROGRAMS, Source},
};

/// The list for both programs of one architecture.
pub(crate) fn list(source: &Source, architecture: Architecture) -> anyhow::Result<Vec<u8>> {
    let linked = linked(source, architecture)?;
    let metadata = MetadataCommand::new()
        .current_dir(&source.root)
        .other_options(vec!["--locked".into()])
        .exec()
        .context("cargo does not say what the programs are made of")?;
    let packages = metadata.packages.iter();
    let packages = packages.filter(|package| linked.contains(&part(package)));
    let mut components: Vec<Value> = packages.map(component).collect();
    anyhow::ensure!(
        components.len() == linked.len(),
        "cargo tree names {} packages, and cargo metadata has {} of them",
        linked.len(),
        components.len()
    );
    components.sort_by_key(|component| component["bom-ref"].to_string());
    let list = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "name": "tributary",
                "version": source.version,
                "properties": [
                    {"name": "revision", "value": source.revision},
                    {"name": "architecture", "value": architecture.name()},
                ],
            },
        },
        "components": components,
    });
    Ok(serde_json::to_vec_pretty(&list)?)
}

/// Returns the crates linked into the programs. `cargo tree` knows the features that this package alone enables; `cargo
/// metadata` unites those of the whole workspace, tests included.
fn linked(source: &Source, architecture: Architecture) -> anyhow::Result<BTreeSet<String>> {
    let mut tree = run::cargo(&source.root);
    tree.args([
        "tree", "--locked", "--quiet", "--edges", "normal", "--prefix", "none",
    ])
    .args(["--format", "{p}", "--target", architecture.rust_target()])
    .args(["--package", PROGRAMS]);
    let lines = run::printed(&mut tree)?;
    // A package's name and its version; where it comes from is behind them, and the programs are divided by a space.
    let parts = lines.lines().filter_map(|line| line.split_once(" v"));
    let version = |rest: &str| rest.split(' ').next().map(str::to_owned);
    Ok(parts
        .filter_map(|(name, rest)| Some(format!("{name}@{}", version(rest)?)))
        .collect())
}

/// A package as its name and version.
fn part(package: &Package) -> String {
    format!("{}@{}", package.name, package.version)
}

fn component(package: &Package) -> Value {
    let purl = format!("pkg:cargo/{}", part(package));
    let mut component = json!({
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version.to_string(),
        "purl": purl,
    });
    if let Some(license) = &package.license {
        component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_listed_and_what_only_tests_need_is_not() {
        let source = Source::of_this_workspace().unwrap();
        let list: Value = serde_json::from_slice(&list(&source, Architecture::Arm64).unwrap()).unwrap();
        let names: BTreeSet<&str> = list["components"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|component| component["name"].as_str())
            .collect();
        for linked in [
            "tributary-hub",
            "tributary-agent",
            "tonic",
            "sled",
            "rustls",
            "aws-lc-sys",
        ] {
            assert!(names.contains(linked), "{linked}");
        }
        for other in [
            "proptest",
            "insta",
            "turmoil",
            "tributary-oracle",
            "tributary-sim",
            "windows-sys",
        ] {
            assert!(!names.contains(other), "{other}");
        }
        let unlicensed = list["components"].as_array().unwrap().iter();
        let unlicensed: Vec<_> = unlicensed
            .filter(|component| component["licenses"].is_null())
            .collect();
        assert!(unlicensed.is_empty(), "{unlicensed:?}");
    }
}
