//! Owns: running the unit tests of a mutant's package, the room's own first, and how that ended.
//! Never: builds.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use crate::{
    Number, UNCHANGED,
    build::{Built, TestTarget},
    program::{Ended, Selection},
};

use super::list::Mutant;

/// Tests of a mutant may take so much longer than those of the product, ...
const SLOWER_MAX: u32 = 5;
/// ... and always so long.
const TIME_MIN: Duration = Duration::from_secs(20);
/// The longest that the tests of the product take.
const TIME_MAX: Duration = Duration::from_secs(10 * 60);

/// The fate of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Fate {
    /// The compiler refuses it.
    Refused,
    /// It does not fit into a build with others.
    Unfit,
    /// A test failed.
    Seen,
    /// The tests did not come to an end.
    Timeout,
    /// Every test passed.
    Survived,
}

/// A package and the part of its tests: those of a module, or all others.
type TestPart = (String, String, bool);

/// Runs the tests of mutants.
pub(super) struct Judge<'a> {
    built: &'a Built,
    longest: BTreeMap<TestPart, Duration>,
}

fn selection(module: &str, own: bool) -> Selection<'_> {
    let (filter, but) = if own { (module, "") } else { ("", module) };
    Selection {
        filter,
        but,
        one_thread: true,
        first_failure: true,
    }
}

/// The name that all tests of a room begin with, or have in them.
fn module(mutant: &Mutant) -> String {
    format!("{}::", mutant.room().1)
}

fn in_words((package, module, own): &TestPart) -> String {
    if *own {
        format!("{package}, tests of {module}")
    } else {
        format!("{package}, all tests but those of {module}")
    }
}

impl<'a> Judge<'a> {
    /// A judge for these mutants. The tests must pass while none of them is chosen; how long they take is measured.
    pub(super) async fn new(built: &'a Built, mutants: &[&Mutant]) -> anyhow::Result<Self> {
        let mut judge = Self {
            built,
            longest: BTreeMap::new(),
        };
        for mutant in mutants {
            for own in [true, false] {
                let part = (mutant.package.clone(), module(mutant), own);
                if judge.longest.contains_key(&part) {
                    continue;
                }
                let began = Instant::now();
                let ended = judge.run(&part, UNCHANGED, TIME_MAX).await?;
                ensure!(
                    ended == Ended::Passed,
                    "without a mutant the tests must pass; {}: {ended}",
                    in_words(&part)
                );
                let longest = TIME_MIN.max(began.elapsed() * SLOWER_MAX);
                eprintln!("{}: {:.1} s", in_words(&part), began.elapsed().as_secs_f64());
                judge.longest.insert(part, longest);
            }
        }
        Ok(judge)
    }

    /// Runs the tests of the room, and then the others of the package, until one fails.
    pub(super) async fn judge(&self, mutant: &Mutant, number: Number) -> anyhow::Result<Fate> {
        for own in [true, false] {
            let part = (mutant.package.clone(), module(mutant), own);
            let longest = *self.longest.get(&part).context("every part was measured")?;
            match self.run(&part, number, longest).await? {
                Ended::Passed => {}
                Ended::Failed(_) | Ended::Died(_) => return Ok(Fate::Seen),
                Ended::Hung => return Ok(Fate::Timeout),
            }
        }
        Ok(Fate::Survived)
    }

    async fn run(&self, part: &TestPart, number: Number, longest: Duration) -> anyhow::Result<Ended> {
        let (package, module, own) = part;
        let test = TestTarget {
            package: package.clone(),
            target: None,
        };
        let program = self.built.tests.get(&test).context("it was built")?;
        program.run(number, &selection(module, *own), longest).await
    }
}
