//! Owns: a volume of which little is free for a while, because something else lies on it beside the hub's log.
//! Never: fills it up: that is `disk`.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    time::Instant,
};

use anyhow::ensure;

use super::{Rounds, clusterset::ChangingClusterset, disk::Volume};
use cluster::clusterset::{DISK_RESERVE_FLAG, admin, eventually::eventually, questions};
use oracle::laws::Law;

/// So much is left, in percent: less than the hub's reserve, and more than its log takes at once.
const LEFT_PERCENT: u64 = 4;
const PIECE: usize = 1 << 20;
/// Kinds of events that must not be recorded meanwhile.
const GROWTH: [&str; 3] = [
    "export_upserted",
    "endpoint_slice_upserted",
    "cluster_property_upserted",
];
const REFUSED: &str = "tributary_hub_facts_refused_total{reason=\"no_room\"}";

/// Takes the room and gives it back, again and again.
pub(super) async fn low(
    mut changing: ChangingClusterset,
    dir: &Path,
    rounds: &mut Rounds,
) -> anyhow::Result<()> {
    changing.clusterset.stop_hub().await?;
    let volume = Volume::mount(&dir.join("volume")).await?;
    volume.grow().await?;
    let hub = changing.clusterset.spawn_hub(
        volume.enter(),
        volume.directory.clone(),
        &[DISK_RESERVE_FLAG, "5%"],
    )?;
    changing.clusterset.adopt_hub(hub).await?;
    changing.settled().await?;
    let ballast = volume.seen_from_outside()?.join("ballast");
    while rounds.next().is_some() {
        fill(&ballast)?;
        says(&mut changing, |metrics| is_refusing(metrics, true)).await?;
        let next = questions::state(&changing.clusterset).await?.revision + 1;
        let before = refused(&metrics(&mut changing).await?);
        changing.grow().await?;
        changing.change().await?;
        says(&mut changing, |metrics| refused(metrics) > before).await?;
        let recorded = questions::events_from(&changing.clusterset, next).await?;
        let grown = recorded
            .iter()
            .find(|event| GROWTH.contains(&event.kind.as_str()));
        ensure!(
            grown.is_none(),
            "recorded although the disk is nearly full: {}",
            grown.map_or("", |event| &event.kind)
        );
        let held_back = refused(&metrics(&mut changing).await?) - before;
        rounds.guarded.count(Law::Reserve, held_back);

        fs::remove_file(&ballast)?;
        let began = Instant::now();
        says(&mut changing, |metrics| is_refusing(metrics, false)).await?;
        let guarded = changing.settled().await?;
        rounds.recovered(began.elapsed(), &guarded);
    }
    let held_back = rounds.guarded.of(Law::Reserve);
    rounds.counted = format!("{held_back} facts were held back, and asked for when there was room");
    changing.clusterset.stop_hub().await?;
    super::clusterset::verify(&volume.seen_from_outside()?)?;
    changing.clusterset.start_hub().await?;
    changing.settled().await?;
    changing.end().await
}

/// Writes until so little of the volume is left.
fn fill(ballast: &Path) -> anyhow::Result<()> {
    let mut file = File::create(ballast)?;
    loop {
        let space = rustix::fs::statvfs(ballast)?;
        if space.f_bavail * 100 < space.f_blocks * LEFT_PERCENT {
            return Ok(());
        }
        file.write_all(&[0; PIECE])?;
    }
}

async fn metrics(changing: &mut ChangingClusterset) -> anyhow::Result<String> {
    let hub = changing.clusterset.hub()?.admin().await?;
    Ok(admin::get(hub, "/metrics").await?.1)
}

/// Waits until the hub's metrics say something.
async fn says(changing: &mut ChangingClusterset, wanted: impl Fn(&str) -> bool) -> anyhow::Result<()> {
    let hub = changing.clusterset.hub()?.admin().await?;
    eventually("the hub's metrics say so", async || {
        let (_, metrics) = admin::get(hub, "/metrics").await?;
        Ok(wanted(&metrics).then_some(()))
    })
    .await
}

fn is_refusing(metrics: &str, wanted: bool) -> bool {
    let line = format!("tributary_hub_growth_refused {}", u8::from(wanted));
    metrics.lines().any(|found| found == line)
}

/// Number of facts refused for lack of room.
fn refused(metrics: &str) -> u64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(REFUSED));
    line.and_then(|value| value.trim().parse().ok())
        .unwrap_or_default()
}
