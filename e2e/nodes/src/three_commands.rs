//! Owns: the three commands as a newcomer types them, on clusters with nodes: init, join, export, traffic, leave, uninstall;
//! what each printed, and how long it took.
//! Never: does for the client what a provider's cluster would not.

use std::{fs, path::Path, process::Stdio, time::Instant};

use anyhow::{Context, bail, ensure};

use super::{
    host,
    install::{REGISTRY, unpacked},
    installed::{HUB_NODE, Installed, NAMESPACE},
    layout::Directory,
    row::{Asked, Row},
    running::Running,
    traffic,
};
use cluster::real::helm::Helm;

/// Where the hub keeps its log, for nobody here makes volumes.
const VOLUME: &str = include_str!("../volume.yaml");
/// A Service to export, and its namespace, which every cluster has.
const SHOP: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}";
const CART: &str = "{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, \
    spec: {selector: {app: cart}, ports: [{port: 80}]}}";

/// Types all of it. An error names the command that failed, with what it said.
pub(super) fn three_commands(directory: &Directory, image: &Path) -> anyhow::Result<()> {
    let running = Running::of(directory)?;
    let installed = Installed::of(&running)?;
    let planes = running.planes();
    let [hub, .., last] = planes.as_slice() else {
        bail!("this needs two clusters: cargo nodes up --clusters 2");
    };
    let image = unpacked(image, &installed.programs())?;
    for node in running.nodes()? {
        node.import(&image, Some(&format!("{REGISTRY}/tributary")))?;
    }
    let newcomer = Newcomer::new(&installed)?;
    fs::create_dir_all(installed.volume())?;
    let volume = VOLUME.replace("@PATH@", &installed.volume().to_string_lossy());
    hub.apply(&volume.replace("@NODE@", &HUB_NODE.name()), "volume.yaml")?;
    let began = Instant::now();
    let registry = format!("--image-registry {REGISTRY}");
    newcomer.types(&format!(
        "tributary init --context {} --service-type NodePort {registry}",
        hub.name
    ))?;
    for plane in &planes {
        let name = &plane.name;
        newcomer.types(&format!(
            "tributary join {name} --context {name} --dns yes {registry}"
        ))?;
        plane.apply(SHOP, "shop.yaml")?;
    }
    last.apply(CART, "cart.yaml")?;
    newcomer.types(&format!(
        "tributary export shop/cart --context {} --wait",
        last.name
    ))?;
    newcomer.types("tributary status")?;
    println!(
        "{} clusters are joined after {:.1} s",
        planes.len(),
        began.elapsed().as_secs_f64()
    );
    // Again: nothing is to do.
    let again = newcomer.types(&format!(
        "tributary init --context {} --service-type NodePort {registry}",
        hub.name
    ))?;
    ensure!(
        again.contains("nothing was to do"),
        "the second init changed something: {again}"
    );
    traffic::traffic(directory, Asked::all(Some(Row::Echo)))?;
    for plane in planes.iter().rev() {
        newcomer.types(&format!("tributary leave {}", plane.name))?;
    }
    newcomer.types(&format!("tributary uninstall --context {}", hub.name))?;
    for plane in &planes {
        let left = [
            "get",
            "namespace",
            NAMESPACE,
            "--ignore-not-found",
            "--output=name",
        ];
        let left = plane.kubectl(&left)?;
        ensure!(left.trim().is_empty(), "{} still has {left}", plane.name);
    }
    Ok(())
}

/// Whoever types, with a home and contexts for all clusters.
struct Newcomer<'a> {
    installed: &'a Installed<'a>,
    home: std::path::PathBuf,
    path: String,
    kubeconfigs: String,
}

impl<'a> Newcomer<'a> {
    fn new(installed: &'a Installed<'a>) -> anyhow::Result<Self> {
        let home = installed.running.directory.path().join("newcomer");
        if home.exists() {
            fs::remove_dir_all(&home).with_context(|| format!("cannot remove {}", home.display()))?;
        }
        fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
        let helm = Helm::find()?;
        let tools = helm
            .program()
            .parent()
            .unwrap_or(Path::new("/"))
            .display()
            .to_string();
        let planes = installed.running.planes();
        let kubeconfigs: Vec<String> = planes
            .iter()
            .map(|plane| plane.kubeconfig().display().to_string())
            .collect();
        Ok(Self {
            installed,
            home,
            path: format!("{}:{tools}:{}", installed.programs().display(), host::PATH),
            kubeconfigs: kubeconfigs.join(":"),
        })
    }

    /// Types a line, and returns what it printed to standard output.
    fn types(&self, line: &str) -> anyhow::Result<String> {
        println!("$ {line}");
        let mut shell = self.installed.running.control.command("/usr/bin/timeout");
        shell.args(["600", "/bin/sh", "-c", line]);
        let began = Instant::now();
        let output = Helm::at_home(&mut shell, &self.home)
            .env("PATH", &self.path)
            .env("KUBECONFIG", &self.kubeconfigs)
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::null())
            .output();
        let output = output.context("cannot run nsenter")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (printed, progress) = (text(&output.stdout), text(&output.stderr));
        print!("{progress}{printed}");
        println!("  ({:.1} s)", began.elapsed().as_secs_f64());
        ensure!(output.status.success(), "`{line}` failed: {progress}");
        Ok(printed)
    }
}
