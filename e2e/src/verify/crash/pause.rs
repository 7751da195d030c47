//! Owns: SIGSTOP for longer than the timeouts, then SIGCONT: of the hub, of an agent.
//! Never: ends a program.

use std::time::Instant;

use anyhow::Context;
use rand::seq::IndexedRandom;

use super::{
    Rounds,
    clusterset::{CLUSTERS, ChangingClusterset},
};
use crate::clusterset::{admin, eventually::eventually, questions, signal};

/// Stops the hub until every agent has given it up.
pub(super) async fn hub(mut stage: ChangingClusterset, rounds: &mut Rounds) -> anyhow::Result<()> {
    while rounds.next().is_some() {
        let process = stage.world.hub()?.id().context("the hub runs")?;
        signal(process, "STOP").await?;
        stage.change().await?;
        for name in CLUSTERS {
            connected(&mut stage, name, false).await?;
        }
        stage.change().await?;
        signal(process, "CONT").await?;
        let began = Instant::now();
        let guarded = stage.settled().await?;
        rounds.recovered(began.elapsed(), &guarded);
        // The next round needs them all connected, and to have been is no violation to miss.
        for name in CLUSTERS {
            connected(&mut stage, name, true).await?;
        }
    }
    rounds.counted = "all agents had given it up".to_owned();
    stage.end().await
}

/// Waits until an agent has, or has not, a session.
async fn connected(stage: &mut ChangingClusterset, name: &str, wanted: bool) -> anyhow::Result<()> {
    let agent = stage.world.agent(name)?.admin().await?;
    let line = format!("tributary_agent_hub_connected {}", u8::from(wanted));
    eventually(&format!("the agent of {name} says {line:?}"), async || {
        let (_, metrics) = admin::get(agent, "/metrics").await?;
        Ok(metrics.lines().any(|found| found == line).then_some(()))
    })
    .await
}

/// Stops an agent until the hub has declared its cluster lost.
pub(super) async fn agent(mut stage: ChangingClusterset, rounds: &mut Rounds) -> anyhow::Result<()> {
    while rounds.next().is_some() {
        let name = CLUSTERS.choose(&mut stage.random).copied().unwrap_or("east");
        let process = stage.world.agent(name)?.id().context("the agent runs")?;
        signal(process, "STOP").await?;
        stage.change().await?;
        eventually(&format!("{name} is lost"), async || {
            let kinds = questions::kinds(&stage.world, name).await?;
            let last = kinds.iter().rev().find(|kind| kind.starts_with("member_"));
            Ok((last.map(String::as_str) == Some("member_lost")).then_some(()))
        })
        .await?;
        stage.change().await?;
        signal(process, "CONT").await?;
        let began = Instant::now();
        let guarded = stage.settled().await?;
        rounds.recovered(began.elapsed(), &guarded);
    }
    rounds.counted = "each was declared lost".to_owned();
    stage.end().await
}
