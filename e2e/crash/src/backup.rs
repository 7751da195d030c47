//! Owns: the log backed up by its command while the hub writes to it, its volume lost later, and the backup restored.
//! Never: stops the hub for the backup.

use std::{fs, path::Path, time::Instant};

use anyhow::{Context, ensure};
use rand::RngExt;
use shared::model::{Epoch, Revision};

use super::{
    Rounds,
    acknowledged::Reporters,
    clusterset::{ChangingClusterset, REPORTERS},
    facts,
    restore::{CHANGES, agents_anew},
};
use cluster::clusterset::questions;
use oracle::laws::Law;

/// Facts after whose acknowledgement the backup begins, at most.
const ACKNOWLEDGED_MAX: u64 = 2_000;

/// Backs up, loses and restores again and again.
pub(super) async fn restored(
    mut changing: ChangingClusterset,
    dir: &Path,
    rounds: &mut Rounds,
) -> anyhow::Result<()> {
    let (backup, data) = (dir.join("backup"), changing.clusterset.data());
    let mut reporters = Reporters::new(&REPORTERS, facts::change);
    let mut events = 0;
    while let Some(round) = rounds.next() {
        agents_anew(&mut changing, round).await?;
        let reporting = reporters.start(&changing.clusterset).await?;
        let enough = changing.random.random_range(1..=ACKNOWLEDGED_MAX);
        reporting.acknowledged(enough).await?;
        let before = position(&changing).await?;
        changing.clusterset.back_up(&backup).await?;
        let held = head(&backup)?;
        ensure!(
            held >= before,
            "the backup ends at revision {} of epoch {}, and {} of {} was durable before it was begun",
            held.1,
            held.0,
            before.1,
            before.0
        );
        events += held.1.0;
        changing.changes(CHANGES).await?;
        changing.settled().await?;
        changing.clusterset.kill_hub().await?;
        reporting.ended().await?;
        changing.change().await?;

        fs::remove_dir_all(&data)?;
        let began = Instant::now();
        let restore = [
            "restore".into(),
            backup.clone().into(),
            "--data".into(),
            data.clone().into(),
        ];
        changing.clusterset.log_command(&restore).await?;
        changing.clusterset.start_hub().await?;
        let after = position(&changing).await?;
        ensure!(
            after.0 > held.0,
            "no epoch was begun over the backup: {} is {}",
            after.0,
            held.0
        );
        rounds.guarded.count(Law::Rewinds, 1);
        fs::remove_dir_all(&backup)?;
        let guarded = changing.settled().await?;
        rounds.recovered(began.elapsed(), &guarded);
        rounds.counted = format!(
            "{} backups restored, up to revisions that add up to {events}",
            round + 1
        );
    }
    changing.end().await
}

/// The epoch and the revision that the hub shows: everything acknowledged by now is at or before it.
async fn position(changing: &ChangingClusterset) -> anyhow::Result<(Epoch, Revision)> {
    let state = questions::state(&changing.clusterset).await?;
    Ok((state.epoch.parse()?, Revision(state.revision)))
}

fn head(backup: &Path) -> anyhow::Result<(Epoch, Revision)> {
    let contents = hub::log::contents(backup)?;
    Ok(contents.first().context("the backup holds no log")?.head)
}
