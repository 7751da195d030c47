//! Owns: the three commands as a newcomer types them, on clusters with nodes: init, join, export, traffic, verify, leave,
//! uninstall; what each printed, and how long it took.
//! Never: does for the client what a provider's cluster would not.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Instant,
};

use anyhow::{Context, bail, ensure};

use super::{
    control::ControlPlane,
    host,
    install::{REGISTRY, unpacked},
    installed::{HUB_NODE, Installed},
    layout::Directory,
    leave, readme,
    row::{Asked, Row},
    running::Running,
    traffic,
};
use cluster::real::helm::Helm;

/// The hub's volume, because nothing here provisions volumes.
const VOLUME: &str = include_str!("../volume.yaml");
/// A Service to export, and its namespace, which every cluster has.
const SHOP: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}";
const CART: &str = "{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, \
    spec: {selector: {app: cart}, ports: [{port: 80}]}}";

/// Types all of it. An error names the command that failed, with what it said. With `write` the README shows from now on
/// what was printed.
pub(super) fn three_commands(directory: &Directory, image: &Path, write: bool) -> anyhow::Result<()> {
    let shown = joins(directory, image)?;
    if write {
        readme::write(&shown)?;
    }
    traffic::traffic(directory, Asked::all(Some(Row::Echo)))?;
    verifies(directory)?;
    leaves(directory)
}

/// From nothing to a Service that arrived everywhere, by the README's commands; what they printed.
pub(super) fn joins(directory: &Directory, image: &Path) -> anyhow::Result<String> {
    let running = Running::of(directory)?;
    let installed = Installed::of(&running)?;
    let planes = running.planes();
    let [hub, .., last] = planes.as_slice() else {
        bail!("this needs two clusters: cargo nodes up --clusters 2");
    };
    provide(&installed, image, hub)?;
    let home = Newcomer::home(&installed);
    if home.exists() {
        fs::remove_dir_all(&home).with_context(|| format!("cannot remove {}", home.display()))?;
    }
    fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
    let newcomer = Newcomer::new(&installed)?;
    let began = Instant::now();
    let mut shown = String::new();
    let mut types = |line: String| -> anyhow::Result<()> {
        let printed = newcomer.types(&line)?;
        shown.push_str(&format!("$ {line}\n{printed}"));
        Ok(())
    };
    let registry = format!("--image-registry {REGISTRY}");
    let init = format!(
        "tributary init --context {} --service-type NodePort {registry}",
        hub.name
    );
    types(init.clone())?;
    for plane in &planes {
        let name = &plane.name;
        types(format!(
            "tributary join {name} --context {name} --dns yes {registry}"
        ))?;
        plane.apply(SHOP, "shop.yaml")?;
    }
    last.apply(CART, "cart.yaml")?;
    types(format!(
        "tributary export shop/cart --context {} --wait",
        last.name
    ))?;
    types("tributary status".to_owned())?;
    println!(
        "{} clusters are joined after {:.1} s",
        planes.len(),
        began.elapsed().as_secs_f64()
    );
    let again = newcomer.types(&init)?;
    ensure!(
        again.contains("nothing was to do"),
        "the second init changed something: {again}"
    );
    Ok(shown)
}

/// Gives the clusters an image and a volume, which a provider's clusters would have.
fn provide(installed: &Installed<'_>, image: &Path, hub: &ControlPlane<'_>) -> anyhow::Result<()> {
    let image = unpacked(image, &installed.programs())?;
    for node in installed.running.nodes()? {
        node.import(&image, Some(&format!("{REGISTRY}/tributary")))?;
    }
    fs::create_dir_all(installed.volume())?;
    let volume = VOLUME.replace("@PATH@", &installed.volume().to_string_lossy());
    hub.apply(&volume.replace("@NODE@", &HUB_NODE.name()), "volume.yaml")
}

/// `verify` finds a service that answers from every cluster, and one that nobody answers for.
pub(super) fn verifies(directory: &Directory) -> anyhow::Result<()> {
    let running = Running::of(directory)?;
    let installed = Installed::of(&running)?;
    let newcomer = Newcomer::new(&installed)?;
    let printed = newcomer.types("tributary verify traffic/echo")?;
    let planes = running.planes();
    for (from, to) in planes
        .iter()
        .flat_map(|from| planes.iter().map(move |to| (from, to)))
    {
        let row = format!("traffic/echo  {}    {}  ", from.name, to.name);
        ensure!(printed.contains(&row), "no row from {} to {}", from.name, to.name);
    }
    let exporter = &planes.last().context("there are clusters")?.name;
    let broken = newcomer.ends("tributary verify shop/cart", 1)?;
    let told = format!("{exporter} exports it without an endpoint");
    ensure!(broken.contains(&told), "`verify` does not say that {told}");
    for plane in &planes {
        let left = plane.kubectl(&["get", "pods", "-A", "-l", "tributary.dev/verify", "-o", "name"])?;
        ensure!(left.trim().is_empty(), "{} still has {left}", plane.name);
    }
    Ok(())
}

/// The way back, by the commands alone. An error names what is left.
pub(super) fn leaves(directory: &Directory) -> anyhow::Result<()> {
    let running = Running::of(directory)?;
    let installed = Installed::of(&running)?;
    let newcomer = Newcomer::new(&installed)?;
    let planes = running.planes();
    let before = planes
        .iter()
        .map(leave::left)
        .collect::<anyhow::Result<Vec<_>>>()?;
    for plane in planes.iter().rev() {
        newcomer.types(&format!("tributary leave {}", plane.name))?;
    }
    let hub = planes.first().context("there are clusters")?;
    newcomer.types(&format!("tributary uninstall --context {}", hub.name))?;
    leave::volume_ends(hub)?;
    for (plane, before) in planes.iter().zip(before) {
        let left = leave::left(plane)?;
        ensure!(left.is_empty(), "{} still has {}", plane.name, left.join(", "));
        ensure!(!before.is_empty(), "{} had nothing of ours", plane.name);
        println!(
            "{}: {} objects of ours are gone, none is left",
            plane.name,
            before.len()
        );
    }
    Ok(())
}

/// Whoever types, with a home and contexts for all clusters.
struct Newcomer<'a> {
    installed: &'a Installed<'a>,
    home: PathBuf,
    path: String,
    kubeconfigs: String,
}

impl<'a> Newcomer<'a> {
    /// Keys, contexts and Helm's files; in it one comes back.
    fn home(installed: &Installed<'_>) -> PathBuf {
        installed.running.directory.path().join("newcomer")
    }

    fn new(installed: &'a Installed<'a>) -> anyhow::Result<Self> {
        let home = Self::home(installed);
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
        self.ends(line, 0)
    }

    /// Types a line that ends with this code, and returns what it printed to standard output.
    fn ends(&self, line: &str, code: i32) -> anyhow::Result<String> {
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
        ensure!(output.status.code() == Some(code), "`{line}` failed: {progress}");
        Ok(printed)
    }
}
