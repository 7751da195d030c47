//! Owns: showing faults of hub and agent to what is asked on nodes: each must turn its row red, and none the programs as
//! they are.
//! Never: changes the working tree, or the image that users get.

mod fault;
pub(super) mod image;
mod programs;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use anyhow::{Context, bail, ensure};

use self::{
    fault::{Fault, Program},
    programs::Programs,
};
use super::{
    churn,
    layout::Directory,
    names,
    row::{Asked, Row, Wrong},
    running::Running,
    traffic,
};
use variants::{
    Number,
    build::{Wanted, build},
    copy::Copy,
    workspace,
};

/// Time within which right answers are there, as the programs without a fault show first.
const PATIENCE: Duration = Duration::from_secs(45);

/// A fault with its number, and the program that has it.
type Numbered = (Program, Number, Fault);

/// Builds hub and agent with all faults.
pub(super) fn build_all() -> anyhow::Result<()> {
    built(&fault::all(&workspace())?).map(drop)
}

/// Builds hub and agent with all faults, and shows those with these names, or all.
pub(super) fn planted(directory: &Directory, names: &[String]) -> anyhow::Result<()> {
    let faults = fault::all(&workspace())?;
    for name in names {
        let known = faults.iter().any(|(_, fault)| fault.name == *name);
        ensure!(known, "there is no fault {name} in e2e/planted/nodes");
    }
    let running = Running::of(directory)?;
    let mut programs = Programs::installed(&running)?;
    let mut built = built(&faults)?;
    for program in Program::ALL {
        let path = built.remove(program.name());
        let path = path.with_context(|| format!("cargo built no {}", program.name()))?;
        let archive = directory
            .path()
            .join(format!("planted-{}.oci.tar", program.name()));
        image::write(program.image(), &path, &archive)?;
        for node in running.nodes()? {
            node.import(&archive, None)?;
        }
    }
    let shown = show(&running, &mut programs, &chosen(faults, names)?);
    // What was installed is put back, whatever was seen.
    let back = programs.put_back();
    if let (Err(_), Err(error)) = (&shown, &back) {
        eprintln!("{error:#}");
    }
    shown.and(back)
}

/// Those with these names, or all; in the order in which they are shown.
fn chosen(faults: Vec<(Number, Fault)>, names: &[String]) -> anyhow::Result<Vec<Numbered>> {
    let chosen = faults
        .into_iter()
        .filter(|(_, fault)| names.is_empty() || names.contains(&fault.name));
    let chosen = chosen.map(|(number, fault)| Ok((fault.program()?, number, fault)));
    let mut chosen: Vec<Numbered> = chosen.collect::<anyhow::Result<_>>()?;
    chosen.sort_by_key(|(program, number, _)| (*program, *number));
    Ok(chosen)
}

fn show(running: &Running, programs: &mut Programs<'_>, chosen: &[Numbered]) -> anyhow::Result<()> {
    let mut rows: Vec<Row> = Vec::new();
    for (.., fault) in chosen {
        if !rows.contains(&fault.row) {
            rows.push(fault.row);
        }
    }
    for row in rows {
        ask(running, programs, None, row).context("hub and agents without a fault")?;
        println!("green as it should be: {row}: hub and agents without a fault");
    }
    for (program, number, Fault { name, what, row, .. }) in chosen {
        match ask(running, programs, Some((*program, *number)), *row) {
            Ok(()) => bail!("{name} is not seen: {what}"),
            Err(error) if error.is::<Wrong>() => println!("red as it should be: {name}: {error}"),
            Err(error) => return Err(error.context(format!("{name} could not be asked about"))),
        }
    }
    println!("{} of {} faults are seen", chosen.len(), chosen.len());
    Ok(())
}

/// The programs with all faults in them, by name.
fn built(faults: &[(Number, Fault)]) -> anyhow::Result<BTreeMap<&'static str, PathBuf>> {
    eprintln!("building hub and agent with {} faults in them", faults.len());
    let copy = Copy::open(&workspace())?;
    let variants = faults
        .iter()
        .map(|(number, fault)| fault.variant(*number, copy.workspace()));
    let variants = variants.collect::<anyhow::Result<Vec<_>>>()?;
    let wanted = Wanted {
        simulations: Program::ALL.map(Program::name).to_vec(),
        ..Wanted::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let built = runtime.block_on(build(&copy, variants, &wanted))?;
    if let Some((number, why)) = built.unfit.iter().chain(&built.refused).next() {
        bail!("the fault number {number} is not in the build: {why}");
    }
    Ok(built.simulations)
}

/// Asks a row of clusters in which nothing is left of earlier programs.
fn ask(
    running: &Running,
    programs: &mut Programs<'_>,
    fault: Option<(Program, Number)>,
    row: Row,
) -> anyhow::Result<()> {
    let asked = Asked {
        only: Some(row),
        patience: PATIENCE,
    };
    let namespace = match row {
        Row::Names => names::NAMESPACE,
        Row::Churn => churn::NAMESPACE,
        _ => traffic::NAMESPACE,
    };
    programs.choose(fault, namespace)?;
    match row {
        Row::Names => names::names(&running.directory, asked),
        Row::Churn => churn::churn(&running.directory, churn::REQUESTS, 1),
        _ => traffic::traffic(&running.directory, asked),
    }
}
