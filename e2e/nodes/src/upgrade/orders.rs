//! Owns: from an earlier commit, installed by its own manifests, to what is here, by ours: the hub first, or the agents.
//! Never: builds an image of what is here.

use std::{fs, path::Path};

use anyhow::{Context, ensure};

use super::{
    previous::{Previous, rolled_out},
    steps::{Step, under_requests},
};
use crate::{
    control::ControlPlane,
    install::{Installer, REPOSITORY},
    installed::{AGENT, HUB, Installed, NAMESPACE},
    layout::Directory,
    running::Running,
};
use advice::{NODES_DOWN, NODES_UP};
use cluster::charts::{self, Charts};

/// Programs to replace first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Order {
    /// The hub, then an agent after the other.
    HubFirst,
    /// The agents, that of the hub's cluster last, then the hub.
    AgentsFirst,
}

/// Installs the programs of an earlier commit and puts ours in their place while requests go on.
pub(crate) fn upgrade(
    directory: &Directory,
    from: &str,
    order: Order,
    image: &Path,
    requests: u32,
) -> anyhow::Result<()> {
    let running = Running::of(directory)?;
    let installed = Installed::of(&running)?;
    let planes = running.planes();
    planes.iter().try_for_each(nothing_is_there)?;
    let installer = Installer {
        installed: &installed,
        repository: REPOSITORY,
    };
    let charts = Charts::new()?;
    let previous = Previous::of(from)?;
    previous.install(&installer)?;
    println!("{} runs in all clusters", previous.revision);
    installer.image(image)?;
    let hub = Step::new("a new hub", || new_hub(&charts, &installer, &planes[0]));
    let agents = planes.iter().rev().map(|plane| {
        let what = format!("a new agent in {}", plane.name);
        Step::new(what, || new_agent(&charts, &installer, plane))
    });
    let steps: Vec<Step<'_>> = match order {
        Order::HubFirst => [hub].into_iter().chain(agents).collect(),
        Order::AgentsFirst => agents.chain([hub]).collect(),
    };
    under_requests(&running, requests, &steps)?;
    let members = installed.member(&["list"])?;
    print!("{members}");
    println!("from {} to what is here: no request was lost", previous.revision);
    Ok(())
}

/// Two installations would be one.
pub(super) fn nothing_is_there(plane: &ControlPlane<'_>) -> anyhow::Result<()> {
    let there = [
        "get",
        "namespace",
        NAMESPACE,
        "--ignore-not-found",
        "--output=name",
    ];
    ensure!(
        plane.kubectl(&there)?.trim().is_empty(),
        "Tributary is in {} already, and this begins with another one; run `{NODES_DOWN}` and `{NODES_UP}`",
        plane.name
    );
    Ok(())
}

fn new_hub(charts: &Charts, installer: &Installer<'_>, plane: &ControlPlane<'_>) -> anyhow::Result<()> {
    apply(charts, plane, "crds", &[])?;
    apply(charts, plane, "hub", &installer.hub_values())?;
    rolled_out(plane, &format!("statefulset/{HUB}"))?;
    installer.installed.in_session()
}

fn new_agent(charts: &Charts, installer: &Installer<'_>, plane: &ControlPlane<'_>) -> anyhow::Result<()> {
    apply(charts, plane, "crds", &[])?;
    // The manifests read the hub's address from a ConfigMap, which the earlier ones had too.
    let values = installer.agent_values();
    let values: Vec<String> = values
        .into_iter()
        .filter(|value| !value.starts_with("hubs="))
        .collect();
    apply(charts, plane, "agent", &values)?;
    rolled_out(plane, &format!("deployment/{AGENT}"))
}

/// Applies the plain manifests of a chart, rendered with what a user changes in them.
fn apply(charts: &Charts, plane: &ControlPlane<'_>, chart: &str, values: &[String]) -> anyhow::Result<()> {
    let plain = format!("deploy/manifests/{chart}.values.yaml");
    let mut arguments = vec!["--skip-tests", "--values", &plain];
    for value in values {
        arguments.extend(["--set", value]);
    }
    let text = charts.render(chart, &arguments)?;
    let path = plane.directory.join(format!("{chart}.yaml"));
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    plane
        .kubectl(&["apply", "--filename", &path.display().to_string()])
        .with_context(|| {
            format!(
                "the manifests of {} in {}",
                charts::root().join(plain).display(),
                plane.name
            )
        })
        .map(drop)
}
