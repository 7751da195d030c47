//! Fail static (docs/design.md, section 4): without a hub an agent keeps everything and looks after its own.

use std::time::Duration;

use tributary_e2e::clusterset::{
    Backend, LocalClusterset, admin,
    eventually::{eventually, holds_for},
};

use super::{guard::Guard, hub::listed, shop::Shop};

const CLUSTERS: [&str; 3] = ["east", "west", "north"];
/// Longer than any silence that either side bears.
const AWAY: Duration = Duration::from_secs(12);
/// How long something is watched for not happening.
const STEADY: Duration = Duration::from_secs(5);

/// The hub is away for long; agents run on, and are restarted.
pub(super) async fn a_hub_that_is_away_changes_nothing(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut world = LocalClusterset::start(dir.path(), &backend, &CLUSTERS).await?;
    let mut shop = Shop::open(&world).await?;
    shop.export(&world, "east", "cart", &["10.1.0.1"]).await?;
    shop.export(&world, "west", "cart", &["10.2.0.1"]).await?;
    shop.export(&world, "west", "lamp", &["10.2.0.2"]).await?;
    shop.arrived(&world).await?;
    let guard = Guard::set(&world, &shop.namespace).await?;

    world.kill_hub().await?;
    holds_for(AWAY, async || guard.nothing_lost_of(&["cart", "lamp"])).await?;
    // A cluster's own endpoints need no hub.
    shop.export(&world, "east", "cart", &["10.1.0.1", "10.1.0.2"])
        .await?;
    shop.arrived_in(&world, "east").await?;

    for name in ["east", "north"] {
        world.kill_agent(name).await?;
        world.start_agent(name).await?;
        ready(&mut world, name).await?;
    }
    shop.export(&world, "east", "cart", &["10.1.0.1", "10.1.0.2", "10.1.0.3"])
        .await?;
    shop.arrived_in(&world, "east").await?;
    holds_for(STEADY, async || guard.nothing_lost_of(&["cart", "lamp"])).await?;

    world.start_hub().await?;
    listed(&world, &CLUSTERS).await?;
    shop.arrived(&world).await?;
    guard.nothing_lost_of(&["cart", "lamp"])?;
    shop.close(&world).await?;
    world.end().await
}

/// Waits until an agent has listed its cluster, hub or no hub.
async fn ready(world: &mut LocalClusterset, name: &str) -> anyhow::Result<()> {
    let address = world.agent(name)?.admin().await?;
    eventually(
        &format!("the agent of {name} is ready without a hub"),
        async || Ok((admin::get(address, "/readyz").await?.0 == 200).then_some(())),
    )
    .await
}
