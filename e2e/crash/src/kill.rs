//! Owns: SIGKILL of the hub under load, and of agents while exports change.
//! Never: asks a program to end.

use std::time::{Duration, Instant};

use rand::{RngExt, seq::IndexedRandom};

use super::{
    Rounds,
    acknowledged::Reporters,
    clusterset::{CLUSTERS, ChangingClusterset, REPORTERS},
    facts,
};
use cluster::clusterset::AgentVariant;
use oracle::laws::Law;

/// Facts after whose acknowledgement the hub is killed, at most.
const ACKNOWLEDGED_MAX: u64 = 300;
/// In how many rounds the program is killed once more while it starts.
const KILLED_AGAIN: f64 = 0.2;
/// Latest moment of the kill during its start.
const START_SPAN: Duration = Duration::from_millis(120);
/// Every so many rounds all agents are killed with the hub. They forget how often the hub was away, and so come back
/// at once: an agent that met many short sessions waits for up to 15 s.
const AGENTS_TOO_EVERY: u32 = 3;
/// Changes that an agent is killed in the middle of.
const CHANGES: usize = 3;
/// Time for these to arrive, about.
const ARRIVAL_SPAN: Duration = Duration::from_millis(40);

/// Kills the hub again and again.
pub(super) async fn hub(mut changing: ChangingClusterset, rounds: &mut Rounds) -> anyhow::Result<()> {
    let mut reporters = Reporters::new(&REPORTERS, facts::change);
    let (mut again, mut agents) = (0, 0);
    while let Some(round) = rounds.next() {
        let reporting = reporters.start(&changing.clusterset).await?;
        changing.change().await?;
        let enough = changing.random.random_range(1..=ACKNOWLEDGED_MAX);
        reporting.acknowledged(enough).await?;
        changing.clusterset.kill_hub().await?;
        let acknowledged = reporting.ended().await?;
        if round % AGENTS_TOO_EVERY == 0 {
            for name in CLUSTERS {
                changing.clusterset.kill_agent(name).await?;
            }
            agents += CLUSTERS.len();
        }
        changing.change().await?;
        if changing.random.random_bool(KILLED_AGAIN) {
            let hub = changing
                .clusterset
                .spawn_hub(&[], changing.clusterset.data(), &[])?;
            changing.any_moment(START_SPAN).await;
            hub.kill().await?;
            again += 1;
        }
        let began = Instant::now();
        changing.clusterset.start_hub().await?;
        if round % AGENTS_TOO_EVERY == 0 {
            for name in CLUSTERS {
                changing.clusterset.start_agent(name).await?;
            }
        }
        let guarded = changing.settled().await?;
        rounds.recovered(began.elapsed(), &guarded);
        let found = reporters.check(&changing.clusterset, &acknowledged).await?;
        rounds.guarded.count(Law::Durable, found);
        rounds.counted = format!(
            "{} acknowledged facts found again; {again} kills more while it started, {agents} of agents",
            rounds.guarded.of(Law::Durable)
        );
    }
    changing.end().await?;
    rounds.counted += &format!("; {} events verified", reporters.events());
    Ok(())
}

/// Kills agents again and again.
pub(super) async fn agent(mut changing: ChangingClusterset, rounds: &mut Rounds) -> anyhow::Result<()> {
    let mut again = 0;
    while rounds.next().is_some() {
        let name = CLUSTERS.choose(&mut changing.random).copied().unwrap_or("east");
        changing.changes(CHANGES).await?;
        changing.any_moment(ARRIVAL_SPAN).await;
        changing.clusterset.kill_agent(name).await?;
        changing.change().await?;
        if changing.random.random_bool(KILLED_AGAIN) {
            let variant = AgentVariant {
                certificate: name,
                cluster: name,
                log: name,
                flags: &[],
            };
            let agent = changing.clusterset.spawn_agent(&variant)?;
            changing.any_moment(START_SPAN).await;
            agent.kill().await?;
            again += 1;
        }
        let began = Instant::now();
        changing.clusterset.start_agent(name).await?;
        let guarded = changing.settled().await?;
        rounds.recovered(began.elapsed(), &guarded);
        rounds.counted = format!("{again} kills more while it started");
    }
    changing.end().await
}
