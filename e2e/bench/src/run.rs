//! Owns: one invocation: prepares the machine's part, plays the shapes one after the other, prints and writes
//! what came out, also when a shape failed.
//! Never: measures by itself.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use shared::tls::install_crypto_provider;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    args::{Arguments, Shape},
    churn,
    cores::{Cores, UsedCores},
    disk::Disk,
    doors, flood, handovers,
    hub::Setup,
    ingest, losses, plot, preview, questions, real, renewals, replay,
    report::{Report, Section},
    restart, retention, storm, storm_agents,
};
use cluster::clusterset::programs;

/// Runs what was asked for.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let arguments = &arguments.resolved();
    let cores = Cores::choose(arguments)?;
    install_crypto_provider()?;
    let directory = directory(arguments)?;
    let disk = Disk::of(&directory)?;
    ensure!(
        !disk.in_memory || arguments.allow_memory_disk,
        "{} lies in memory ({}): nothing would be durable there. Give --directory on a real disk, or measure all \
         the same with --allow-memory-disk",
        directory.display(),
        disk.filesystem
    );
    let programs = match &arguments.programs {
        Some(directory) => programs::take_from(directory)?,
        None => Report::THIS_BUILD.to_owned(),
    };
    let mut report = Report::new(disk, &cores.note, programs);
    let setup = Setup::new(cores, directory.clone())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let played = runtime.block_on(async {
        tokio::select! {
            played = play(&setup, arguments, &mut report.sections) => played,
            stopped = stopped() => stopped,
        }
    });
    drop(runtime);
    report.gather();
    print!("{}", report.table());
    let file = directory.join("load.json");
    report
        .write(&file)
        .with_context(|| format!("cannot write {}", file.display()))?;
    let plots = plot::write(&directory, &report.sections)?;
    println!("\nwritten to {}, {plots} plots beside it", file.display());
    if !arguments.keep {
        remove_data(&directory)?;
    }
    played
}

/// Ctrl-C or SIGTERM: what has been measured is printed, and what was written is removed.
async fn stopped() -> anyhow::Result<()> {
    let mut terminated = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    tokio::select! {
        _ = terminated.recv() => {}
        pressed = tokio::signal::ctrl_c() => pressed.context("cannot wait for Ctrl-C")?,
    }
    bail!("stopped before everything was measured")
}

async fn play(setup: &Setup, arguments: &Arguments, sections: &mut Vec<Section>) -> anyhow::Result<()> {
    let shapes = match &arguments.shapes[..] {
        [] => &Shape::DEFAULT[..],
        shapes if shapes.contains(&Shape::All) => &Shape::ALL[..],
        shapes => shapes,
    };
    let mut failed = Vec::new();
    let runs = u32::max(arguments.runs, 1);
    let wanted = (1..=runs).flat_map(|run| shapes.iter().map(move |&shape| (run, shape)));
    for (run, shape) in wanted {
        eprintln!("run {run} of {runs}: {shape}");
        setup.begin_run(run);
        if let Err(error) = play_one(setup, arguments, shape, sections).await {
            eprintln!("{shape} failed: {error:#}");
            let mut section = Section::begin(format!("{shape}: FAILED"));
            section.note(format!("{error:#}"));
            sections.push(section);
            failed.push(shape.to_string());
        }
    }
    ensure!(
        failed.is_empty(),
        "not everything was measured: {} failed",
        failed.join(", ")
    );
    Ok(())
}

async fn play_one(
    setup: &Setup,
    arguments: &Arguments,
    shape: Shape,
    sections: &mut Vec<Section>,
) -> anyhow::Result<()> {
    setup.cores.place_generator(match shape {
        Shape::Real | Shape::RestartAgent | Shape::Handovers => UsedCores::AllCores,
        _ => UsedCores::OwnCores,
    })?;
    match shape {
        Shape::Ingest => {
            for &bytes in &arguments.fact_bytes {
                sections.push(ingest::measure(setup, arguments, bytes).await?);
            }
        }
        Shape::Churn8 => {
            for &slices in &arguments.slices {
                churn::churn_8(setup, arguments, slices, sections).await?;
            }
        }
        Shape::Replay => sections.push(replay::measure(setup, arguments.events).await?),
        Shape::Retention => {
            let (events, seconds) = (arguments.retained_events, arguments.seconds);
            sections.push(retention::measure(setup, events, seconds).await?);
        }
        Shape::Mesh250 => churn::mesh_250(setup, arguments, false, sections).await?,
        Shape::Mesh250All => churn::mesh_250(setup, arguments, true, sections).await?,
        Shape::Fleet1000 => churn::fleet_1000(setup, arguments, sections).await?,
        Shape::Questions => questions::measure(setup, arguments, sections).await?,
        Shape::Storm => {
            storm::measure(setup, sections).await?;
            if arguments.agents > 0 {
                sections.push(storm_agents::measure(setup, arguments.agents).await?);
            }
        }
        Shape::RestartAgent => {
            for &slices in &arguments.slices {
                restart::measure(setup, arguments, slices, sections).await?;
            }
        }
        Shape::Doors => {
            let size = if arguments.short {
                doors::Size::SHORT
            } else {
                doors::Size::FULL
            };
            sections.push(doors::measure(setup, size, UsedCores::OwnCores).await?);
        }
        Shape::Handovers => sections.push(handovers::measure(setup, arguments).await?),
        Shape::Renewals => sections.push(renewals::measure(setup, arguments).await?),
        Shape::Flood => flood::measure(setup, arguments, sections).await?,
        Shape::Losses => sections.push(losses::measure(setup).await?),
        Shape::Preview => sections.push(preview::measure(arguments.clusters as usize)?),
        Shape::Real => real::measure(setup, arguments, sections).await?,
        // It stands for the others.
        Shape::All => {}
    }
    Ok(())
}

/// A directory of this invocation's own.
fn directory(arguments: &Arguments) -> anyhow::Result<PathBuf> {
    let parent = match &arguments.directory {
        Some(directory) => directory.clone(),
        None => {
            let running = std::env::current_exe().context("this program cannot be found")?;
            let target = running
                .parent()
                .and_then(Path::parent)
                .context("this program lies in no target directory")?;
            target.join("load")
        }
    };
    let name = format!(
        "{}-{}",
        jiff::Zoned::now().strftime("%Y%m%d-%H%M%S"),
        std::process::id()
    );
    let directory = parent.join(name);
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    Ok(directory)
}

/// Leaves the JSON file and the plots alone.
fn remove_data(directory: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let gone = if path.is_dir() {
            std::fs::remove_dir_all(&path)
        } else if path
            .extension()
            .is_some_and(|extension| extension == "json" || extension == "svg")
        {
            Ok(())
        } else {
            std::fs::remove_file(&path)
        };
        gone.with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}
