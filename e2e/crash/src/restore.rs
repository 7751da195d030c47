//! Owns: the log's directory copied while the hub writes to it, and put back later in the place of the newer one.
//! Never: stops the hub for the copy; that would be a backup.

use std::{fs, path::Path, time::Instant};

use anyhow::{Context, ensure};
use rand::RngExt;
use shared::model::Epoch;

use super::{
    Rounds,
    acknowledged::Reporters,
    clusterset::{CLUSTERS, ChangingClusterset, REPORTERS},
    facts,
};
use cluster::clusterset::{eventually::eventually, questions};
use oracle::laws::Law;

/// Facts after whose acknowledgement the copy begins, at most.
const ACKNOWLEDGED_MAX: u64 = 2_000;
/// Changes after the copy: the members know more than it does.
pub(super) const CHANGES: usize = 3;
/// Number of attempts at a copy while files come and go under it.
const COPIES_MAX: usize = 20;
/// Agents are restarted before every so many rounds, so that they come back soon (see `kill.rs`).
const AGENTS_ANEW_EVERY: u32 = 3;
/// The hub's words when it refuses a log.
const REFUSAL: &str = "move it aside";

/// Copies and restores again and again.
pub(super) async fn copy(
    mut changing: ChangingClusterset,
    dir: &Path,
    rounds: &mut Rounds,
) -> anyhow::Result<()> {
    let (copy, aside) = (dir.join("copy"), dir.join("aside"));
    let mut reporters = Reporters::new(&REPORTERS, facts::change);
    let (mut served, mut refused) = (0_u32, 0_u32);
    while let Some(round) = rounds.next() {
        agents_anew(&mut changing, round).await?;
        let reporting = reporters.start(&changing.clusterset).await?;
        let enough = changing.random.random_range(1..=ACKNOWLEDGED_MAX);
        reporting.acknowledged(enough).await?;
        copy_while_running(&changing.clusterset.data(), &copy)?;
        changing.changes(CHANGES).await?;
        changing.settled().await?;
        let before = epoch(&changing).await?;
        changing.clusterset.kill_hub().await?;
        reporting.ended().await?;
        changing.change().await?;

        fs::rename(changing.clusterset.data(), &aside)?;
        fs::rename(&copy, changing.clusterset.data())?;
        let began = Instant::now();
        if starts(&mut changing).await? {
            served += 1;
            let newer = async || Ok((epoch(&changing).await? > before).then_some(()));
            eventually("a new epoch begins over the restored copy", newer).await?;
            rounds.guarded.count(Law::Rewinds, 1);
            fs::remove_dir_all(&aside)?;
        } else {
            // Half of a write was copied: it says so, and what was put aside is as good as it was.
            refused += 1;
            fs::remove_dir_all(changing.clusterset.data())?;
            fs::rename(&aside, changing.clusterset.data())?;
            changing.clusterset.start_hub().await?;
        }
        let guarded = changing.settled().await?;
        rounds.recovered(began.elapsed(), &guarded);
        rounds.counted = format!("{served} copies served under a new epoch, {refused} refused with advice");
    }
    ensure!(served > 0, "no copy could be served: nothing was tried");
    changing.end().await
}

/// Restarts the agents where a round needs it.
pub(super) async fn agents_anew(changing: &mut ChangingClusterset, round: u32) -> anyhow::Result<()> {
    if round.is_multiple_of(AGENTS_ANEW_EVERY) {
        for name in CLUSTERS {
            changing.clusterset.stop_agent(name).await?;
            changing.clusterset.start_agent(name).await?;
        }
        changing.settled().await?;
    }
    Ok(())
}

/// Starts the hub. False: it ended by itself, and said that the log is corrupt and what to do.
async fn starts(changing: &mut ChangingClusterset) -> anyhow::Result<bool> {
    let hub = changing
        .clusterset
        .spawn_hub(&[], changing.clusterset.data(), &[])?;
    match changing.clusterset.adopt_hub(hub).await {
        Ok(()) => Ok(true),
        Err(error) => {
            // The end of its log is the end of the error: the last line says why it ended.
            let said = format!("{error:#}");
            let refused = said.lines().last().is_some_and(|line| line.contains(REFUSAL));
            if refused { Ok(false) } else { Err(error) }
        }
    }
}

async fn epoch(changing: &ChangingClusterset) -> anyhow::Result<Epoch> {
    Ok(questions::state(&changing.clusterset).await?.epoch.parse()?)
}

/// Copies what is there at the moment, file by file, as a careless tool would.
fn copy_while_running(from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut last = Ok(());
    for _ in 0..COPIES_MAX {
        if to.exists() {
            fs::remove_dir_all(to)?;
        }
        last = questions::copy_directory(from, to);
        if last.is_ok() {
            break;
        }
    }
    last.context("files of the log come and go too fast to be copied")
}
