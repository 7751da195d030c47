//! Owns: a hub killed again and again while two members report: the acknowledged prefix is there, the chain holds.
//! Never: kills in an orderly way. TRIBUTARY_KILL_ROUNDS sets how often (default 10); `cargo crash` does it with
//! agents, and in more ways.

use anyhow::{Context, ensure};
use cluster::clusterset::{Backend, LocalClusterset};
use crash::{acknowledged::Reporters, facts};
use std::env;

/// Number of kills of the hub, unless the environment says otherwise.
const ROUNDS: u64 = 10;
/// Acknowledged facts after which the hub is killed, at most.
const ACKNOWLEDGED_MAX: u64 = 400;
const MEMBERS: [&str; 2] = ["east", "west"];

pub(super) async fn nothing_acknowledged_is_lost() -> anyhow::Result<()> {
    let rounds = match env::var("TRIBUTARY_KILL_ROUNDS") {
        Ok(text) => text.parse().context("TRIBUTARY_KILL_ROUNDS is a number")?,
        Err(_) => ROUNDS,
    };
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &MEMBERS).await?;
    let mut reporters = Reporters::new(&MEMBERS, facts::change);
    let mut found = 0;
    for round in 0..rounds {
        // Spread over the whole range, differently in each round.
        let kill_after = 1 + round * 7_919 % ACKNOWLEDGED_MAX;
        let acknowledged = async {
            let reporting = reporters.start(&clusterset).await?;
            reporting.acknowledged(kill_after).await?;
            clusterset.kill_hub().await?;
            let acknowledged = reporting.ended().await?;
            clusterset.start_hub().await?;
            reporters.check(&clusterset, &acknowledged).await
        };
        found += acknowledged.await.with_context(|| format!("round {round}"))?;
    }
    clusterset.kill_hub().await?;
    let report = hub::log::verify(&clusterset.data(), &mut |_| {})?;
    ensure!(report.is_good(), "the chain does not hold: {report:?}");
    ensure!(found > 0, "nothing was acknowledged before a kill");
    println!(
        "{found} acknowledged facts found again after {rounds} kills, {} events verified",
        reporters.events()
    );
    Ok(())
}
