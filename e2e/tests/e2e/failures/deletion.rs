//! The law of deletion (docs/design.md, section 4): a hub that has lost its memory takes nothing away that lives.

use std::fs;

use anyhow::ensure;
use proto::v1;
use shared::model::Epoch;
use std::time::Duration;
use tributary_e2e::clusterset::{
    Backend, LocalClusterset,
    eventually::{eventually, holds_for},
};

use super::{
    guard::Guard,
    hub::{copy_directory, listed, state},
    shop::Shop,
};

const CLUSTERS: [&str; 3] = ["east", "west", "north"];
/// How long something is watched for not happening.
const STEADY: Duration = Duration::from_secs(6);

/// The hub starts with an empty directory beside agents that run.
pub(super) async fn an_empty_directory_deletes_nothing_that_lives(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut world = LocalClusterset::start(dir.path(), &backend, &CLUSTERS).await?;
    let mut shop = Shop::open(&world).await?;
    shop.export(&world, "east", "cart", &["10.1.0.1", "10.1.0.2"])
        .await?;
    shop.export(&world, "west", "cart", &["10.2.0.1"]).await?;
    shop.export(&world, "west", "basket", &["10.2.0.9"]).await?;
    shop.arrived(&world).await?;
    let guard = Guard::set(&world, &shop.namespace).await?;

    world.stop_hub().await?;
    fs::remove_dir_all(world.data())?;
    world.start_hub().await?;
    listed(&world, &CLUSTERS).await?;
    shop.arrived(&world).await?;
    guard.nothing_lost_of(&["cart", "basket"])?;

    // The guard would have seen it, and deletion by the rules still happens.
    shop.withdraw(&world, "west", "basket").await?;
    shop.arrived(&world).await?;
    guard.saw_going("basket").await?;
    guard.nothing_lost_of(&["cart"])?;
    shop.close(&world).await?;
    world.end().await
}

/// The hub starts with a copy of its directory from before exports came and went.
pub(super) async fn an_old_copy_deletes_nothing_that_lives(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut world = LocalClusterset::start(dir.path(), &backend, &CLUSTERS).await?;
    let mut shop = Shop::open(&world).await?;
    shop.export(&world, "east", "cart", &["10.1.0.1"]).await?;
    shop.export(&world, "west", "basket", &["10.2.0.1"]).await?;
    shop.export(&world, "east", "sold", &["10.1.0.7"]).await?;
    shop.arrived(&world).await?;
    world.stop_hub().await?;
    let copy = dir.path().join("copy");
    copy_directory(&world.data(), &copy)?;
    world.start_hub().await?;

    shop.export(&world, "north", "lamp", &["10.3.0.1"]).await?;
    shop.export(&world, "west", "cart", &["10.2.0.5"]).await?;
    shop.withdraw(&world, "east", "sold").await?;
    shop.arrived(&world).await?;
    let before: Epoch = state(&world).await?.epoch.parse()?;
    let guard = Guard::set(&world, &shop.namespace).await?;

    world.kill_hub().await?;
    fs::remove_dir_all(world.data())?;
    fs::rename(&copy, world.data())?;
    world.start_hub().await?;
    listed(&world, &CLUSTERS).await?;
    shop.arrived(&world).await?;
    guard.nothing_lost_of(&["cart", "basket", "lamp"])?;
    let after: Epoch = state(&world).await?.epoch.parse()?;
    ensure!(
        after > before,
        "cursors ahead of the log must lead to a new epoch: {before}, {after}"
    );
    shop.close(&world).await?;
    world.end().await
}

/// One member is away while the hub starts anew: what it exported stays until it lists or is forgotten.
pub(super) async fn an_absent_member_keeps_its_objects_until_it_is_forgotten(
    backend: Backend,
) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut world = LocalClusterset::start(dir.path(), &backend, &CLUSTERS).await?;
    let mut shop = Shop::open(&world).await?;
    shop.export(&world, "east", "cart", &["10.1.0.1"]).await?;
    shop.export(&world, "north", "cart", &["10.3.0.1"]).await?;
    shop.export(&world, "north", "lamp", &["10.3.0.2"]).await?;
    shop.arrived(&world).await?;
    let guard = Guard::set(&world, &shop.namespace).await?;

    world.kill_agent("north").await?;
    world.stop_hub().await?;
    fs::remove_dir_all(world.data())?;
    world.start_hub().await?;
    listed(&world, &["east", "west"]).await?;
    holds_for(STEADY, async || guard.nothing_lost_of(&["cart", "lamp"])).await?;
    shop.arrived(&world).await?;

    let mut membership = world.inspect().await?.membership;
    let mut forget = v1::ForgetMemberRequest {
        cluster: "north".into(),
        ..Default::default()
    };
    let tried = membership.forget(forget.clone()).await?.into_inner();
    ensure!(
        !tried.done && !tried.effects.is_empty(),
        "a dry run says what would happen: {tried:?}"
    );
    guard.nothing_lost_of(&["cart", "lamp"])?;
    forget.confirm = true;
    ensure!(
        membership.forget(forget).await?.into_inner().done,
        "it was confirmed"
    );
    shop.forget_cluster("north");
    for cluster in ["east", "west"] {
        shop.arrived_in(&world, cluster).await?;
    }

    world.start_agent("north").await?;
    shop.export(&world, "north", "cart", &["10.3.0.1"]).await?;
    shop.export(&world, "north", "lamp", &["10.3.0.2"]).await?;
    shop.arrived(&world).await?;
    eventually("north is a member again", async || {
        let members = state(&world).await?.members;
        Ok(members
            .iter()
            .any(|member| member.cluster == "north" && member.listed)
            .then_some(()))
    })
    .await?;
    shop.close(&world).await?;
    world.end().await
}
