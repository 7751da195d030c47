//! Owns: the upstream conformance suite of the Multi-Cluster Services API, run from a checkout that somebody has,
//! against clusters that run with Tributary on them.
//! Never: brings the suite along, or changes a line of it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, ensure};
use kube::config::Kubeconfig;

use super::{
    address::Families,
    configuration::TOOLS_IMAGE,
    control::ControlPlane,
    installed::{AGENT, NAMESPACE},
    layout::Directory,
    running::Running,
    specs::{self, Counts, Spec},
};
use advice::NODES_INSTALL;
use cluster::{
    files::write_private,
    real::{build, command::printed},
};

/// The folder of the suite in a checkout.
const SUITE: &str = "conformance";
/// Image for the suite's pods: Debian's tools, which every node has: a shell, socat, nc and nslookup.
const STAND_IN: &str = TOOLS_IMAGE;
/// Time for all of it; three minutes are usual.
const SUITE_WAIT: &str = "45m";
/// The suite's report fields about the tested product.
const ABOUT: [&str; 3] = [
    "-organization=Tributary",
    "-project=Tributary",
    concat!("-version=", env!("CARGO_PKG_VERSION")),
];

/// Runs the suite of the checkout at `directory`, says how each spec ended, and writes the same to a page if asked to.
/// An error: something failed, or nothing ran.
pub(super) fn conformance(clusters: &Directory, checkout: &Path, page: Option<&Path>) -> anyhow::Result<()> {
    let began = Instant::now();
    let suite = Suite::of(checkout)?;
    let running = Running::of(clusters)?;
    let planes = running.planes();
    for plane in &planes {
        has_agent(plane)?;
    }
    let place = clusters.path().join("conformance");
    fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
    let binary = place.join("suite");
    // Outside of the clusters' namespaces: modules may have to be downloaded.
    build::go_test(&suite.directory, &binary)?;
    let images = suite.images()?;
    for node in running.nodes()? {
        for image in &images {
            let tag = [
                "--namespace",
                "k8s.io",
                "images",
                "tag",
                "--force",
                STAND_IN,
                image,
            ];
            node.ctr(&tag)
                .with_context(|| format!("{} cannot get the image {image}", node.name))?;
        }
    }
    let kubeconfig = place.join("kubeconfig");
    let joined = joined(&planes)?;
    write_private(&kubeconfig, serde_norway::to_string(&joined)?.as_bytes())?;
    let report = place.join("report.json");
    run(&running, &planes, &place, &[&binary, &kubeconfig, &report])?;
    let specs = fs::read_to_string(&report).with_context(|| format!("cannot read {}", report.display()))?;
    let specs = specs::read(&specs)?;
    let lines = specs::lines(&specs);
    println!("{}", lines.join("\n"));
    println!(
        "the suite's own report, as it wrote it: {}/report.html",
        place.display()
    );
    if let Some(page) = page {
        let text = text(&suite, &running, &specs, began.elapsed().as_secs());
        fs::write(page, text).with_context(|| format!("cannot write {}", page.display()))?;
    }
    Counts::of(&specs).verdict()
}

/// The suite in a checkout.
struct Suite {
    directory: PathBuf,
    /// As git describes what is checked out.
    version: String,
}

impl Suite {
    fn of(checkout: &Path) -> anyhow::Result<Self> {
        let directory = std::path::absolute(checkout)?.join(SUITE);
        ensure!(
            directory.join("go.mod").is_file(),
            "there is no {SUITE}/go.mod in {}: name a checkout of https://github.com/kubernetes-sigs/mcs-api",
            checkout.display()
        );
        let mut describe = Command::new("git");
        describe.arg("-C").arg(&directory);
        let described = printed(describe.args(["describe", "--tags", "--always", "--dirty"]));
        let version =
            described.map_or_else(|_| "of unknown version".to_owned(), |said| said.trim().to_owned());
        Ok(Self { directory, version })
    }

    fn images(&self) -> anyhow::Result<Vec<String>> {
        let mut sources = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "go") {
                sources.push(fs::read_to_string(&path)?);
            }
        }
        Ok(specs::images(&sources)?.into_iter().collect())
    }
}

/// Without one every spec would wait for its end, in vain.
fn has_agent(plane: &ControlPlane<'_>) -> anyhow::Result<()> {
    let deployment = ["get", "deployment", AGENT, "--namespace", NAMESPACE];
    let found = plane.kubectl(&deployment);
    found.with_context(|| format!("{} has no agent; run `{NODES_INSTALL}`", plane.name))?;
    Ok(())
}

/// One kubeconfig with a context for each cluster. Each cluster's user has the same name and another key.
fn joined(planes: &[ControlPlane<'_>]) -> anyhow::Result<Kubeconfig> {
    let mut joined = Kubeconfig {
        api_version: Some("v1".to_owned()),
        kind: Some("Config".to_owned()),
        ..Kubeconfig::default()
    };
    for plane in planes {
        let path = plane.kubeconfig();
        let one = Kubeconfig::read_from(&path).with_context(|| format!("cannot read {}", path.display()))?;
        take(&mut joined, one, &plane.name);
    }
    Ok(joined)
}

fn take(joined: &mut Kubeconfig, mut one: Kubeconfig, name: &str) {
    for cluster in &mut one.clusters {
        name.clone_into(&mut cluster.name);
    }
    for user in &mut one.auth_infos {
        name.clone_into(&mut user.name);
    }
    for context in &mut one.contexts {
        name.clone_into(&mut context.name);
        if let Some(context) = &mut context.context {
            name.clone_into(&mut context.cluster);
            context.user = Some(name.to_owned());
        }
    }
    joined.clusters.append(&mut one.clusters);
    joined.auth_infos.append(&mut one.auth_infos);
    joined.contexts.append(&mut one.contexts);
}

/// Runs it where the API servers can be reached; its own words go to the terminal as they come.
fn run(
    running: &Running,
    planes: &[ControlPlane<'_>],
    place: &Path,
    [binary, kubeconfig, report]: &[&PathBuf; 3],
) -> anyhow::Result<()> {
    let contexts = planes.iter().map(|plane| plane.name.as_str());
    let contexts = contexts.collect::<Vec<_>>().join(",");
    // A report of an earlier run must not speak for this one.
    let _ = fs::remove_file(report);
    // The suite leaves files where it stands, and entering namespaces leads to the root.
    let mut suite = running.control.command("/usr/bin/env");
    suite
        .arg(format!("--chdir={}", place.display()))
        .arg(binary)
        .args([
            format!("-kubeconfig={}", kubeconfig.display()),
            format!("-contexts={contexts}"),
            format!("-ginkgo.json-report={}", report.display()),
            format!("-test.timeout={SUITE_WAIT}"),
            format!("-ginkgo.timeout={SUITE_WAIT}"),
            "-ginkgo.no-color".to_owned(),
        ])
        .args(ABOUT)
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null());
    let status = suite.status().context("cannot run nsenter")?;
    ensure!(
        report.is_file(),
        "the suite ended with {status} and left no report"
    );
    Ok(())
}

fn families(families: Families) -> &'static str {
    match families {
        Families::Dual => "IPv4 and IPv6",
        Families::V4 => "IPv4",
        Families::V6 => "IPv6",
    }
}

/// The page: what ran on what, and how each spec ended.
fn text(suite: &Suite, running: &Running, specs: &[Spec], seconds: u64) -> String {
    let layout = running.layout;
    let date = jiff::Zoned::now().strftime("%-d %B %Y");
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "# Upstream conformance, {date}\n\n\
         `cargo nodes conformance DIR`, with the suite {} of kubernetes-sigs/mcs-api, on {} clusters with nodes \
         ({}, kube-proxy with {}) and Tributary {version}, installed from its image and charts; {seconds} s with the \
         suite's build.\n\n```text\n{}\n```\n",
        suite.version,
        layout.clusters,
        families(layout.families),
        layout.proxy.name(),
        specs::lines(specs).join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_the_same_name_stay_apart() {
        let one = |server: &str| -> Kubeconfig {
            let text = format!(
                "{{clusters: [{{name: a, cluster: {{server: {server}}}}}], users: [{{name: admin}}], \
                 contexts: [{{name: a, context: {{cluster: a, user: admin}}}}]}}"
            );
            serde_norway::from_str(&text).expect("a kubeconfig")
        };
        let mut joined = Kubeconfig::default();
        take(&mut joined, one("https://one"), "c1");
        take(&mut joined, one("https://two"), "c2");
        let users: Vec<&str> = joined.auth_infos.iter().map(|user| user.name.as_str()).collect();
        assert_eq!(users, ["c1", "c2"]);
        let contexts = joined.contexts.iter().map(|named| {
            let context = named.context.as_ref().expect("there");
            (
                named.name.as_str(),
                context.cluster.as_str(),
                context.user.as_deref(),
            )
        });
        assert!(contexts.eq([("c1", "c1", Some("c1")), ("c2", "c2", Some("c2"))]));
    }

    #[test]
    fn a_directory_without_the_suite_is_refused_with_what_to_name() {
        let empty = tempfile::tempdir().expect("a directory");
        let error = Suite::of(empty.path())
            .err()
            .expect("nothing is there")
            .to_string();
        assert!(error.contains("kubernetes-sigs/mcs-api"), "{error}");
    }
}
