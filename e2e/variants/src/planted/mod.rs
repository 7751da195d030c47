//! `cargo sim planted`: bugs that a tired engineer would make, and which rings of tests turn red.
//!
//! * `bug.rs`: a bug as a file in `e2e/planted`: which text of the product becomes which other text.
//! * `ring.rs`: the rings that a bug is shown to. `judge.rs`: asks them.
//! * `report.rs`: the table and the verdict.
//!
//! All bugs are in one build, as `variants` makes it. The working tree itself is never changed.

pub mod args;
mod bug;
mod judge;
mod report;
mod ring;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use anyhow::{Context, bail};
use args::Arguments;
use bug::{Bug, Tests};
use judge::{Depth, Judge};
use report::PlantedResult;
use ring::Ring;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    Number, UNCHANGED,
    build::{Built, TestTarget, Wanted, build, build_alone},
    copy::Copy,
    plan::Variant,
    record::Record,
    workspace,
};
use advice::LIST_PLANTED;

/// File of the results.
const RECORD: &str = "planted.jsonl";

/// Runs what the command line asks for. False: a bug is not seen as it should be, or does not apply or build any more.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let directory = if arguments.installation {
        bug::INSTALLATION
    } else {
        bug::PROGRAMS
    };
    let bugs = bug::all(&workspace(), directory)?;
    let chosen = chosen(&bugs, arguments)?;
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
            outcome = plant(&bugs, &chosen, arguments) => return outcome,
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminate.recv() => {}
        }
        bail!("stopped; the working tree was not touched, and --resume goes on from here")
    })
}

fn chosen<'a>(bugs: &'a [Bug], arguments: &Arguments) -> anyhow::Result<Vec<&'a Bug>> {
    let names = &arguments.names;
    if let Some(unknown) = names
        .iter()
        .find(|name| !bugs.iter().any(|bug| bug.name == **name))
    {
        bail!("there is no planted bug {unknown:?}: `{LIST_PLANTED}` names them all");
    }
    let named = |bug: &&Bug| names.is_empty() || names.contains(&bug.name);
    let asked = |bug: &&Bug| !arguments.scenarios_only || bug.scenarios().is_some();
    let chosen: Vec<&Bug> = bugs.iter().filter(named).filter(asked).collect();
    if chosen.is_empty() {
        bail!("none of these bugs names a scenario");
    }
    Ok(chosen)
}

fn depth(arguments: &Arguments) -> Depth {
    if arguments.tests_only || arguments.scenarios_only || arguments.installation {
        Depth {
            tests: !arguments.scenarios_only,
            scenarios: arguments.scenarios_only,
            ..Depth::default()
        }
    } else {
        Depth {
            tests: true,
            worlds: arguments.worlds,
            large_worlds: arguments.large_worlds,
            netsim: arguments.netsim,
            scenarios: true,
            every_ring: arguments.every_tier,
        }
    }
}

/// All bugs are built, whichever are chosen, so that one build serves every question.
async fn plant(bugs: &[Bug], chosen: &[&Bug], arguments: &Arguments) -> anyhow::Result<bool> {
    let began = Instant::now();
    let depth = depth(arguments);
    let copy = Copy::open(&workspace())?;
    let question = format!("planted {depth:?}, installation {}", arguments.installation);
    let (record, known) = Record::open(
        &copy.record(RECORD),
        &copy.fingerprint(&question)?,
        arguments.resume,
    )?;
    let mut run = Run {
        variants: BTreeMap::new(),
        wanted: wanted(bugs, depth),
        depth,
        copy,
        record,
        outcomes: known
            .into_iter()
            .map(|outcome: PlantedResult| (outcome.bug.clone(), outcome))
            .collect(),
    };
    run.apply(bugs)?;
    run.show_all(chosen).await?;
    let outcomes: Vec<(&Bug, PlantedResult)> = chosen
        .iter()
        .map(|bug| {
            Ok((
                *bug,
                run.outcomes
                    .remove(&bug.name)
                    .context("every chosen bug has an outcome")?,
            ))
        })
        .collect::<anyhow::Result<_>>()?;
    let whole = arguments.names.is_empty() && depth.rings().count() == Ring::ALL.len();
    let (text, passed) = report::text(&outcomes, whole, began.elapsed());
    println!("{text}");
    Ok(passed)
}

fn wanted(bugs: &[Bug], depth: Depth) -> Wanted {
    let tests = depth.tests_of(bugs.iter());
    let tests: BTreeSet<TestTarget> = tests.iter().map(Tests::program).collect();
    let simulations = depth.rings().filter_map(|ring| match ring {
        Ring::Tests | Ring::Scenarios => None,
        Ring::Swarm => Some("sim"),
        Ring::Netsim => Some("netsim"),
    });
    Wanted {
        tests: tests.into_iter().collect(),
        simulations: simulations.collect(),
    }
}

struct Run {
    copy: Copy,
    depth: Depth,
    wanted: Wanted,
    variants: BTreeMap<String, Variant>,
    record: Record,
    outcomes: BTreeMap<String, PlantedResult>,
}

impl Run {
    /// Finds the place of every bug in the product.
    fn apply(&mut self, bugs: &[Bug]) -> anyhow::Result<()> {
        for (number, bug) in (UNCHANGED + 1..).zip(bugs) {
            match bug.edits(self.copy.workspace()) {
                Ok(edits) => {
                    self.variants.insert(bug.name.clone(), Variant { number, edits });
                }
                Err(why) => self.note(bug, Err(format!("it does not apply: {why:#}")), None)?,
            }
        }
        Ok(())
    }

    fn note(
        &mut self,
        bug: &Bug,
        sights: Result<ring::Sights, String>,
        alone: Option<String>,
    ) -> anyhow::Result<()> {
        let outcome = PlantedResult {
            bug: bug.name.clone(),
            sights,
            alone,
        };
        eprintln!("{}", outcome.row(bug));
        self.record.add(&outcome)?;
        self.outcomes.insert(bug.name.clone(), outcome);
        Ok(())
    }

    async fn show_all(&mut self, chosen: &[&Bug]) -> anyhow::Result<()> {
        let asked: Vec<&Bug> = chosen
            .iter()
            .copied()
            .filter(|bug| !self.outcomes.contains_key(&bug.name))
            .collect();
        if asked.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        eprintln!("building the product with {} bugs in it", self.variants.len());
        let variants = self.variants.values().cloned().collect();
        let built = build(&self.copy, variants, &self.wanted).await?;
        eprintln!(
            "built after {} s; every ring must pass while no bug is chosen",
            began.elapsed().as_secs()
        );
        let judge = Judge::new(self.copy.workspace(), &built, self.depth)?;
        let green = judge.is_green(&asked).await;
        green.context("without any bug everything must pass; no bug was chosen yet")?;
        eprintln!("it is green after {} s", began.elapsed().as_secs());
        let mut alone = Vec::new();
        for bug in asked {
            let number = self.variants[&bug.name].number;
            match why_alone(&built, number) {
                Some(why) => alone.push((bug, why)),
                None => {
                    let sights = judge.show(bug, number).await?;
                    self.note(bug, Ok(sights), None)?;
                }
            }
        }
        for (bug, why) in alone {
            eprintln!("{}: a build of its own, for {why}", bug.name);
            let sights = match build_alone(&self.copy, &self.variants[&bug.name], &self.wanted).await? {
                Ok(built) => {
                    let judge = Judge::new(self.copy.workspace(), &built, self.depth)?;
                    Ok(judge.show(bug, UNCHANGED).await?)
                }
                Err(errors) => Err(format!("the product does not build with it: {errors}")),
            };
            self.note(bug, sights, Some(why))?;
        }
        Ok(())
    }
}

fn why_alone(built: &Built, number: Number) -> Option<String> {
    let refused = built
        .refused
        .get(&number)
        .map(|why| format!("as a copy it does not compile: {why}"));
    built.unfit.get(&number).cloned().or(refused)
}
