//! Owns: Tributary on clusters that run, as a user installs it: image, certificates, Secrets, charts, names.
//! Never: writes into a cluster what a user would not.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, bail};

use super::{
    control::ControlPlane,
    installed::{HUB, HUB_NODE, HUB_PORT, Installed, NAMESPACE, release, restart_coredns},
    layout::Directory,
    running::Running,
};
use advice::BUILD_IMAGE;
use cluster::{charts, real::command::printed};

/// The registry that images are said to come from; every node has them already.
pub(super) const REGISTRY: &str = "tributary.local";
/// The image's name in the charts.
pub(super) const REPOSITORY: &str = "tributary";
/// Helm's wait for pods.
const HELM_WAIT: &str = "--timeout=3m";
/// The hub's volume, because nothing here provisions volumes.
const VOLUME: &str = include_str!("../volume.yaml");

/// Installs the hub in the first cluster and an agent in every one.
pub(super) fn install(directory: &Directory, image: &Path) -> anyhow::Result<()> {
    let began = Instant::now();
    let say = |what: &str| eprintln!("{:6.1} s  {what}", began.elapsed().as_secs_f64());
    let running = Running::of(directory)?;
    let installed = Installed::of(&running)?;
    let installer = Installer {
        installed: &installed,
        repository: REPOSITORY,
    };
    installer.image(image)?;
    say("every node has the image");
    installer.certificates()?;
    let planes = running.planes();
    for plane in &planes {
        installer.prepare(plane)?;
        installer.definitions(plane)?;
    }
    say("namespaces, Secrets and definitions are there");
    installer.hub(&planes[0])?;
    say("the hub is ready");
    for plane in &planes {
        installer.agent(plane)?;
    }
    say("an agent is ready in every cluster");
    for plane in &planes {
        installer.names(plane)?;
    }
    say("CoreDNS answers for clusterset.local");
    Ok(())
}

/// Unpacks the programs that `cargo image build` made, and returns where the image is.
pub(super) fn unpacked(directory: &Path, programs: &Path) -> anyhow::Result<PathBuf> {
    let image = only(directory, ".oci.tar")?;
    let archive = only(directory, &format!("-linux-{}.tar.gz", go_architecture()?))?;
    fs::create_dir_all(programs).with_context(|| format!("cannot create {}", programs.display()))?;
    let mut tar = Command::new("tar");
    tar.args(["--strip-components=1", "-xzf"]).arg(&archive);
    printed(tar.arg("-C").arg(programs))?;
    Ok(image)
}

fn go_architecture() -> anyhow::Result<String> {
    Ok(tributary_image::architecture::Architecture::of_this_machine()?.to_string())
}

fn only(directory: &Path, ending: &str) -> anyhow::Result<PathBuf> {
    let entries = fs::read_dir(directory).with_context(|| {
        format!(
            "there is no image in {}; run `{BUILD_IMAGE}`",
            directory.display()
        )
    })?;
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    match (paths.pop(), paths.is_empty()) {
        (Some(path), true) => Ok(path),
        (None, _) => bail!(
            "there is no *{ending} in {}; run `{BUILD_IMAGE}`",
            directory.display()
        ),
        (Some(_), false) => bail!(
            "there are several *{ending} in {}; name a directory with one",
            directory.display()
        ),
    }
}

/// Whoever installs.
pub(super) struct Installer<'a> {
    pub(super) installed: &'a Installed<'a>,
    /// The image's name in its registry.
    pub(super) repository: &'a str,
}

impl Installer<'_> {
    /// Gives every node the image of a directory that `cargo image build` made, and people its programs.
    pub(super) fn image(&self, directory: &Path) -> anyhow::Result<()> {
        let image = unpacked(directory, &self.installed.programs())?;
        let name = format!("{REGISTRY}/{}", self.repository);
        for node in self.installed.running.nodes()? {
            node.import(&image, Some(&name))?;
        }
        Ok(())
    }

    fn certs(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let mut certs = Command::new(self.installed.program(HUB));
        printed(certs.arg("certs").args(arguments)).map(drop)
    }

    /// An authority, and a certificate for everybody.
    pub(super) fn certificates(&self) -> anyhow::Result<()> {
        let keys = self.installed.keys();
        if keys.join("ca.crt").exists() {
            // Installed before: a hub admits a member by the key that it knows.
            return Ok(());
        }
        let keys = keys.to_string_lossy();
        self.certs(&["ca", "--out", &keys])?;
        self.certs(&["hub", "--ca", &keys, "--ip", &self.installed.hub_host()])?;
        self.certs(&["operator", "--ca", &keys, "--name", "operator"])?;
        for plane in self.installed.running.planes() {
            self.certs(&["member", "--ca", &keys, "--cluster-id", &plane.name])?;
        }
        Ok(())
    }

    /// A certificate with a new key for a member that has one.
    pub(super) fn another_key(&self, member: &str) -> anyhow::Result<()> {
        let keys = self.installed.keys();
        let keys = keys.to_string_lossy();
        self.certs(&["member", "--ca", &keys, "--cluster-id", member, "--force"])
    }

    /// The namespace and the agent's Secret, which every cluster has before a program of ours.
    pub(super) fn prepare(&self, plane: &ControlPlane<'_>) -> anyhow::Result<()> {
        let namespace = format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAMESPACE}, \
             labels: {{pod-security.kubernetes.io/enforce: restricted}}}}}}"
        );
        plane.apply(&namespace, "namespace.yaml")?;
        self.secret(plane, "tributary-agent-tls", &plane.name)
    }

    /// The definitions.
    pub(super) fn definitions(&self, plane: &ControlPlane<'_>) -> anyhow::Result<()> {
        self.helm(plane, "crds", &[])
    }

    fn secret(&self, plane: &ControlPlane<'_>, name: &str, owner: &str) -> anyhow::Result<()> {
        let file = |key: &str, file: &str| {
            format!("--from-file={key}={}", self.installed.keys().join(file).display())
        };
        let (certificate, key) = (format!("{owner}.crt"), format!("{owner}.key"));
        let secret = plane.kubectl(&[
            "create",
            "secret",
            "generic",
            name,
            "--namespace",
            NAMESPACE,
            "--dry-run=client",
            "--output=yaml",
            &file("tls.crt", &certificate),
            &file("tls.key", &key),
            &file("ca.crt", "ca.crt"),
        ])?;
        plane.apply(&secret, &format!("{name}.yaml"))
    }

    /// The hub, and what it needs of its cluster.
    pub(super) fn hub(&self, plane: &ControlPlane<'_>) -> anyhow::Result<()> {
        self.hub_needs(plane)?;
        let values = self.hub_values();
        self.helm(plane, "hub", &values.each_ref().map(String::as_str))
    }

    /// The hub's volume and its Secret.
    pub(super) fn hub_needs(&self, plane: &ControlPlane<'_>) -> anyhow::Result<()> {
        let volume = self.installed.volume();
        fs::create_dir_all(&volume).with_context(|| format!("cannot create {}", volume.display()))?;
        let text = VOLUME
            .replace("@PATH@", &volume.to_string_lossy())
            .replace("@NODE@", &HUB_NODE.name());
        plane.apply(&text, "volume.yaml")?;
        self.secret(plane, "tributary-hub-tls", "hub")
    }

    /// A user's values of the hub's chart here.
    pub(super) fn hub_values(&self) -> [String; 5] {
        [
            "service.type=NodePort".to_owned(),
            format!("service.nodePort={HUB_PORT}"),
            format!("address={}:{HUB_PORT}", self.installed.hub_host()),
            format!("image.registry={REGISTRY}"),
            format!("image.repository={}", self.repository),
        ]
    }

    /// An agent.
    pub(super) fn agent(&self, plane: &ControlPlane<'_>) -> anyhow::Result<()> {
        let values = self.agent_values();
        self.helm(plane, "agent", &values.each_ref().map(String::as_str))
    }

    /// A user's values of the agent's chart here.
    pub(super) fn agent_values(&self) -> [String; 4] {
        [
            format!("hubs={{{}}}", self.installed.hub_url()),
            format!("networkPolicy.hubPorts={{{HUB_PORT}}}"),
            format!("image.registry={REGISTRY}"),
            format!("image.repository={}", self.repository),
        ]
    }

    fn helm(&self, plane: &ControlPlane<'_>, chart: &str, values: &[&str]) -> anyhow::Result<()> {
        let (release, path) = (release(chart), charts::root().join("deploy/charts").join(chart));
        let path = path.to_string_lossy();
        let mut arguments = vec!["upgrade", "--install", &release, &path, "--wait", HELM_WAIT];
        for value in values {
            arguments.extend(["--set", value]);
        }
        let helm = self.installed.helm(plane, &arguments);
        helm.with_context(|| format!("cannot install the chart {chart} in {}", plane.name))
    }

    /// Lets CoreDNS answer for the clusterset.
    fn names(&self, plane: &ControlPlane<'_>) -> anyhow::Result<()> {
        let rights = charts::root().join("deploy/coredns");
        plane.kubectl(&["apply", "--filename", &rights.to_string_lossy()])?;
        self.installed.corefile(plane, "add")?;
        restart_coredns(plane)
    }
}
