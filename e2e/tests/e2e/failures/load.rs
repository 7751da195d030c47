//! The hub under load: killed again and again, what it acknowledged is there; and every batch it acknowledged was
//! synced, as the operating system saw it.
//!
//! TRIBUTARY_E2E_KILLS sets how often it is killed (default 5, with CI=true 100), TRIBUTARY_E2E_SEED repeats when.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    fs,
    path::Path,
    time::Duration,
};

use anyhow::{Context, ensure};
use proto::v1;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tributary_e2e::{
    real::Unavailable,
    world::{
        Backend, World, admin,
        eventually::eventually,
        player::{Player, hello},
    },
};

use super::{
    facts::{encoded, export, slice},
    hub::events_from,
    kills::{number, seed},
};

/// Kills on a developer's machine, and where everything must have run.
const KILLS: (u64, u64) = (5, 100);
/// Facts in one message of the load.
const MESSAGE_FACTS: u64 = 20;
/// Slices that change round and round, so that the hub's state stays small.
const SLICES: u64 = 50;
/// The longest life of a hub, in milliseconds.
const LIFE_MILLIS: u64 = 600;
/// Every so many kills the whole log is verified; it grows.
const VERIFY_EVERY: u64 = 20;
/// Batches that must have been made durable before syncs are compared with them.
const BATCHES: f64 = 50.0;

/// Sends changes of slices and keeps what was acknowledged.
struct Load {
    player: Player,
    /// Facts of this session by sequence number.
    sent: BTreeMap<u64, Vec<u8>>,
}

impl Load {
    async fn open(world: &World) -> anyhow::Result<Self> {
        let player = eventually("the hub admits the load", async || {
            let mut again = hello("uid-of-east");
            again.lease_transitions = i64::from(rand::random::<u32>()) + 1;
            Player::open(world, "east", again).await.map(Some)
        })
        .await?;
        Ok(Self {
            player,
            sent: BTreeMap::new(),
        })
    }

    /// Sends one message of facts, none like any before, and waits until it is acknowledged.
    async fn turn(&mut self, number: &mut u64) -> anyhow::Result<()> {
        let mut facts = Vec::new();
        for _ in 0..MESSAGE_FACTS {
            *number += 1;
            let [_, high, middle, low] = u32::try_from(*number)?.to_be_bytes();
            let address = format!("10.{high}.{middle}.{low}");
            let service = format!("load-{}", *number % SLICES);
            facts.push(encoded(v1::fact::Fact::EndpointSliceUpserted(slice(
                "load",
                &service,
                &[&address],
            ))));
        }
        for (index, fact) in facts.iter().enumerate() {
            let sequence = self.player.sequence + index as u64 + 1;
            self.sent.insert(sequence, fact.clone());
        }
        self.player.report(facts).await?;
        self.player.settled().await
    }

    /// Session, sequence and fact of everything that was acknowledged.
    fn acknowledged(self) -> BTreeMap<(u64, u64), Vec<u8>> {
        let (session, until) = (self.player.session, self.player.acknowledged);
        let sent = self.sent.into_iter().filter(|(sequence, _)| *sequence <= until);
        sent.map(|(sequence, fact)| ((session, sequence), fact)).collect()
    }
}

/// SIGKILL at random under load; then the acknowledged prefix is there, gapless, and its chain holds.
pub(super) async fn killed_under_load() -> anyhow::Result<()> {
    let everything = env::var("CI").is_ok_and(|value| value == "true");
    let usual = if everything { KILLS.1 } else { KILLS.0 };
    let kills = number("TRIBUTARY_E2E_KILLS")?.unwrap_or(usual);
    let mut random = StdRng::seed_from_u64(seed()?);
    let dir = tempfile::tempdir()?;
    let mut world = World::without_agents(dir.path(), &Backend::Simulated, &["east"]).await?;
    let (mut number, mut checked, mut found) = (0, 0, 0);
    for kill in 1..=kills {
        let mut load = Load::open(&world).await?;
        let life = Duration::from_millis(random.random_range(0..LIFE_MILLIS));
        let killed = {
            let loading = async {
                loop {
                    if let Err(error) = load.turn(&mut number).await {
                        return error;
                    }
                }
            };
            tokio::select! {
                error = loading => Err(error).context("the load ended before the hub was killed"),
                () = tokio::time::sleep(life) => Ok(()),
            }
        };
        killed?;
        world.kill_hub().await?;
        let acknowledged = load.acknowledged();
        if kill % VERIFY_EVERY == 0 || kill == kills {
            verify(&world.data()).await?;
        }
        world.start_hub().await?;
        found += acknowledged.len();
        checked = contains(&world, checked, &acknowledged)
            .await
            .with_context(|| format!("after kill {kill}"))?;
    }
    println!("killed {kills} times; {found} acknowledged facts found again among {checked} events");
    ensure!(found > 0, "nothing was acknowledged between the kills: no load");
    world.end().await
}

/// Verifies the whole log of a hub that does not run.
async fn verify(data: &Path) -> anyhow::Result<()> {
    let data = data.to_owned();
    let report = tokio::task::spawn_blocking(move || hub::log::verify(&data, &mut |_| {})).await??;
    ensure!(!report.logs.is_empty() && report.is_good(), "{report:?}");
    Ok(())
}

/// Checks the events after revision `checked` and returns the last one.
async fn contains(
    world: &World,
    checked: u64,
    acknowledged: &BTreeMap<(u64, u64), Vec<u8>>,
) -> anyhow::Result<u64> {
    let events = events_from(world, checked + 1).await?;
    let mut revision = checked;
    let mut there = BTreeMap::new();
    for event in events {
        ensure!(
            event.revision == revision + 1,
            "{} follows {revision}",
            event.revision
        );
        revision = event.revision;
        let fact = event
            .fact
            .and_then(|fact| fact.fact)
            .context("an event without a fact")?;
        there.insert((event.session, event.member_sequence), encoded(fact));
    }
    let lost: BTreeSet<_> = acknowledged
        .iter()
        .filter(|(place, fact)| there.get(place) != Some(fact))
        .map(|(place, _)| place)
        .collect();
    ensure!(
        lost.is_empty(),
        "acknowledged and not in the log (session, sequence): {lost:?}"
    );
    Ok(revision)
}

/// What strace saw is at least what the hub says that it made durable.
pub(super) async fn every_batch_is_synced() -> anyhow::Result<()> {
    let traced = std::process::Command::new("strace").arg("-V").output();
    if !traced.is_ok_and(|output| output.status.success()) {
        let reason = "strace is not installed (Debian package `strace`)".to_owned();
        return Err(Unavailable { reason }.into());
    }
    let dir = tempfile::tempdir()?;
    let mut world = World::without_agents(dir.path(), &Backend::Simulated, &["east"]).await?;
    world.stop_hub().await?;
    let trace = dir.path().join("trace");
    // As a grandchild, so that the hub itself is our child.
    let mut wrapper: Vec<OsString> = ["strace", "-D", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"]
        .iter()
        .map(OsString::from)
        .collect();
    wrapper.extend([trace.clone().into(), "--".into()]);
    let hub = world.spawn_hub(&wrapper, world.data(), &[])?;
    world
        .adopt_hub(hub)
        .await
        .context("the hub does not start under strace")?;
    let synced_before = syncs(&trace)?;
    let mut load = Load::open(&world).await?;
    load.player
        .report([encoded(v1::fact::Fact::ExportUpserted(export("load", "load-0")))])
        .await?;
    let (mut number, mut batches) = (0, 0.0);
    while batches < BATCHES {
        load.turn(&mut number).await?;
        batches = admin::metric(world.hub()?, "tributary_hub_log_batches_total", "").await?;
    }
    drop(load);
    // What was acknowledged has been synced by now; strace writes a line before the call's answer is used.
    let synced = syncs(&trace)?.saturating_sub(synced_before);
    let told = admin::metric(world.hub()?, "tributary_hub_log_syncs", "").await?;
    println!("{batches} batches, {synced} syncs seen by strace, {told} told by the hub");
    ensure!(synced as f64 >= batches, "{batches} batches, but {synced} syncs");
    world.end().await
}

/// Syncs that succeeded.
fn syncs(trace: &Path) -> anyhow::Result<usize> {
    let text = fs::read_to_string(trace)?;
    let done = text
        .lines()
        .filter(|line| line.contains("sync") && line.trim_end().ends_with("= 0"));
    Ok(done.count())
}
