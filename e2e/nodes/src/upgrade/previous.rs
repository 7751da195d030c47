//! Owns: an earlier commit of ours, as its users had it: its programs, built here, and its own manifests.
//! Never: changes the working tree.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail, ensure};

use crate::{
    control::ControlPlane,
    install::Installer,
    installed::{AGENT, CLIENT, HUB, HUB_PORT, NAMESPACE},
    planted::image,
};
use cluster::{charts, real::command::printed};

/// The image in its manifests, which each user replaced.
const IMAGE: &str = "image: tributary:0.1.0";
/// The former type of the hub's Service, for which nothing here gives an address.
const BALANCED: &str = "type: LoadBalancer";
/// The port in it that gets a number on every node.
const PORT: &str = "targetPort: sync";
/// Letters of a commit, enough to tell it from all others.
const REVISION_LETTERS: &str = "--short=12";

/// An earlier commit.
pub(super) struct Previous {
    pub(super) revision: String,
    source: PathBuf,
    target: PathBuf,
}

impl Previous {
    /// The commit that somebody names; its files and its programs stay below `target/previous`.
    pub(super) fn of(name: &str) -> anyhow::Result<Self> {
        let root = charts::root();
        let commit = format!("{name}^{{commit}}");
        let mut git = Command::new("git");
        git.current_dir(&root)
            .args(["rev-parse", REVISION_LETTERS, &commit]);
        let revision = printed(&mut git)
            .with_context(|| format!("{name} is no commit of this repository"))?
            .trim()
            .to_owned();
        let directory = root.join("target/previous").join(&revision);
        let previous = Self {
            source: directory.join("source"),
            target: directory.join("target"),
            revision,
        };
        previous.unpack(&root)?;
        previous.build()?;
        Ok(previous)
    }

    fn unpack(&self, root: &Path) -> anyhow::Result<()> {
        let files = &self.source;
        fs::create_dir_all(files).with_context(|| format!("cannot create {}", files.display()))?;
        let mut git = Command::new("git");
        git.current_dir(root).args(["archive", &self.revision]);
        let mut archive = git
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run git archive")?;
        let mut tar = Command::new("tar");
        tar.arg("-x").arg("-C").arg(files);
        let unpacked = tar
            .stdin(archive.stdout.take().context("git archive prints")?)
            .status()?;
        let archived = archive.wait()?;
        ensure!(
            unpacked.success() && archived.success(),
            "cannot unpack {}",
            self.revision
        );
        Ok(())
    }

    fn build(&self) -> anyhow::Result<()> {
        eprintln!("building the programs of {}", self.revision);
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&self.source)
            .args([
                "build",
                "--quiet",
                "--locked",
                "--package",
                HUB,
                "--package",
                AGENT,
            ])
            .arg("--target-dir")
            .arg(&self.target)
            .stdin(Stdio::null());
        let status = cargo.status().context("cannot run cargo")?;
        if !status.success() {
            bail!("the programs of {} do not build: {status}", self.revision);
        }
        Ok(())
    }

    fn program(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(name)
    }

    /// Installs it in all clusters, as its own guide said: by kubectl, with the image and the port changed.
    pub(super) fn install(&self, installer: &Installer<'_>) -> anyhow::Result<()> {
        let installed = installer.installed;
        let running = installed.running;
        fs::create_dir_all(installed.programs())?;
        // Its hub's program also had the commands of operators.
        fs::copy(self.program(HUB), installed.program(CLIENT))?;
        for name in [HUB, AGENT] {
            fs::copy(self.program(name), installed.program(name))?;
            let archive = running.directory.path().join(format!("{name}.oci.tar"));
            image::write(&self.image(name), &self.program(name), &archive)?;
            for node in running.nodes()? {
                node.import(&archive, None)?;
            }
        }
        installer.certificates()?;
        let planes = running.planes();
        for (number, plane) in planes.iter().enumerate() {
            installer.prepare(plane)?;
            let hub = format!("--from-literal=hub={}", installed.hub_url());
            let map = ["create", "configmap", AGENT, "--namespace", NAMESPACE, &hub];
            plane.kubectl(&map)?;
            self.apply(plane, "crds")?;
            if number == 0 {
                installer.hub_needs(plane)?;
                self.apply(plane, "hub")?;
            }
            self.apply(plane, "agent")?;
        }
        planes.iter().enumerate().try_for_each(|(number, plane)| {
            if number == 0 {
                rolled_out(plane, &format!("statefulset/{HUB}"))?;
            }
            rolled_out(plane, &format!("deployment/{AGENT}"))
        })
    }

    fn image(&self, program: &str) -> String {
        format!("tributary.local/{program}:{}", self.revision)
    }

    /// Applies a directory of its manifests, changed as a user would have.
    fn apply(&self, plane: &ControlPlane<'_>, directory: &str) -> anyhow::Result<()> {
        let changed = plane.directory.join("previous").join(directory);
        fs::create_dir_all(&changed)?;
        let manifests = self.source.join("deploy").join(directory);
        let image = self.image(if directory == "hub" { HUB } else { AGENT });
        for entry in fs::read_dir(&manifests).with_context(|| {
            format!(
                "{} has no {}: it was installed in another way",
                self.revision,
                manifests.display()
            )
        })? {
            let entry = entry?;
            let text = adapted(&fs::read_to_string(entry.path())?, &image);
            fs::write(changed.join(entry.file_name()), text)?;
        }
        let path = changed.display().to_string();
        plane
            .kubectl(&["apply", "--server-side", "--filename", &path])
            .map(drop)
    }
}

/// A manifest with this image, and with a port of every node instead of a balancer.
fn adapted(text: &str, image: &str) -> String {
    text.replace(IMAGE, &format!("image: {image}"))
        .replace(BALANCED, "type: NodePort")
        .replace(PORT, &format!("{PORT}\n    nodePort: {HUB_PORT}"))
}

/// Waits until all pods of this are new and ready.
pub(super) fn rolled_out(plane: &ControlPlane<'_>, what: &str) -> anyhow::Result<()> {
    let status = [
        "rollout",
        "status",
        what,
        "--namespace",
        NAMESPACE,
        "--timeout=180s",
    ];
    plane.kubectl(&status).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_changed_where_its_user_changed_it() {
        let text = "  type: LoadBalancer\n    targetPort: sync\n        image: tributary:0.1.0\n";
        assert_eq!(
            adapted(text, "tributary.local/tributary-hub:1"),
            "  type: NodePort\n    targetPort: sync\n    nodePort: 30843\n        image: tributary.local/tributary-hub:1\n"
        );
        assert_eq!(adapted("kind: Role\n", "x"), "kind: Role\n");
    }
}
