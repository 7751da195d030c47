//! Owns: showing faults of the agent to what is asked on nodes: each must turn its row red, and none the agent as it is.
//! Never: changes the working tree, or the image that users get.

mod fault;
pub(super) mod image;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, bail, ensure};

use super::{
    client::Asking,
    control::ControlPlane,
    installed,
    layout::Directory,
    names,
    row::{Asked, Row, Wrong},
    running::Running,
    traffic,
};
use crate::verify::variants::{
    Number, UNCHANGED, VARIABLE,
    build::{Wanted, build},
    copy::Copy,
    workspace,
};
use fault::Fault;

/// The agent with all faults in it.
const IMAGE: &str = "tributary.local/planted:1";
/// What runs the agent.
const AGENT: &str = "deployment/tributary-agent";
/// The program that has the faults.
const PROGRAM: &str = "tributary-agent";
/// What is right is there within this time, as the agent without a fault shows first.
const PATIENCE: Duration = Duration::from_secs(45);

/// Builds the agent with all faults, and shows those with these names, or all.
pub(super) fn planted(directory: &Directory, names: &[String]) -> anyhow::Result<()> {
    let faults = fault::all(&workspace())?;
    for name in names {
        let known = faults.iter().any(|(_, fault)| fault.name == *name);
        ensure!(known, "there is no fault {name} in e2e/planted/nodes");
    }
    let running = Running::of(directory)?;
    let agent = built(&faults)?;
    let archive = directory.path().join("planted.oci.tar");
    image::write(IMAGE, &agent, &archive)?;
    for node in running.nodes()? {
        node.import(&archive, None)?;
    }
    let chosen = faults
        .iter()
        .filter(|(_, fault)| names.is_empty() || names.contains(&fault.name));
    let chosen: Vec<&(Number, Fault)> = chosen.collect();
    let before = image_of_agents(&running)?;
    let shown = show(&running, &chosen);
    // The agents that were installed are put back, whatever was seen.
    shown.and(change_agents(&running, &before, None))
}

fn show(running: &Running, chosen: &[&(Number, Fault)]) -> anyhow::Result<()> {
    let mut rows: Vec<Row> = Vec::new();
    for (_, fault) in chosen {
        if !rows.contains(&fault.row) {
            rows.push(fault.row);
        }
    }
    for row in rows {
        ask(running, UNCHANGED, row).context("the agent without a fault")?;
        println!("green as it should be: the agent without a fault");
    }
    for (number, Fault { name, what, row, .. }) in chosen {
        match ask(running, *number, *row) {
            Ok(()) => bail!("{name} is not seen: {what}"),
            Err(error) if error.is::<Wrong>() => println!("red as it should be: {name}: {error}"),
            Err(error) => return Err(error.context(format!("{name} could not be asked about"))),
        }
    }
    println!("{} of {} faults are seen", chosen.len(), chosen.len());
    Ok(())
}

fn image_of_agents(running: &Running) -> anyhow::Result<String> {
    let planes = running.planes();
    let plane = planes.first().context("there are clusters")?;
    let image = ".spec.template.spec.containers[0].image";
    let found = system(plane).field(AGENT, image)?;
    found.into_iter().next().context("no agent is installed")
}

fn system<'a>(plane: &'a ControlPlane<'a>) -> Asking<'a> {
    Asking {
        plane,
        namespace: installed::NAMESPACE,
    }
}

/// Gives every cluster an agent with this image, as this variant.
fn change_agents(running: &Running, image: &str, variant: Option<Number>) -> anyhow::Result<()> {
    let chosen = variant.map_or_else(|| format!("{VARIABLE}-"), |number| format!("{VARIABLE}={number}"));
    for plane in &running.planes() {
        let system = system(plane);
        system.kubectl(&["set", "image", AGENT, &format!("agent={image}")])?;
        system.kubectl(&["set", "env", AGENT, &chosen])?;
        system.kubectl(&["rollout", "status", AGENT, "--timeout=120s"])?;
    }
    Ok(())
}

fn built(faults: &[(Number, Fault)]) -> anyhow::Result<PathBuf> {
    eprintln!("building the agent with {} faults in it", faults.len());
    let copy = Copy::open(&workspace())?;
    let variants = faults
        .iter()
        .map(|(number, fault)| fault.variant(*number, copy.workspace()));
    let variants = variants.collect::<anyhow::Result<Vec<_>>>()?;
    let wanted = Wanted {
        simulations: vec![PROGRAM],
        ..Wanted::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut built = runtime.block_on(build(&copy, variants, &wanted))?;
    if let Some((number, why)) = built.unfit.iter().chain(&built.refused).next() {
        bail!("the fault number {number} is not in the build: {why}");
    }
    built.simulations.remove(PROGRAM).context("cargo built no agent")
}

/// Asks a row of clusters in which nothing is left of earlier agents.
fn ask(running: &Running, variant: Number, row: Row) -> anyhow::Result<()> {
    let asked = Asked {
        only: Some(row),
        patience: PATIENCE,
    };
    let namespace = match row {
        Row::Names => names::NAMESPACE,
        _ => traffic::NAMESPACE,
    };
    for plane in running.planes() {
        plane.kubectl(&[
            "delete",
            "namespace",
            namespace,
            "--ignore-not-found",
            "--timeout=120s",
        ])?;
    }
    change_agents(running, IMAGE, Some(variant))?;
    match row {
        Row::Names => names::names(&running.directory, asked),
        _ => traffic::traffic(&running.directory, asked),
    }
}
