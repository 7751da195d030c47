//! `cargo sim planted`: bugs that a tired engineer would make, planted one by one, and whether the tests turn red.
//!
//! * `bug.rs`: a bug as a file in `e2e/planted`: which text of the product becomes which other text.
//! * `copy.rs`: a copy of the working tree's tracked files, in which a bug is planted and taken away again.
//! * `judge.rs`: builds and runs tests that may catch it; `swarm.rs`: plays the swarm against it.
//! * `report.rs`: the table and the verdict.
//!
//! The working tree itself is never changed.

pub mod args;
mod bug;
mod copy;
mod judge;
mod report;
mod swarm;

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, bail, ensure};

use args::Arguments;
use bug::Bug;
use copy::Copy;
use judge::{Judge, Verdict};
use report::Outcome;
use swarm::Sight;
use tokio::signal::unix::{SignalKind, signal};

/// The root of the workspace.
fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap_or(root)
}

/// Runs what the command line asks for. False: a bug survived, or does not apply or build any more.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let bugs = chosen(bug::all(&workspace())?, &arguments.names)?;
    if arguments.list {
        println!("{}", report::list(&bugs));
        return Ok(true);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            outcome = plant_all(&bugs, !arguments.tests_only) => return outcome,
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminate.recv() => {}
        }
        bail!("stopped; the working tree was not touched, and the next run puts its copy in order")
    })
}

fn chosen(bugs: Vec<Bug>, names: &[String]) -> anyhow::Result<Vec<Bug>> {
    if let Some(unknown) = names
        .iter()
        .find(|name| !bugs.iter().any(|bug| bug.name == **name))
    {
        bail!("there is no planted bug {unknown:?}: `cargo sim planted --list` names them all");
    }
    let wanted = |bug: &Bug| names.is_empty() || names.contains(&bug.name);
    Ok(bugs.into_iter().filter(wanted).collect())
}

async fn plant_all(bugs: &[Bug], swarm: bool) -> anyhow::Result<bool> {
    let began = Instant::now();
    let copy = Copy::open(&workspace())?;
    copy.heal()?;
    let judge = Judge::new(&copy);
    eprintln!("the copy without a bug: building it and running its tests");
    judge
        .is_green(bugs)
        .await
        .context("without any bug the tests must pass; nothing was planted")?;
    if swarm {
        let sight = swarm::play(&copy).await?;
        ensure!(
            sight == Sight::Nothing,
            "without any bug the swarm must pass, but: {}",
            sight.words()
        );
    }
    eprintln!("it is green after {} s", began.elapsed().as_secs());
    let mut outcomes = Vec::new();
    for (number, bug) in (1..).zip(bugs) {
        let began = Instant::now();
        let (tests, sight) = plant(&copy, &judge, bug, swarm).await?;
        let took = began.elapsed();
        let outcome = Outcome {
            bug,
            tests,
            sight,
            took,
        };
        eprintln!("{number} of {}: {}", bugs.len(), outcome.line());
        outcomes.push(outcome);
    }
    copy.heal()?;
    println!("{}", report::text(&outcomes, began.elapsed()));
    Ok(outcomes.iter().all(Outcome::is_caught))
}

async fn plant(copy: &Copy, judge: &Judge<'_>, bug: &Bug, swarm: bool) -> anyhow::Result<(Verdict, Sight)> {
    copy.heal()?;
    if let Err(why) = bug.plant(copy.root()) {
        return Ok((Verdict::DoesNotApply(why), Sight::NotAsked));
    }
    let verdict = judge.judge(bug).await?;
    let sight = match swarm && verdict.was_built() {
        true => swarm::play(copy).await?,
        false => Sight::NotAsked,
    };
    Ok((verdict, sight))
}
