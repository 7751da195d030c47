//! `cargo crash`: real hubs and agents over simulated clusters, killed, paused, short of room and set back in time;
//! and whether the laws hold all the while. `args.rs` says what each kind does.
//!
//! * `clusterset.rs`: a clusterset whose exports change, and what has to hold of it.
//! * `acknowledged.rs`: members that report, and whether what was acknowledged to them is in the log.
//! * `kill.rs`, `pause.rs`, `disk.rs`, `low_disk.rs`, `restore.rs`, `backup.rs`: the kinds. `report.rs`: the table and the verdict.
//!
//! Its own processes are the only ones that it harms.

pub mod acknowledged;
pub mod args;
mod backup;
mod clusterset;
mod disk;
pub mod facts;
mod kill;
mod low_disk;
mod pause;
mod report;
mod restore;

use std::{
    env,
    path::Path,
    time::{Duration, Instant},
};

use args::{Arguments, Crash};
use clusterset::ChangingClusterset;
use report::{End, KindResult};

use oracle::laws::Guarded;

/// Progress is told this many times in each kind.
const PROGRESS_LINES: u32 = 5;

/// The rounds of one kind.
struct Rounds {
    kind: Crash,
    wanted: u32,
    begun: u32,
    recoveries: Vec<Duration>,
    /// Objects that each law guarded in them.
    guarded: Guarded,
    /// Further figures of them.
    counted: String,
}

impl Rounds {
    /// The number of the next round, from 0, while there is one.
    fn next(&mut self) -> Option<u32> {
        let round = self.begun;
        if round > 0 && round.is_multiple_of(self.wanted.div_ceil(PROGRESS_LINES)) {
            eprintln!("{}: {round} of {} rounds", self.kind.name(), self.wanted);
        }
        self.begun += 1;
        (round < self.wanted).then_some(round)
    }

    /// From the restart, or the end of the pause, until every cluster held what the exports said; and how much was
    /// guarded by that.
    fn recovered(&mut self, after: Duration, guarded: &Guarded) {
        self.recoveries.push(after);
        self.guarded.add(guarded);
    }
}

/// Runs what the command line asks for, and prints the table. False: a law was broken or guarded nothing, or CI lacks a
/// kind.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let seed = arguments.seed.unwrap_or_else(rand::random);
    println!("seed {seed}");
    let began = Instant::now();
    let runtime = tokio::runtime::Runtime::new()?;
    let kinds = arguments.plan();
    let outcomes = runtime.block_on(async {
        // Each kind has its own part of chance: it stays the same when only this kind is run.
        let running = kinds
            .into_iter()
            .map(|(kind, rounds)| run_kind(kind, rounds, seed ^ (kind as u64) << 56));
        futures::future::try_join_all(running).await
    })?;
    println!("{}", report::text(&outcomes, seed, began.elapsed()));
    let ci = env::var("CI").is_ok_and(|value| value == "true");
    Ok(report::passed(&outcomes, ci))
}

async fn run_kind(kind: Crash, wanted: u32, seed: u64) -> anyhow::Result<KindResult> {
    let dir = tempfile::tempdir()?;
    let mut rounds = Rounds {
        kind,
        wanted,
        begun: 0,
        recoveries: Vec::new(),
        guarded: Guarded::default(),
        counted: String::new(),
    };
    let end = match cannot_run(kind, dir.path()).await {
        Some(why) => End::NotRun(why),
        None => match crash(kind, dir.path(), seed, &mut rounds).await {
            Ok(()) => End::Passed,
            Err(error) => End::Violated(format!("{error:#}"), dir.keep()),
        },
    };
    Ok(KindResult {
        kind,
        wanted,
        recoveries: rounds.recoveries,
        guarded: rounds.guarded,
        counted: rounds.counted,
        end,
    })
}

/// Why a kind cannot run here, in one line.
async fn cannot_run(kind: Crash, dir: &Path) -> Option<String> {
    match kind {
        Crash::FullDisk | Crash::LowDisk => disk::Volume::mount(&dir.join("trial"))
            .await
            .err()
            .map(|error| format!("{error:#}")),
        _ => None,
    }
}

async fn crash(kind: Crash, dir: &Path, seed: u64, rounds: &mut Rounds) -> anyhow::Result<()> {
    let changing = ChangingClusterset::set(&dir.join("clusterset"), seed).await?;
    match kind {
        Crash::Hub => kill::hub(changing, rounds).await,
        Crash::Agent => kill::agent(changing, rounds).await,
        Crash::PausedHub => pause::hub(changing, rounds).await,
        Crash::PausedAgent => pause::agent(changing, rounds).await,
        Crash::FullDisk => disk::full(changing, dir, rounds).await,
        Crash::LowDisk => low_disk::low(changing, dir, rounds).await,
        Crash::RestoredCopy => restore::copy(changing, dir, rounds).await,
        Crash::RestoredBackup => backup::restored(changing, dir, rounds).await,
    }
}
