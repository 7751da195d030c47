//! Owns: the list of what a program is made of (CycloneDX 1.6), as cargo knows it.
//! Never: lists what only tests or build scripts need.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use cargo_metadata::{CargoOpt, DependencyKind, Metadata, MetadataCommand, Package, PackageId};
use serde_json::{Value, json};

use crate::{
    architecture::Architecture,
    source::{PROGRAMS, Source},
};

/// The list for both programs of one architecture.
pub(crate) fn list(source: &Source, architecture: Architecture) -> anyhow::Result<Vec<u8>> {
    let metadata = MetadataCommand::new()
        .current_dir(&source.root)
        .features(CargoOpt::SomeFeatures(Vec::new()))
        .other_options(vec![
            "--locked".into(),
            "--filter-platform".into(),
            architecture.rust_target().into(),
        ])
        .exec()
        .context("cargo does not say what the programs are made of")?;
    let linked = linked(&metadata)?;
    let packages: BTreeMap<&PackageId, &Package> = metadata
        .packages
        .iter()
        .map(|package| (&package.id, package))
        .collect();
    let mut components: Vec<Value> = linked
        .iter()
        .filter_map(|id| packages.get(id))
        .map(|package| component(package))
        .collect();
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

/// What is linked into the programs: their normal dependencies, and those of these.
fn linked(metadata: &Metadata) -> anyhow::Result<BTreeSet<PackageId>> {
    let resolve = metadata.resolve.as_ref().context("cargo resolved nothing")?;
    let nodes: BTreeMap<_, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let programs = metadata.packages.iter();
    let programs = programs.filter(|package| PROGRAMS.contains(&package.name.as_str()));
    let mut waiting: Vec<PackageId> = programs.map(|package| package.id.clone()).collect();
    let mut linked = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        let node = nodes
            .get(&id)
            .with_context(|| format!("cargo resolved no {id}"))?;
        if linked.insert(id) {
            let normal = node.deps.iter().filter(|dependency| {
                let mut kinds = dependency.dep_kinds.iter();
                kinds.any(|kind| kind.kind == DependencyKind::Normal)
            });
            waiting.extend(normal.map(|dependency| dependency.pkg.clone()));
        }
    }
    Ok(linked)
}

fn component(package: &Package) -> Value {
    let purl = format!("pkg:cargo/{}@{}", package.name, package.version);
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
        for other in ["proptest", "insta", "turmoil", "tributary-e2e", "windows-sys"] {
            assert!(!names.contains(other), "{other}");
        }
        let unlicensed = list["components"].as_array().unwrap().iter();
        let unlicensed: Vec<_> = unlicensed
            .filter(|component| component["licenses"].is_null())
            .collect();
        assert!(unlicensed.is_empty(), "{unlicensed:?}");
    }
}
