//! The list of public ClusterClasses, as `e2e/fixtures/cluster-api/public-classes.yaml` has it, and the page that it makes.

use std::{collections::BTreeMap, fmt::Write};

use anyhow::Context;
use serde::Deserialize;

/// The list, from the root of the repository.
pub(crate) const LIST: &str = "e2e/fixtures/cluster-api/public-classes.yaml";
/// The page, from the root of the repository.
pub(crate) const PAGE: &str = "docs/reference/clusterclasses.md";

/// A repository with its classes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Repository {
    /// Owner and name.
    pub(crate) repository: String,
    /// The commit that is read.
    pub(crate) commit: String,
    /// Files that its Makefile copies before kustomize builds: the copy, and its source.
    #[serde(default)]
    pub(crate) copies: BTreeMap<String, String>,
    /// The classes.
    pub(crate) classes: Vec<PublicClass>,
}

/// A class, and the files that it is planned with.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublicClass {
    /// Its name.
    pub(crate) class: String,
    /// Its file, or a directory that kustomize builds.
    pub(crate) path: String,
    /// The digest of its document, before anything is substituted.
    pub(crate) sha256: String,
    /// Further files with its templates.
    #[serde(default)]
    pub(crate) templates: Vec<String>,
    /// The file, or a directory that kustomize builds, with its Cluster; one is made where there is none.
    #[serde(default)]
    pub(crate) cluster: Option<String>,
    /// Lines below `topology` of a Cluster that is made.
    #[serde(default)]
    pub(crate) topology: String,
    /// Values of the variables of files.
    #[serde(default)]
    pub(crate) values: BTreeMap<String, String>,
    /// The rule that refuses it; absent: it is planned.
    #[serde(default)]
    pub(crate) refused: Option<String>,
    /// Why it is right to refuse it, or what is missing in its plan.
    #[serde(default)]
    pub(crate) why: String,
}

/// Reads the list.
///
/// # Errors
///
/// It is none.
pub(crate) fn read(text: &str) -> anyhow::Result<Vec<Repository>> {
    serde_norway::from_str(text).context("the list of classes")
}

/// The number of classes, and of those that are planned.
pub(crate) fn totals(list: &[Repository]) -> (usize, usize) {
    let all = list.iter().flat_map(|one| &one.classes);
    (
        all.clone().count(),
        all.filter(|one| one.refused.is_none()).count(),
    )
}

/// The page.
pub(crate) fn page(list: &[Repository]) -> String {
    let (all, planned) = totals(list);
    let mut text = format!(
        "# Public ClusterClasses\n\n`cargo classes --write` makes this page of [{LIST}](../../{LIST}); do not edit it.\n\
         Of {all} distinct classes {planned} are planned from files, without an extension.\n\n\
         | repository | class | sha256 | result |\n|---|---|---|---|\n"
    );
    for repository in list {
        let commit = repository.commit.get(..9).unwrap_or_default();
        for one in &repository.classes {
            let sha256 = one.sha256.get(..12).unwrap_or_default();
            let mut result = match &one.refused {
                None => "planned".to_owned(),
                Some(rule) => format!("refused (`{rule}`)"),
            };
            if !one.why.is_empty() {
                let _ = write!(result, ": {}", one.why);
            }
            let _ = writeln!(
                text,
                "| {} @ {commit} | {} | {sha256} | {result} |",
                repository.repository, one.class
            );
        }
    }
    text
}
