//! The files of a class in a clone, as people apply them: built by kustomize, with values for their variables.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail, ensure};
use regex::{Captures, Regex};

use super::list::{PublicClass, Repository};

/// Values of variables that repositories agree on.
const VALUES: &[(&str, &str)] = &[
    ("CLUSTER_NAME", "demo"),
    ("NAMESPACE", "default"),
    ("KUBERNETES_VERSION", "v1.33.2"),
    ("KUBERNETES_VERSION_UPGRADE_FROM", "v1.33.2"),
    ("KUBERNETES_VERSION_UPGRADE_TO", "v1.34.0"),
    ("CONTROL_PLANE_MACHINE_COUNT", "1"),
    ("WORKER_MACHINE_COUNT", "1"),
    ("POD_CIDR", "192.168.0.0/16"),
    ("SERVICE_CIDR", "10.128.0.0/12"),
    ("SERVICE_DOMAIN", "cluster.local"),
];

/// Values of other variables, by the first of these that is in their names.
const PATTERNS: &[(&str, &str)] = &[
    ("COUNT|REPLICAS|SIZE|REPLICA", "1"),
    ("PORT$", "6443"),
    ("CIDR", "10.0.0.0/16"),
    ("_IP$|HOST$|VIP$|SERVER$|_IPS$|GATEWAY", "10.0.0.10"),
    ("B64|CA_BUNDLE|BASE64", "ZGVtbw=="),
    ("KUBERNETES.*VERSION|VERSION.*KUBERNETES", "v1.33.2"),
    ("^ENABLE|_ENABLED|INSECURE|_DHCP", "true"),
];

/// A clone of a repository at one commit.
#[derive(Debug)]
pub(crate) struct Checkout {
    git: PathBuf,
    commit: String,
    copies: BTreeMap<String, String>,
    /// A directory for what kustomize builds.
    scratch: tempfile::TempDir,
}

impl Checkout {
    /// Finds the clone of a repository in a directory: `OWNER/NAME`, `OWNER+NAME` or `NAME`, bare or not, itself or in `repo`.
    pub(crate) fn find(clones: &Path, repository: &Repository) -> anyhow::Result<Self> {
        let full = &repository.repository;
        let name = full.rsplit('/').next().unwrap_or(full);
        let names = [full.clone(), full.replace('/', "+"), name.to_owned()];
        let places = names
            .iter()
            .flat_map(|name| [clones.join(name).join("repo"), clones.join(name)]);
        for git in places.filter(|place| place.is_dir()) {
            let found = Self {
                git,
                commit: repository.commit.clone(),
                copies: repository.copies.clone(),
                scratch: tempfile::tempdir()?,
            };
            if found.run(&["rev-parse", "--git-dir"]).is_ok() {
                found
                    .run(&["cat-file", "-e", &format!("{}^{{commit}}", found.commit)])
                    .with_context(|| format!("the clone of {full} lacks {}: fetch it", found.commit))?;
                return Ok(found);
            }
        }
        bail!(
            "{} has no clone of {full}: clone it as {}",
            clones.display(),
            names[0]
        )
    }

    fn run(&self, words: &[&str]) -> anyhow::Result<String> {
        let output = Command::new("git")
            .arg("-C")
            .arg(&self.git)
            .args(words)
            .output()?;
        ensure!(
            output.status.success(),
            "git {}: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// A file, or what kustomize builds of a directory.
    pub(crate) fn text(&self, path: &str) -> anyhow::Result<String> {
        match path.strip_suffix('/') {
            None => self.run(&["show", &format!("{}:{path}", self.commit)]),
            Some(directory) => self.built(directory),
        }
    }

    fn built(&self, directory: &str) -> anyhow::Result<String> {
        let top = directory.split('/').next().unwrap_or_default();
        let tree = self.scratch.path().join(top);
        if !tree.is_dir() {
            fs::create_dir_all(&tree)?;
            let mut git = Command::new("git");
            let git = git
                .arg("-C")
                .arg(&self.git)
                .args(["archive", &self.commit, "--", top]);
            let mut git = git.stdout(Stdio::piped()).spawn()?;
            let archive = git.stdout.take().context("its output")?;
            let tar = Command::new("tar")
                .arg("-xC")
                .arg(self.scratch.path())
                .stdin(archive)
                .status()?;
            ensure!(
                git.wait()?.success() && tar.success(),
                "cannot unpack {top} of {}",
                self.git.display()
            );
        }
        let of_tree = |copy: &&String| copy.starts_with(&format!("{top}/"));
        for copy in self.copies.keys().filter(of_tree) {
            let source = self.run(&["show", &format!("{}:{}", self.commit, self.copies[copy])])?;
            fs::write(self.scratch.path().join(copy), source).with_context(|| copy.clone())?;
        }
        let output = Command::new("kubectl")
            .args(["kustomize", "--load-restrictor=LoadRestrictionsNone"])
            .arg(self.scratch.path().join(directory))
            .output()
            .context("kubectl")?;
        ensure!(
            output.status.success(),
            "kustomize {directory}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// The documents of a file that say something.
pub(crate) fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if line.starts_with("---") {
            documents.push(String::new());
        } else if let Some(document) = documents.last_mut() {
            document.push_str(line);
        }
    }
    let says = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    documents.retain(|document| document.lines().any(says));
    documents
        .iter()
        .map(|document| format!("{}\n", document.trim_matches('\n')))
        .collect()
}

/// A document with values for its variables, as clusterctl and Helm put them in, everything in one namespace.
pub(crate) fn filled(document: &str, one: &PublicClass) -> anyhow::Result<String> {
    let mut text = document.to_owned();
    for (from, to) in [
        (
            r"\{\{ \.Release\.Name \}\}-\{\{ \.Chart\.Version \}\}",
            one.class.as_str(),
        ),
        (r"\{\{ ?\.Release\.Namespace ?\}\}", "default"),
        (r"\{\{ \.Release\.Name \}\}", one.class.as_str()),
        (r"\{\{ \.Chart\.Version \}\}", "v1"),
        (
            r"\{\{-?\s*\(index \.Values\.images\.\w+ 0\)\.name\s*-?\}\}",
            "registry.example.org/node:v1",
        ),
        (r"\{\{\s*`([^`]*)`\s*\}\}", "$1"),
        (r#""?\{\{ \.Values[^}]*\}\}"?"#, "demo"),
    ] {
        text = Regex::new(from)?.replace_all(&text, to).into_owned();
    }
    let variables =
        Regex::new(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)((?:[:=\-/#%^,+@][^{}]*(?:\{[^{}]*\}[^{}]*)*)?)?\}")?;
    let text = variables.replace_all(&text, |found: &Captures<'_>| match found.get(1) {
        None => "$".to_owned(),
        Some(name) => value(
            name.as_str(),
            found.get(2).map_or("", |default| default.as_str()),
            one,
        ),
    });
    let lines = text.lines().filter(|line| !is_condition(line));
    Ok(lines.map(in_one_namespace).collect())
}

/// Returns true for a line of Helm that only decides about others.
fn is_condition(line: &str) -> bool {
    let words = ["if", "else", "end"];
    let rest = line.strip_prefix("{{-").or_else(|| line.strip_prefix("{{"));
    rest.is_some_and(|rest| words.iter().any(|word| rest.trim_start().starts_with(word)))
}

fn in_one_namespace(line: &str) -> String {
    let rest = line.trim_start();
    let indent = &line[..line.len() - rest.len()];
    if rest.starts_with("namespace: ") && !indent.is_empty() {
        format!("{indent}namespace: default\n")
    } else {
        format!("{line}\n")
    }
}

/// The value of a variable: the listed one, or the class's name, or its default, or one that repositories agree on.
fn value(name: &str, default: &str, one: &PublicClass) -> String {
    if let Some(value) = one.values.get(name) {
        return value.clone();
    }
    if ["CLUSTER_CLASS_NAME", "CLUSTERCLASS_NAME", "CLUSTER_CLASSNAME"].contains(&name) {
        return one.class.clone();
    }
    if default.starts_with([':', '-', '=']) {
        let default = default
            .trim_start_matches(':')
            .trim_start_matches('=')
            .trim_start_matches('-');
        return default.to_owned();
    }
    if let Some((_, value)) = VALUES.iter().find(|(known, _)| *known == name) {
        return (*value).to_owned();
    }
    let is = |pattern: &str| Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(name));
    match PATTERNS.iter().find(|(pattern, _)| is(pattern)) {
        Some((_, value)) => (*value).to_owned(),
        None => name.to_lowercase().replace('_', "-"),
    }
}
