//! Owns: SIGSTOP for longer than the timeouts, then SIGCONT: of the hub, of an agent.
//! Never: ends a program.

use std::time::Instant;

use anyhow::Context;
use rand::seq::IndexedRandom;

use super::{
    Rounds,
    clusterset::{CLUSTERS, ChangingClusterset},
};
use cluster::clusterset::{admin, eventually::eventually, questions, signal};

/// Stops the hub until every agent has given it up.
pub(super) async fn hub(mut changing: ChangingClusterset, rounds: &mut Rounds) -> anyhow::Result<()> {
    while rounds.next().is_some() {
        let process = changing.clusterset.hub()?.id().context("the hub runs")?;
        signal(process, "STOP").await?;
        changing.change().await?;
        for name in CLUSTERS {
            connected(&mut changing, name, false).await?;
        }
        changing.change().await?;
        signal(process, "CONT").await?;
        let began = Instant::now();
        let guarded = changing.settled().await?;
        rounds.recovered(began.elapsed(), &guarded);
        // The next round needs them all connected, and to have been is no violation to miss.
        for name in CLUSTERS {
            connected(&mut changing, name, true).await?;
        }
    }
    rounds.counted = "all agents had given it up".to_owned();
    changing.end().await
}

/// Waits until an agent has, or has not, a session.
async fn connected(changing: &mut ChangingClusterset, name: &str, wanted: bool) -> anyhow::Result<()> {
    let agent = changing.clusterset.agent(name)?.admin().await?;
    let line = format!("tributary_agent_hub_connected {}", u8::from(wanted));
    eventually(&format!("the agent of {name} says {line:?}"), async || {
        let (_, metrics) = admin::get(agent, "/metrics").await?;
        Ok(metrics.lines().any(|found| found == line).then_some(()))
    })
    .await
}

/// Stops an agent until the hub has declared its cluster lost.
pub(super) async fn agent(mut changing: ChangingClusterset, rounds: &mut Rounds) -> anyhow::Result<()> {
    while rounds.next().is_some() {
        let name = CLUSTERS.choose(&mut changing.random).copied().unwrap_or("east");
        let process = changing.clusterset.agent(name)?.id().context("the agent runs")?;
        signal(process, "STOP").await?;
        changing.change().await?;
        eventually(&format!("{name} is lost"), async || {
            let kinds = questions::kinds(&changing.clusterset, name).await?;
            let last = kinds.iter().rev().find(|kind| kind.starts_with("member_"));
            Ok((last.map(String::as_str) == Some("member_lost")).then_some(()))
        })
        .await?;
        changing.change().await?;
        signal(process, "CONT").await?;
        let began = Instant::now();
        let guarded = changing.settled().await?;
        rounds.recovered(began.elapsed(), &guarded);
    }
    rounds.counted = "each was declared lost".to_owned();
    changing.end().await
}
