//! `cargo sim mutants`: every small change of the pure rooms, and which ones no unit test sees.
//!
//! * `list.rs`: cargo-mutants and its list. `judge.rs`: the tests that a mutant is shown to.
//! * `report.rs`: the table.
//!
//! All mutants are in one build, as `variants` makes it.

pub mod args;
mod judge;
mod list;
mod report;

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZero,
    time::Instant,
};

use anyhow::bail;
use args::Arguments;
use futures::{StreamExt, stream};
use judge::{Fate, Judge};
use list::Mutant;
use report::MutantResult;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    Number, UNCHANGED,
    build::{TestTarget, Wanted, build},
    copy::Copy,
    plan::Variant,
    record::Record,
    workspace,
};

/// File of the results.
const RECORD: &str = "mutants.jsonl";
/// Mutants between two lines of progress.
const PROGRESS: usize = 50;

/// Runs what the command line asks for.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let all = list::all(&workspace())?;
    let of = all.len();
    let mutants = list::chosen(all, &arguments.rooms, arguments.sample, arguments.seed)?;
    if arguments.list {
        mutants.iter().for_each(|mutant| println!("{}", mutant.name));
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            ran = judge_all(&mutants, arguments, of) => return ran,
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminate.recv() => {}
        }
        bail!("stopped; the working tree was not touched, and --resume goes on from here")
    })
}

async fn judge_all(mutants: &[Mutant], arguments: &Arguments, of: usize) -> anyhow::Result<()> {
    let began = Instant::now();
    let copy = Copy::open(&workspace())?;
    let question = format!(
        "mutants {:?} {:?} {}",
        arguments.rooms, arguments.sample, arguments.seed
    );
    let (mut record, known) = Record::open(
        &copy.record(RECORD),
        &copy.fingerprint(&question)?,
        arguments.resume,
    )?;
    let known = known
        .into_iter()
        .map(|outcome: MutantResult| (outcome.mutant.clone(), outcome));
    let mut outcomes: BTreeMap<String, MutantResult> = known.collect();
    let numbered: Vec<(Number, &Mutant)> = (UNCHANGED + 1..).zip(mutants).collect();
    let variants = numbered.iter().map(|(number, mutant)| {
        let edits = vec![(mutant.file.clone(), mutant.edit(copy.workspace())?)];
        Ok(Variant {
            number: *number,
            edits,
        })
    });
    let variants = variants.collect::<anyhow::Result<Vec<_>>>()?;
    eprintln!("building the product with {} mutants in it", variants.len());
    let built = build(&copy, variants, &wanted(mutants)).await?;
    eprintln!("built after {} s", began.elapsed().as_secs());
    let mut asked = Vec::new();
    for (number, mutant) in numbered {
        let fate = match number {
            number if built.refused.contains_key(&number) => Fate::Refused,
            number if built.unfit.contains_key(&number) => Fate::Unfit,
            number => {
                asked.push((number, mutant));
                continue;
            }
        };
        outcomes.insert(mutant.name.clone(), outcome(mutant, fate));
    }
    asked.retain(|(_, mutant)| !outcomes.contains_key(&mutant.name));
    let ones: Vec<&Mutant> = asked.iter().map(|(_, mutant)| *mutant).collect();
    let judge = &Judge::new(&built, &ones).await?;
    let judged = stream::iter(asked).map(async |(number, mutant)| {
        let fate = judge.judge(mutant, number).await?;
        anyhow::Ok(outcome(mutant, fate))
    });
    let at_once = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut judged = judged.buffer_unordered(at_once).enumerate();
    while let Some((number, judged)) = judged.next().await {
        let judged = judged?;
        record.add(&judged)?;
        if number % PROGRESS == 0 {
            eprintln!("{number} of {} after {} s", ones.len(), began.elapsed().as_secs());
        }
        outcomes.insert(judged.mutant.clone(), judged);
    }
    let outcomes: Vec<MutantResult> = outcomes.into_values().collect();
    println!(
        "{}",
        report::text(&outcomes, arguments.sample.map(|_| of), began.elapsed())
    );
    Ok(())
}

fn outcome(mutant: &Mutant, fate: Fate) -> MutantResult {
    MutantResult {
        mutant: mutant.name.clone(),
        room: mutant.room().0,
        fate,
    }
}

fn wanted(mutants: &[Mutant]) -> Wanted {
    let packages: BTreeSet<&String> = mutants.iter().map(|mutant| &mutant.package).collect();
    let tests = packages.into_iter().map(|package| TestTarget {
        package: package.clone(),
        target: None,
    });
    Wanted {
        tests: tests.collect(),
        simulations: Vec::new(),
    }
}
