//! Owns: a newcomer's installation: the lines of the guide, typed on clusters that run, and the page of what they
//! printed. What a provider's clusters have and these lack (volumes, a load balancer, a registry) is given by hand, and
//! the page says so.
//! Never: installs by any line that the guide does not have.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail, ensure};

use super::{
    control::ControlPlane,
    guide::{self, Listing, Page, Place, Said, Words},
    host,
    install::{REGISTRY, unpacked},
    installed::{HUB, HUB_NODE, Installed, NAMESPACE},
    layout::Directory,
    running::Running,
};
use advice::{NODES_DOWN, NODES_UP};
use cluster::{charts, real::helm::Helm};

/// The guide.
const GUIDE: &str = "deploy/README.md";
/// The hub's volume, because nothing here provisions volumes.
const VOLUME: &str = include_str!("../volume.yaml");
/// Longest time for a line, in seconds; the slowest waits for pods.
const LINE_WAIT: &str = "300";

/// Types the guide's lines and writes the page; it is written as far as it came, should a line fail.
pub(super) fn transcript(clusters: &Directory, image: &Path, page: &Path) -> anyhow::Result<()> {
    let guide = charts::root().join(GUIDE);
    let text = fs::read_to_string(&guide).with_context(|| format!("cannot read {}", guide.display()))?;
    let listings = guide::listings(&text)?;
    let running = Running::of(clusters)?;
    for plane in running.planes() {
        let there = plane.kubectl(&[
            "get",
            "namespace",
            NAMESPACE,
            "--ignore-not-found",
            "--output=name",
        ])?;
        ensure!(
            there.trim().is_empty(),
            "{} has Tributary already: run `{NODES_DOWN}` and `{NODES_UP}` first",
            plane.name
        );
    }
    let installed = Installed::of(&running)?;
    let image = unpacked(image, &installed.programs())?;
    for node in running.nodes()? {
        node.import(&image, Some(&format!("{REGISTRY}/tributary")))?;
    }
    let newcomer = Newcomer::new(&installed)?;
    newcomer.volume()?;
    let mut written = Page::new(&newcomer.title());
    let typed = newcomer.types(&listings, &mut written);
    fs::write(page, written.to_string()).with_context(|| format!("cannot write {}", page.display()))?;
    typed?;
    println!(
        "every line of {GUIDE} did what it should; {} has them",
        page.display()
    );
    Ok(())
}

/// Whoever types.
struct Newcomer<'a> {
    installed: &'a Installed<'a>,
    planes: Vec<ControlPlane<'a>>,
    words: Words,
    /// Working directory of the lines: their output is here, their input is the checkout's.
    place: PathBuf,
    path: String,
}

impl<'a> Newcomer<'a> {
    fn new(installed: &'a Installed<'a>) -> anyhow::Result<Self> {
        let running = installed.running;
        let place = running.directory.path().join("transcript");
        if place.exists() {
            fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
        }
        fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
        symlink(charts::root().join("deploy"), place.join("deploy"))?;
        let helm = Helm::find()?;
        let kubectl = running.programs.kubectl();
        let tools = [helm.program(), &kubectl].map(|program| program.parent().unwrap_or(Path::new("/")));
        let path = format!(
            "{}:{}:{}:{}",
            installed.programs().display(),
            tools[0].display(),
            tools[1].display(),
            host::PATH
        );
        Ok(Self {
            installed,
            planes: running.planes(),
            words: Words {
                registry: REGISTRY.to_owned(),
                host: installed.hub_host(),
            },
            place,
            path,
        })
    }

    fn title(&self) -> String {
        let names: Vec<&str> = self.planes.iter().map(|plane| plane.name.as_str()).collect();
        let Words { registry, host } = &self.words;
        format!(
            "# An installation, {}\n\n\
             `cargo nodes transcript FILE`: the lines of [{GUIDE}](../../{GUIDE}), typed on clusters with nodes ({}), and \
             what each printed.\n\
             The first cluster has the hub, and every one is a member.\n\
             In the place of a reader's words: `REGISTRY` is {registry}, `HOST` is {host} and an address, so that \
             `--dns-name` is `--ip`; `east` is the name of the member.\n\
             Given by hand, because these clusters have no provider: the image on every node, a volume for the hub's \
             log, and the address of its load balancer.",
            jiff::Zoned::now().strftime("%-d %B %Y"),
            names.join(", ")
        )
    }

    /// The volume that a provider would make.
    fn volume(&self) -> anyhow::Result<()> {
        let volume = self.installed.volume();
        fs::create_dir_all(&volume).with_context(|| format!("cannot create {}", volume.display()))?;
        let text = VOLUME
            .replace("@PATH@", &volume.to_string_lossy())
            .replace("@NODE@", &HUB_NODE.name());
        self.hub_cluster().apply(&text, "volume.yaml")
    }

    fn hub_cluster(&self) -> &ControlPlane<'a> {
        &self.planes[usize::from(HUB_NODE.cluster) - 1]
    }

    /// The address that a provider's load balancer would write, once the Service is there.
    fn load_balancer(&self, page: &mut Page) -> anyhow::Result<()> {
        let plane = self.hub_cluster();
        let service = [
            "get",
            "service",
            HUB,
            "--namespace",
            NAMESPACE,
            "--output=jsonpath={.spec.type}{.status.loadBalancer}",
        ];
        if plane.kubectl(&service).ok().as_deref() != Some("LoadBalancer{}") {
            return Ok(());
        }
        let host = &self.words.host;
        let status = format!(r#"{{"status":{{"loadBalancer":{{"ingress":[{{"ip":"{host}"}}]}}}}}}"#);
        let patch = [
            "patch",
            "service",
            HUB,
            "--namespace",
            NAMESPACE,
            "--subresource=status",
            "--type=merge",
        ];
        plane.kubectl(&[&patch[..], &["--patch", &status]].concat())?;
        page.say(&format!(
            "By hand: the load balancer of the Service {HUB} has the address {host}."
        ));
        Ok(())
    }

    fn types(&self, listings: &[Listing], page: &mut Page) -> anyhow::Result<()> {
        for listing in listings {
            page.begin(listing);
            match listing.place {
                Place::Registry => page.say(&format!(
                    "Not typed: there is no registry; every node was given the image that `{}` makes.",
                    listing.lines.first().map_or("", String::as_str)
                )),
                Place::Once => self.listing(listing, None, "", page)?,
                Place::ForEachMember => {
                    for plane in &self.planes {
                        self.listing(listing, None, &plane.name, page)?;
                    }
                }
                Place::HubCluster => self.listing(listing, Some(self.hub_cluster()), "", page)?,
                Place::EveryCluster | Place::EachMember => {
                    for plane in &self.planes {
                        self.listing(listing, Some(plane), &plane.name, page)?;
                    }
                }
            }
            self.load_balancer(page)?;
        }
        Ok(())
    }

    /// Types the lines of one listing, in a cluster or for a member; a line that fails ends it.
    fn listing(
        &self,
        listing: &Listing,
        plane: Option<&ControlPlane<'_>>,
        member: &str,
        page: &mut Page,
    ) -> anyhow::Result<()> {
        if let Some(plane) = plane {
            page.say(&format!("In {}:", plane.name));
        }
        let cluster = plane.map_or("", |plane| &plane.name);
        let mut said = Vec::new();
        let mut failed = None;
        for line in &listing.lines {
            let line = self.words.typed(line, member)?;
            if page.repeats(cluster, &line) {
                page.say(&format!("Typed there before: `{line}`"));
                continue;
            }
            eprintln!("{cluster}$ {line}");
            let (printed, succeeded) = self.line(&line, plane)?;
            if !succeeded {
                failed = Some(format!("{line}\n{printed}"));
            }
            said.push(Said { line, printed });
            if failed.is_some() {
                break;
            }
        }
        page.listing(&said);
        match (failed, plane) {
            (None, _) => Ok(()),
            (Some(failed), None) => bail!("a line of {GUIDE} failed: {failed}"),
            (Some(failed), Some(plane)) => bail!("a line of {GUIDE} failed in {}: {failed}", plane.name),
        }
    }

    /// A shell's output for a line, and whether it ended well.
    fn line(&self, line: &str, plane: Option<&ControlPlane<'_>>) -> anyhow::Result<(String, bool)> {
        let script = format!("cd '{}' && exec 2>&1 && {line}", self.place.display());
        let mut shell = self.installed.running.control.command("/usr/bin/timeout");
        shell.args([LINE_WAIT, "/bin/sh", "-c", &script]);
        Helm::at_home(&mut shell, &self.place.join("home")).env("PATH", &self.path);
        if let Some(plane) = plane {
            shell.env("KUBECONFIG", plane.kubeconfig());
        }
        let output = output(&mut shell)?;
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        Ok((self.without_places(&printed), output.status.success()))
    }

    /// A page says nothing of the machine that it was made on.
    fn without_places(&self, printed: &str) -> String {
        let place = format!("{}/", self.place.display());
        let root = format!("{}/", charts::root().display());
        printed.replace(&place, "").replace(&root, "")
    }
}

fn output(shell: &mut Command) -> anyhow::Result<std::process::Output> {
    let output = shell.stdin(Stdio::null()).output();
    output.context("cannot run nsenter")
}
