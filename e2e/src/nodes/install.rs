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
use crate::{advice::BUILD_IMAGE, charts, real::command::printed};

/// The registry that the image is said to come from; every node has it already.
pub(super) const REGISTRY: &str = "tributary.local";
/// How long Helm waits for pods.
const HELM_WAIT: &str = "--timeout=3m";
/// Where the hub keeps its log, for nobody here makes volumes.
const VOLUME: &str = include_str!("../../nodes/volume.yaml");

/// Installs the hub in the first cluster and an agent in every one.
pub(super) fn install(directory: &Directory, image: &Path) -> anyhow::Result<()> {
    let began = Instant::now();
    let say = |what: &str| eprintln!("{:6.1} s  {what}", began.elapsed().as_secs_f64());
    let running = Running::of(directory)?;
    let installed = Installed::of(&running)?;
    let image = unpacked(image, &installed.programs())?;
    let installer = Installer { installed };
    for node in running.nodes()? {
        node.import(&image, Some(&format!("{REGISTRY}/tributary")))?;
    }
    say("every node has the image");
    installer.certificates()?;
    let planes = running.planes();
    for plane in &planes {
        installer.prepare(plane)?;
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
struct Installer<'a> {
    installed: Installed<'a>,
}

impl Installer<'_> {
    fn certs(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let mut certs = Command::new(self.installed.program(HUB));
        printed(certs.arg("certs").args(arguments)).map(drop)
    }

    /// An authority, and a certificate for everybody.
    fn certificates(&self) -> anyhow::Result<()> {
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

    /// What every cluster has before a program of ours.
    fn prepare(&self, plane: &ControlPlane<'_>) -> anyhow::Result<()> {
        let namespace = format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAMESPACE}, \
             labels: {{pod-security.kubernetes.io/enforce: restricted}}}}}}"
        );
        plane.apply(&namespace, "namespace.yaml")?;
        self.secret(plane, "tributary-agent-tls", &plane.name)?;
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

    fn hub(&self, plane: &ControlPlane<'_>) -> anyhow::Result<()> {
        let volume = self.installed.volume();
        fs::create_dir_all(&volume).with_context(|| format!("cannot create {}", volume.display()))?;
        let text = VOLUME
            .replace("@PATH@", &volume.to_string_lossy())
            .replace("@NODE@", &HUB_NODE.name());
        plane.apply(&text, "volume.yaml")?;
        self.secret(plane, "tributary-hub-tls", "hub")?;
        let address = format!("address={}:{HUB_PORT}", self.installed.hub_host());
        let port = format!("service.nodePort={HUB_PORT}");
        let registry = format!("image.registry={REGISTRY}");
        let values = ["service.type=NodePort", &port, &address, &registry];
        self.helm(plane, "hub", &values)
    }

    fn agent(&self, plane: &ControlPlane<'_>) -> anyhow::Result<()> {
        let hubs = format!("hubs={{https://{}:{HUB_PORT}}}", self.installed.hub_host());
        let ports = format!("networkPolicy.hubPorts={{{HUB_PORT}}}");
        let registry = format!("image.registry={REGISTRY}");
        self.helm(plane, "agent", &[&hubs, &ports, &registry])
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
