//! Owns: `cargo demo --nodes`: everything from the programs of nodes to a client that prints who answered, or the same
//! as a check; and that all of it ends.
//! Never: ends clusters that it did not start.

use std::{os::unix::process::CommandExt, process::Stdio, time::Instant};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use shared::process::{Shutdown, Threads, block_on};

use super::{
    address::Families,
    client::Asking,
    configuration::Proxy,
    host,
    layout::{Directory, Layout},
    names,
    programs::Programs,
    readme,
    row::{Asked, Row},
    running::Running,
    state, three_commands, traffic, up,
};
use advice::NODES_DOWN;
use cluster::{
    charts,
    real::{build, module::Module},
};

/// Layout of the demo: enough for one cluster to reach another.
const LAYOUT: Layout = Layout {
    clusters: 2,
    families: Families::Dual,
    proxy: Proxy::Nftables,
};
/// Directory of its image.
const IMAGE: &str = "target/images";
/// Script of the client in a pod.
const CLIENT: &str = "while true; do said=$(nc -w 2 echo.traffic.svc.clusterset.local 80 </dev/null); \
                      echo \"$(date +%T)  ${said:-no answer}\"; sleep 1; done";

/// Starts clusters with nodes, installs Tributary from our image and charts, and shows who answers, until Ctrl-C; as a
/// check it asks everything, takes Tributary off again and looks at what is left. The clusters end with it.
///
/// # Errors
///
/// Says what the machine lacks before anything is built, and refuses if there are clusters already.
pub fn demo(check: bool) -> anyhow::Result<()> {
    let directory = Directory::of_this_workspace();
    host::check()?;
    ensure!(
        !directory.path().exists(),
        "there are clusters already, in {}; run `{NODES_DOWN}`",
        directory.path().display()
    );
    block_on(Threads::Cores, async move {
        let shutdown = Shutdown::default();
        tokio::spawn(shutdown.listen()?);
        let watched = shutdown.clone();
        let demo = move || {
            let shown = Demo::new(watched).run(&directory, check);
            if check && shown.is_err() {
                // Their logs end with them.
                state::show(&directory);
            }
            let ended = directory.remove().context("the clusters did not end");
            shown.and(ended)
        };
        tokio::task::spawn_blocking(demo)
            .await
            .context("the demo broke off")?
    })
}

struct Demo {
    shutdown: Shutdown,
    began: Instant,
}

impl Demo {
    fn new(shutdown: Shutdown) -> Self {
        Self {
            shutdown,
            began: Instant::now(),
        }
    }

    /// A step; none begins after Ctrl-C.
    fn step(&self, what: &str, does: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        ensure!(!self.shutdown.drain().is_cancelled(), "stopped before the end");
        eprintln!("\n=== {:4.0} s  {what}", self.began.elapsed().as_secs_f64());
        does()
    }

    fn run(&self, directory: &Directory, check: bool) -> anyhow::Result<()> {
        self.step("the programs of nodes, minutes if they are not built yet", || {
            Programs::of_this_workspace().build()
        })?;
        self.step("Helm", || build::helm(&Module::of_this_workspace()).map(drop))?;
        self.step("our image, minutes if it is not built yet", image)?;
        self.step("two clusters, three nodes", || up::up(directory, LAYOUT))?;
        self.step("Tributary, by the commands of the README", || {
            let shown = three_commands::joins(directory, &charts::root().join(IMAGE))?;
            if check { readme::compare(&shown) } else { Ok(()) }
        })?;
        if check {
            self.check(directory)
        } else {
            self.step("Services, exported by both", || {
                traffic::traffic(directory, Asked::all(Some(Row::Echo)))
            })?;
            self.watch(directory)
        }
    }

    fn check(&self, directory: &Directory) -> anyhow::Result<()> {
        let all = Asked::all(None);
        self.step("who answers across clusters", || traffic::traffic(directory, all))?;
        self.step("names across clusters", || names::names(directory, all))?;
        self.step("`tributary verify`", || three_commands::verifies(directory))?;
        self.step("removal", || three_commands::leaves(directory))?;
        eprintln!(
            "\nall of it passed in {:.0} s",
            self.began.elapsed().as_secs_f64()
        );
        Ok(())
    }

    /// Until Ctrl-C.
    fn watch(&self, directory: &Directory) -> anyhow::Result<()> {
        eprintln!("\nA pod in c2 asks echo.traffic.svc.clusterset.local; in another terminal try:");
        for hint in HINTS {
            eprintln!("  {hint}");
        }
        eprintln!("Ctrl-C ends the clusters.\n");
        let running = Running::of(directory)?;
        let mut client = client(&running)?;
        tokio::runtime::Handle::current().block_on(async {
            let mut client = client.kill_on_drop(true).spawn().context("cannot run kubectl")?;
            tokio::select! {
                () = self.shutdown.drain().cancelled() => Ok(()),
                ended = client.wait() => bail!("the client in c2 ended: {}", ended?),
            }
        })
    }
}

/// Suggestions for a person.
const HINTS: [&str; 4] = [
    "cargo nodes kubectl c1 --namespace traffic scale deployment/echo --replicas=0",
    "cargo nodes kubectl c1 --namespace traffic delete serviceexport echo",
    "cargo nodes kubectl c2 --namespace traffic get serviceimports",
    "cargo nodes kubectl c1 --namespace tributary-system rollout restart statefulset/tributary-hub",
];

fn image() -> anyhow::Result<()> {
    use tributary_image::{architecture::Architecture, command};
    let architecture = Architecture::of_this_machine()?.to_string();
    let words = [
        "image",
        "build",
        "--quick",
        "--out",
        IMAGE,
        "--architecture",
        &architecture,
    ];
    command::carry_out(&command::Arguments::try_parse_from(words)?)
}

fn client(running: &Running) -> anyhow::Result<tokio::process::Command> {
    let planes = running.planes();
    let asking = Asking {
        plane: planes.last().context("there are clusters")?,
        namespace: traffic::NAMESPACE,
    };
    let pod = asking.pods("client")?.pop().context("no client runs")?;
    let mut client = asking.command(&["exec", &pod.name, "--", "sh", "-c", CLIENT]);
    // In a group of its own: Ctrl-C is for the demo, which ends it.
    client.stdin(Stdio::null()).process_group(0);
    Ok(client.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Arguments;

    #[test]
    fn the_hints_are_understood() {
        for hint in HINTS {
            let words = hint.split_whitespace().skip(1);
            Arguments::try_parse_from(words).expect(hint);
        }
    }
}
