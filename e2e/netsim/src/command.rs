//! Many seeds on all cores, the histogram of what happened in them, and the verdict. A seed runs on one thread.

use std::{
    collections::BTreeMap,
    num::NonZero,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use shared::tls::install_crypto_provider;

use super::run::{SeedResult, shrink, simulate};
use oracle::{
    laws::{Guarded, Law, ManySeeds, Verdict},
    seeds::{Seeds, Simulation},
    shorten::Effort,
};

/// The laws of the simulated network.
const LAWS: [Law; 11] = [
    Law::Holds,
    Law::Stood,
    Law::NoWrite,
    Law::Requests,
    Law::Withdrawn,
    Law::Preserved,
    Law::Goodbye,
    Law::Leaving,
    Law::Held,
    Law::Holders,
    Law::Still,
];
/// Number of seeds after which every law must have guarded something.
const WHOLE_RUN: u64 = 20;
/// Most failing seeds that are described.
const FAILURES_SHOWN_MAX: usize = 10;
/// Longest search for a short script.
const SHORTEN_EFFORT: Effort = Effort {
    tries: 200,
    time: Duration::from_secs(300),
};

/// Runs the programs of hub and agents on simulated machines, in a simulated network, for any number of seeds.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "cargo netsim", bin_name = "cargo netsim")]
pub struct NetsimArgs {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Derive the first seed from a text, such as the hash of a commit, and play the kept seeds before it
    ///
    /// The same text gives the same seeds. The kept seeds are in `e2e/fixtures/seeds.txt`. The first seed that fails is
    /// made shorter, for five minutes at most, and printed.
    #[arg(long, value_name = "TEXT", conflicts_with = "seed")]
    pub seed_from: Option<String>,
    /// Number of seeds, from the first one on
    #[arg(long, default_value_t = 1)]
    pub count: u64,
    /// Run every seed twice and compare what happened
    #[arg(long)]
    pub twice: bool,
    /// Print what happens (with one seed), and on standard error what the programs log
    #[arg(long)]
    pub trace: bool,
}

#[derive(Default)]
struct Tally {
    counts: BTreeMap<&'static str, u64>,
    guarded: Guarded,
    failures: Vec<(u64, String)>,
    simulated: u64,
}

/// Runs the seeds, prints the histogram and, last, the verdict.
pub fn run(args: &NetsimArgs) -> anyhow::Result<ExitCode> {
    install_crypto_provider()?;
    let seeds = match &args.seed_from {
        None => Seeds::range(args.seed, args.count),
        Some(text) => {
            let seeds = Seeds::fresh(Simulation::Network, text, args.count);
            println!("{seeds}, derived from {text}");
            seeds
        }
    };
    let began = Instant::now();
    let next = AtomicU64::new(0);
    let tally = Mutex::new(Tally::default());
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(usize::try_from(seeds.count()).unwrap_or(usize::MAX)) {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = one(seed, args);
                    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                    tally.add(seed, outcome);
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    let first = tally.failures.iter().min().cloned();
    let code = tally.report(seeds.count(), began.elapsed().as_secs_f64());
    if let Some((seed, failure)) = first.filter(|_| args.seed_from.is_some()) {
        tell_short(seed, &failure);
    }
    Ok(code)
}

/// Prints the events of a seed that are needed for its failure, and the failure.
fn tell_short(seed: u64, failure: &str) {
    let (script, failure) = shrink(seed, failure, SHORTEN_EFFORT);
    println!("seed {seed}, in short:\n{script}{failure}");
}

fn one(seed: u64, args: &NetsimArgs) -> SeedResult {
    let trace = args.trace && args.count == 1;
    let mut outcome = simulate(seed, trace);
    if args.twice && outcome.failure.is_none() {
        let again = simulate(seed, trace);
        if again.trace != outcome.trace {
            outcome.failure = Some(format!(
                "the second run differs: {} and {}",
                outcome.trace, again.trace
            ));
        }
    }
    outcome
}

impl Tally {
    fn add(&mut self, seed: u64, outcome: SeedResult) {
        for (class, count) in outcome.counts {
            *self.counts.entry(class).or_default() += count;
        }
        self.guarded.add(&outcome.guarded);
        self.simulated += outcome.simulated;
        if let Some(failure) = outcome.failure {
            println!("seed {seed}: {failure}");
            self.failures.push((seed, failure));
        } else {
            tracing::debug!(seed, trace = outcome.trace, "passed");
        }
    }

    fn report(mut self, count: u64, seconds: f64) -> ExitCode {
        for (class, count) in &self.counts {
            println!("{count:>8}  {class}");
        }
        self.guarded
            .lines(&LAWS)
            .iter()
            .for_each(|line| println!("{line}"));
        println!("{:>8}  simulated seconds", self.simulated / 1_000);
        self.failures.sort();
        for (seed, failure) in self.failures.iter().take(FAILURES_SHOWN_MAX) {
            println!("seed {seed}: {failure}\n  again: {}", advice::netsim_trace(*seed));
        }
        let verdict = self.verdict(count);
        if let Some(doubt) = verdict.doubt() {
            println!("netsim: every law held, but {doubt}");
        }
        let failed = self.failures.len();
        println!("netsim: {count} seeds, {failed} failed, in {seconds:.0} s");
        if verdict.passed() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    fn verdict(&self, count: u64) -> Verdict {
        ManySeeds {
            count,
            enough: WHOLE_RUN,
            broken: self.failures.len(),
            missing: &[],
            idle: &self.guarded.idle(&LAWS),
        }
        .verdict()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarding(laws: &[Law]) -> Tally {
        let mut tally = Tally::default();
        laws.iter().for_each(|law| tally.guarded.count(*law, 1));
        tally
    }

    #[test]
    fn a_whole_run_fails_for_each_law_that_guarded_nothing() {
        assert_eq!(guarding(&LAWS).verdict(WHOLE_RUN), Verdict::Passed);
        for idle in LAWS {
            let others: Vec<Law> = LAWS.into_iter().filter(|law| *law != idle).collect();
            let tally = guarding(&others);
            let verdict = tally.verdict(WHOLE_RUN);
            assert!(
                matches!(&verdict, Verdict::Vacuous(why) if why.contains(idle.name())),
                "{verdict:?}"
            );
            let few = tally.verdict(WHOLE_RUN - 1);
            assert!(few.passed() && few.doubt().is_some(), "{few:?}");
        }
    }

    #[test]
    fn a_seed_that_failed_fails_the_run() {
        let mut tally = guarding(&LAWS);
        tally.failures.push((7, "lost".to_owned()));
        assert_eq!(tally.verdict(1), Verdict::Broken);
        assert!(!tally.verdict(WHOLE_RUN).passed());
    }
}
