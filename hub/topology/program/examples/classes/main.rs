//! `cargo classes`: plans public ClusterClasses out of clones of their repositories, and compares with the list of them.
//! It fetches nothing.

mod files;
mod list;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, ensure};
use clap::Parser;
use clusterclass::{desired::offline::Preview, patch::external::NoExtensions};
use serde_json::Value;
use sha2::{Digest, Sha256};

use self::{
    files::{Checkout, documents, filled},
    list::{LIST, PAGE, PublicClass, page, read, totals},
};

/// Plan public ClusterClasses, and compare with the list
#[derive(Parser)]
#[command(name = "cargo classes", version)]
struct Args {
    /// Directory of clones, each OWNER/NAME, OWNER+NAME or NAME; without it nothing is planned
    #[arg(long)]
    clones: Option<PathBuf>,
    /// Plan these classes only, by a part of repository, path or name
    #[arg(long)]
    only: Option<String>,
    /// Print what is planned, and every finding
    #[arg(long)]
    show: bool,
    /// Write the page of the list
    #[arg(long)]
    write: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("classes: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let list = read(&fs::read_to_string(root.join(LIST)).context(LIST)?)?;
    if args.write {
        fs::write(root.join(PAGE), page(&list)).context(PAGE)?;
    }
    let (all, planned) = totals(&list);
    println!("{LIST}: {all} classes, {planned} of them planned");
    let Some(clones) = &args.clones else {
        return Ok(());
    };
    let (mut played, mut other) = (0, 0);
    for repository in &list {
        let named = |one: &PublicClass| format!("{} {} {}", repository.repository, one.path, one.class);
        let wanted = |one: &&PublicClass| args.only.as_ref().is_none_or(|part| named(one).contains(part));
        let classes: Vec<&PublicClass> = repository.classes.iter().filter(wanted).collect();
        if classes.is_empty() {
            continue;
        }
        let clone = Checkout::find(clones, repository)?;
        for one in classes {
            let rules = outcome(&clone, one, args.show).unwrap_or_else(|error| {
                println!("{error:#}");
                BTreeSet::from(["unreadable".to_owned()])
            });
            let as_listed = match &one.refused {
                None => rules.is_empty(),
                Some(rule) => rules.contains(rule),
            };
            played += 1;
            if !as_listed {
                other += 1;
                let listed = one.refused.as_deref().unwrap_or("planned");
                println!(
                    "{}: listed as {listed}, found {}",
                    named(one),
                    Vec::from_iter(rules).join(", ")
                );
            }
        }
    }
    println!("{played} classes planned, {other} otherwise than listed");
    ensure!(other == 0, "the list is not what is found");
    Ok(())
}

/// The rules that refuse a class with its Cluster; none if they are planned.
fn outcome(clone: &Checkout, one: &PublicClass, show: bool) -> anyhow::Result<BTreeSet<String>> {
    let files = [("files".to_owned(), gathered(clone, one)?.into_bytes())];
    let planned = match Preview(&NoExtensions).plans(&files, None) {
        Ok(planned) => planned,
        Err(why) => {
            println!("{why}");
            return Ok(BTreeSet::from(["unreadable".to_owned()]));
        }
    };
    if show {
        println!("{}", clusterclass::desired::table::table(&planned.plans));
        for finding in &planned.findings {
            println!("{finding}");
        }
    }
    ensure!(
        planned.plans.len() <= 1 && !(planned.plans.is_empty() && planned.findings.is_empty()),
        "no Cluster is planned"
    );
    Ok(planned
        .findings
        .iter()
        .map(|finding| finding.rule.to_owned())
        .collect())
}

/// The class, its templates and its Cluster, as one file.
fn gathered(clone: &Checkout, one: &PublicClass) -> anyhow::Result<String> {
    let text = clone.text(&one.path)?;
    let mut class = None;
    let mut all = Vec::new();
    let mut named = BTreeSet::new();
    for path in std::iter::once(&one.path).chain(&one.templates) {
        let text = if *path == one.path {
            text.clone()
        } else {
            clone.text(path)?
        };
        for document in documents(&text) {
            if format!("{:x}", Sha256::digest(document.as_bytes())) == one.sha256 {
                class = Some(filled(&document, one)?);
                continue;
            }
            let document = filled(&document, one)?;
            let Some((kind, name)) = kind_and_name(&document) else {
                continue;
            };
            if kind.ends_with("Template") && named.insert((kind, name)) {
                all.push(document);
            }
        }
    }
    all.insert(0, class.context("no document has its digest")?);
    all.push(cluster(clone, one)?);
    Ok(all.join("---\n"))
}

fn kind_and_name(document: &str) -> Option<(String, String)> {
    let value: Value = serde_norway::from_str(document).ok()?;
    let text = |pointer: &str| Some(value.pointer(pointer)?.as_str()?.to_owned());
    Some((text("/kind")?, text("/metadata/name")?))
}

/// The Cluster of its class in the file that is listed, or one that is made.
fn cluster(clone: &Checkout, one: &PublicClass) -> anyhow::Result<String> {
    let class = &one.class;
    let Some(path) = &one.cluster else {
        return Ok(format!(
            "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {{name: demo, namespace: default}}\nspec:\n  \
             clusterNetwork: {{pods: {{cidrBlocks: [192.168.0.0/16]}}}}\n  topology:\n    classRef: {{name: {class}}}\n    \
             version: v1.33.2\n    controlPlane: {{replicas: 1}}\n{}",
            indented(&one.topology)
        ));
    };
    for document in documents(&clone.text(path)?) {
        let document = filled(&document, one)?;
        let Ok(value) = serde_norway::from_str::<Value>(&document) else {
            continue;
        };
        let topology = &value["spec"]["topology"];
        let of_class = topology["class"] == class.as_str() || topology["classRef"]["name"] == class.as_str();
        if value["kind"] == "Cluster" && of_class {
            return Ok(document);
        }
    }
    anyhow::bail!("{path} has no Cluster of class {class}")
}

fn indented(lines: &str) -> String {
    lines.lines().map(|line| format!("    {line}\n")).collect()
}
