//! Owns: the Helm charts in `deploy/charts`, and the plain manifests that are rendered from them.
//! Never: knows what is in them.

use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::TempDir;

use crate::real::helm::Helm;
use advice::RENDER_MANIFESTS;

/// The charts, by their directories, in the order in which a member that also runs the hub installs them.
pub const CHARTS: [&str; 3] = ["crds", "hub", "agent"];
/// Kinds that newer clusters have, and `helm template` takes for absent unless it is told.
pub const NEWER_KINDS: [&str; 2] = [
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
    "flowcontrol.apiserver.k8s.io/v1/FlowSchema",
];
/// Namespace of the plain manifests.
const NAMESPACE: &str = "tributary-system";

/// Renders the charts of this repository.
pub struct Charts {
    helm: Helm,
    home: TempDir,
}

impl Charts {
    /// With the Helm of this workspace.
    pub fn new() -> anyhow::Result<Self> {
        let helm = Helm::find()?;
        let home = tempfile::tempdir().context("a directory for Helm")?;
        Ok(Self { helm, home })
    }

    /// Runs Helm in the root of the repository; the arguments are words.
    pub fn helm(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let words: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        self.helm.run(&root(), self.home.path(), &words)
    }

    /// Renders a chart with these arguments of `helm template`, test pods included, for a cluster that has everything.
    pub fn render(&self, chart: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let newer: Vec<String> = NEWER_KINDS
            .iter()
            .map(|kind| format!("--api-versions={kind}"))
            .collect();
        let mut all: Vec<&str> = newer.iter().map(String::as_str).collect();
        all.extend(arguments);
        self.template(chart, &all)
    }

    /// The same on a cluster that has nothing new.
    pub fn template(&self, chart: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let (release, path) = (format!("tributary-{chart}"), format!("deploy/charts/{chart}"));
        let mut all = vec!["template", &*release, &*path, "--namespace", NAMESPACE];
        all.extend(arguments);
        self.helm(&all)
    }

    /// The plain manifest of a chart: where it belongs and what it says.
    pub fn manifest(&self, chart: &str) -> anyhow::Result<(PathBuf, String)> {
        let values = format!("deploy/manifests/{chart}.values.yaml");
        let rendered = self.render(chart, &["--skip-tests", "--values", &values])?;
        let rendered = rendered
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty());
        let mut text = format!(
            "# Rendered from deploy/charts/{chart} with {values} by `{RENDER_MANIFESTS}`. Do not edit.\n"
        );
        for line in rendered {
            text.push_str(line);
            text.push('\n');
        }
        let path = root().join(format!("deploy/manifests/{chart}/tributary-{chart}.yaml"));
        Ok((path, text))
    }

    /// Writes every plain manifest; the paths of those that changed.
    pub fn write_manifests(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut changed = Vec::new();
        for chart in CHARTS {
            let (path, text) = self.manifest(chart)?;
            if std::fs::read_to_string(&path).is_ok_and(|present| present == text) {
                continue;
            }
            let directory = path.parent().context("a manifest lies in a directory")?;
            std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
            std::fs::write(&path, text).with_context(|| path.display().to_string())?;
            changed.push(path);
        }
        Ok(changed)
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest).to_path_buf()
}
