//! Fail static (docs/design.md, section 4): without a hub an agent keeps everything and looks after its own.

use std::time::Duration;

use cluster::clusterset::{
    Backend, LocalClusterset, admin,
    eventually::{eventually, holds_for},
};

use super::{guard::Guard, hub::listed, shop::Shop};

const CLUSTERS: [&str; 3] = ["east", "west", "north"];
/// Longer than any silence that either side bears.
const AWAY: Duration = Duration::from_secs(12);
/// Time for which something is watched for not happening.
const STEADY: Duration = Duration::from_secs(5);

/// The hub is away for long; agents run on, and are restarted.
pub(super) async fn a_hub_that_is_away_changes_nothing(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &backend, &CLUSTERS).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "east", "cart", &["10.1.0.1"]).await?;
    shop.export(&clusterset, "west", "cart", &["10.2.0.1"]).await?;
    shop.export(&clusterset, "west", "lamp", &["10.2.0.2"]).await?;
    shop.arrived(&clusterset).await?;
    let guard = Guard::set(&clusterset, &shop.namespace).await?;

    clusterset.kill_hub().await?;
    holds_for(AWAY, async || guard.nothing_lost_of(&["cart", "lamp"])).await?;
    // A cluster's own endpoints need no hub.
    shop.export(&clusterset, "east", "cart", &["10.1.0.1", "10.1.0.2"])
        .await?;
    shop.arrived_in(&clusterset, "east").await?;

    for name in ["east", "north"] {
        clusterset.kill_agent(name).await?;
        clusterset.start_agent(name).await?;
        ready(&mut clusterset, name).await?;
    }
    shop.export(&clusterset, "east", "cart", &["10.1.0.1", "10.1.0.2", "10.1.0.3"])
        .await?;
    shop.arrived_in(&clusterset, "east").await?;
    holds_for(STEADY, async || guard.nothing_lost_of(&["cart", "lamp"])).await?;

    clusterset.start_hub().await?;
    listed(&clusterset, &CLUSTERS).await?;
    shop.arrived(&clusterset).await?;
    guard.nothing_lost_of(&["cart", "lamp"])?;
    shop.close(&clusterset).await?;
    clusterset.end().await
}

/// Waits until an agent has listed its cluster, hub or no hub.
async fn ready(clusterset: &mut LocalClusterset, name: &str) -> anyhow::Result<()> {
    let address = clusterset.agent(name)?.admin().await?;
    eventually(
        &format!("the agent of {name} is ready without a hub"),
        async || Ok((admin::get(address, "/readyz").await?.0 == 200).then_some(())),
    )
    .await
}
