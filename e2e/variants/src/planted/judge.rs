//! Owns: showing a bug to the rings of tests, and reading off what they saw.
//! Never: builds; decides whether that is enough.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Output,
    time::Duration,
};

use anyhow::{Context, bail, ensure};

use crate::{
    Number, UNCHANGED,
    build::Built,
    program::{Ended, Selection, output},
};

use super::{
    bug::{Bug, Tests},
    ring::{Ring, Sight, Sights},
};

/// The longest run of tests.
const TEST_TIME_MAX: Duration = Duration::from_secs(5 * 60);
/// The longest that worlds are played: many times what they take where nothing runs for ever.
const PLAY_TIME_MAX: Duration = Duration::from_secs(5 * 60);
/// Directory of worlds that broke a law once; they are played before drawn ones.
const KEPT_WORLDS: &str = "e2e/fixtures/worlds";
/// Most failed tests that are named.
const NAMED_TESTS_MAX: usize = 2;

/// Depth of the tests against each bug.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Depth {
    /// The tests that it names.
    pub(super) tests: bool,
    /// Small worlds.
    pub(super) worlds: u64,
    /// Large worlds, if the small ones show nothing.
    pub(super) large_worlds: u64,
    /// Seeds of the simulated network.
    pub(super) netsim: u64,
    /// The scenarios that it names.
    pub(super) scenarios: bool,
    /// Rings that need not see it too.
    pub(super) every_ring: bool,
}

impl Depth {
    /// The rings that are asked.
    pub(super) fn rings(self) -> impl Iterator<Item = Ring> {
        let asked = [
            (Ring::Tests, self.tests),
            (Ring::Swarm, self.worlds > 0),
            (Ring::Netsim, self.netsim > 0),
            (Ring::Scenarios, self.scenarios),
        ];
        asked
            .into_iter()
            .filter(|(_, asked)| *asked)
            .map(|(ring, _)| ring)
    }

    /// The rings that a bug is shown to. One that names none is shown to all.
    fn rings_of(self, bug: &Bug) -> impl Iterator<Item = Ring> {
        let every = self.every_ring || bug.seen_by.is_empty();
        self.rings()
            .filter(move |ring| every || bug.seen_by.contains(ring))
    }

    /// The tests and scenarios of these bugs that are asked.
    pub(super) fn tests_of<'a>(self, bugs: impl Iterator<Item = &'a Bug>) -> BTreeSet<Tests> {
        let of = |bug: &Bug| {
            let tests = self.tests.then(|| bug.tests.clone());
            let scenarios = bug.scenarios().filter(|_| self.scenarios);
            tests.into_iter().chain(scenarios)
        };
        bugs.flat_map(of).collect()
    }
}

/// Shows what was built to the rings.
pub(super) struct Judge<'a> {
    built: &'a Built,
    depth: Depth,
    kept: Vec<PathBuf>,
}

impl<'a> Judge<'a> {
    /// A judge of a build of this workspace. An error: the worlds that are kept there cannot be listed.
    pub(super) fn new(workspace: &Path, built: &'a Built, depth: Depth) -> anyhow::Result<Self> {
        let kept = kept_worlds(&workspace.join(KEPT_WORLDS))?;
        Ok(Self { built, depth, kept })
    }

    /// Requires that every ring sees nothing in the product as it is.
    pub(super) async fn is_green(&self, bugs: &[&Bug]) -> anyhow::Result<()> {
        for tests in &self.depth.tests_of(bugs.iter().copied()) {
            let program = self.built.tests.get(&tests.program()).context("it was built")?;
            let selection = Selection {
                filter: &tests.filter,
                ..Selection::default()
            };
            ensure!(
                program.has(&selection).await?,
                "there is none of the tests that planted bugs name: {tests}"
            );
            let sight = self.tests(tests, UNCHANGED).await?;
            ensure!(!sight.is_seen(), "{tests}: {}", sight.words());
        }
        for ring in self
            .depth
            .rings()
            .filter(|ring| matches!(ring, Ring::Swarm | Ring::Netsim))
        {
            let sight = self.play(ring, UNCHANGED).await?;
            ensure!(!sight.is_seen(), "{}: {}", ring.name(), sight.words());
        }
        Ok(())
    }

    /// The rings' sights of a bug.
    pub(super) async fn show(&self, bug: &Bug, number: Number) -> anyhow::Result<Sights> {
        let mut sights = Sights::new();
        for ring in self.depth.rings_of(bug) {
            let sight = match (ring, bug.scenarios()) {
                (Ring::Tests, _) => self.tests(&bug.tests, number).await?,
                (Ring::Swarm | Ring::Netsim, _) => self.play(ring, number).await?,
                (Ring::Scenarios, Some(scenarios)) => self.tests(&scenarios, number).await?,
                (Ring::Scenarios, None) => continue,
            };
            sights.insert(ring, sight);
        }
        Ok(sights)
    }

    async fn tests(&self, tests: &Tests, number: Number) -> anyhow::Result<Sight> {
        let program = self.built.tests.get(&tests.program()).context("it was built")?;
        let selection = Selection {
            filter: &tests.filter,
            ..Selection::default()
        };
        Ok(match program.run(number, &selection, TEST_TIME_MAX).await? {
            Ended::Passed => Sight::Nothing(format!("the tests of `{}`", tests.filter)),
            Ended::Failed(failed) => Sight::Seen(few(&failed)),
            Ended::Hung => Sight::Seen(format!("did not end within {} s", TEST_TIME_MAX.as_secs())),
            Ended::Died(how) => Sight::Seen(format!("the tests died: {how}")),
        })
    }

    async fn play(&self, ring: Ring, number: Number) -> anyhow::Result<Sight> {
        let (program, plays) = match ring {
            Ring::Netsim => ("netsim", vec![seeds("seeds", &[], self.depth.netsim)]),
            _ => ("sim", self.worlds()),
        };
        let path = self.built.simulations.get(program).context("it was built")?;
        let mut played = Vec::new();
        for Play { arguments, much } in plays {
            match output(path, number, &arguments, PLAY_TIME_MAX).await? {
                None => {
                    let longest = PLAY_TIME_MAX.as_secs();
                    return Ok(Sight::Seen(format!("did not end within {longest} s")));
                }
                Some(ended) if !ended.status.success() => return broken(ring, &ended),
                Some(_) => played.push(much),
            }
        }
        Ok(Sight::Nothing(played.join(" and ")))
    }

    /// The kept worlds, then small ones, then large ones if that many are wanted.
    fn worlds(&self) -> Vec<Play> {
        let mut replay = vec![OsString::from("replay")];
        replay.extend(self.kept.iter().map(OsString::from));
        let mut plays = vec![Play {
            arguments: replay,
            much: format!("{} kept worlds", self.kept.len()),
        }];
        let drawn = [("small", self.depth.worlds), ("large", self.depth.large_worlds)];
        for (size, count) in drawn.into_iter().filter(|(_, count)| *count > 0) {
            plays.push(seeds(&format!("{size} seeds"), &["swarm", "--size", size], count));
        }
        plays
    }
}

/// A simulation's arguments, and their wording.
struct Play {
    arguments: Vec<OsString>,
    much: String,
}

fn seeds(what: &str, command: &[&str], count: u64) -> Play {
    let number = count.to_string();
    let arguments = [command, &["--seed", "1", "--count", &number]].concat();
    Play {
        arguments: arguments.into_iter().map(OsString::from).collect(),
        much: format!("{count} {what}"),
    }
}

fn kept_worlds(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = || format!("cannot list {}", directory.display());
    let entries = std::fs::read_dir(directory).with_context(listed)?;
    let mut worlds: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()
        .with_context(listed)?;
    ensure!(!worlds.is_empty(), "{} holds no world", directory.display());
    worlds.sort();
    Ok(worlds)
}

fn few(failed: &[String]) -> String {
    let named: Vec<String> = failed
        .iter()
        .take(NAMED_TESTS_MAX)
        .map(|test| format!("`{test}`"))
        .collect();
    match failed.len().saturating_sub(NAMED_TESTS_MAX) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// The fault that a failed simulation reported.
fn broken(ring: Ring, played: &Output) -> anyhow::Result<Sight> {
    let said = String::from_utf8_lossy(&played.stdout);
    match first_broken(ring, &said) {
        Some(what) => Ok(Sight::Seen(what)),
        None => bail!(
            "{} neither passed nor named what broke ({}):\n{said}{}",
            ring.name(),
            played.status,
            String::from_utf8_lossy(&played.stderr)
        ),
    }
}

/// The seed and the law of a line such as `seed 7: BROKEN: convergence: not at rest`.
fn first_broken(ring: Ring, said: &str) -> Option<String> {
    said.lines().find_map(|line| {
        if let Some((_, never)) = line.split_once("these never happened: ") {
            return Some(format!("never happened: {never}"));
        }
        if let Some((_, idle)) = line.split_once("these guarded nothing: ") {
            return Some(format!("guarded nothing: {idle}"));
        }
        let (seed, what) = line.strip_prefix("seed ")?.split_once(": ")?;
        let what = match ring {
            Ring::Netsim => what,
            _ => what.strip_prefix("BROKEN: ")?,
        };
        let law = what.split(':').next().unwrap_or(what);
        Some(format!("seed {seed}: {law}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_and_the_law_are_read_off_the_verdict() {
        let said =
            "   3  agent crashed\n12 seeds held every law\nseed 13: BROKEN: law of deletion: it went\n";
        let read = |ring, said| first_broken(ring, said);
        assert_eq!(read(Ring::Swarm, said).unwrap(), "seed 13: law of deletion");
        let never = "1000 seeds from 1 on: every law held, but these never happened: resume";
        assert_eq!(read(Ring::Swarm, never).unwrap(), "never happened: resume");
        let idle = "netsim: every law held, but these guarded nothing: what stood stays";
        assert_eq!(
            read(Ring::Netsim, idle).unwrap(),
            "guarded nothing: what stood stays"
        );
        let few =
            "netsim: every law held, but these guarded nothing (so few seeds may be too few for that): keys";
        assert_eq!(read(Ring::Netsim, few), None);
        assert_eq!(
            read(Ring::Netsim, "seed 2: west lacks it: x").unwrap(),
            "seed 2: west lacks it"
        );
        assert_eq!(read(Ring::Swarm, "error: could not compile"), None);
    }

    #[test]
    fn worlds_that_broke_once_are_played_first() {
        let built = Built::default();
        let depth = Depth {
            worlds: 7,
            ..Depth::default()
        };
        let judge = Judge::new(&crate::workspace(), &built, depth).expect("there are some");
        let plays = judge.worlds();
        assert_eq!(plays[0].arguments[0], "replay");
        assert_eq!(plays[0].arguments.len(), judge.kept.len() + 1);
        assert!(
            plays[0].arguments[1..]
                .iter()
                .all(|file| Path::new(file).is_file())
        );
        let much: Vec<&str> = plays.iter().map(|play| play.much.as_str()).collect();
        assert_eq!(much[1..], ["7 small seeds"]);
        let nowhere = Path::new("nowhere");
        assert!(kept_worlds(nowhere).is_err());
    }

    #[test]
    fn what_is_not_played_is_not_asked() {
        let all = Depth {
            tests: true,
            worlds: 1,
            large_worlds: 0,
            netsim: 1,
            scenarios: true,
            every_ring: false,
        };
        let rings = |depth: Depth| depth.rings().collect::<Vec<_>>();
        assert_eq!(rings(all), Ring::ALL);
        let unplayed = Depth {
            worlds: 0,
            netsim: 0,
            ..all
        };
        assert_eq!(rings(unplayed), [Ring::Tests, Ring::Scenarios]);
        assert_eq!(rings(Depth::default()), []);

        let bugs = super::super::bug::all(&crate::workspace(), super::super::bug::PROGRAMS).unwrap();
        let bug = bugs
            .iter()
            .find(|bug| bug.name == "who-left-still-leaves")
            .unwrap();
        let of = |depth: Depth| depth.rings_of(bug).collect::<Vec<_>>();
        assert_eq!(of(all), [Ring::Tests, Ring::Swarm], "as its file says");
        let every = Depth {
            every_ring: true,
            ..all
        };
        assert_eq!(of(every), Ring::ALL);
        let mut silent = bug.clone();
        silent.seen_by.clear();
        assert_eq!(all.rings_of(&silent).collect::<Vec<_>>(), Ring::ALL);
    }
}
