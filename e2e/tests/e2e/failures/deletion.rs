//! The law of deletion (docs/design.md, section 4): a hub that has lost its memory takes nothing away that lives.

use std::fs;

use anyhow::ensure;
use cluster::clusterset::{
    Backend, LocalClusterset,
    eventually::{eventually, holds_for},
};
use proto::v1;
use shared::model::Epoch;
use std::time::Duration;

use super::{
    guard::Guard,
    hub::{copy_directory, listed, state},
    shop::Shop,
};

const CLUSTERS: [&str; 3] = ["east", "west", "north"];
/// Time for which something is watched for not happening.
const STEADY: Duration = Duration::from_secs(6);

/// The hub starts with an empty directory beside agents that run.
pub(super) async fn an_empty_directory_deletes_nothing_that_lives(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &backend, &CLUSTERS).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "east", "cart", &["10.1.0.1", "10.1.0.2"])
        .await?;
    shop.export(&clusterset, "west", "cart", &["10.2.0.1"]).await?;
    shop.export(&clusterset, "west", "basket", &["10.2.0.9"]).await?;
    shop.arrived(&clusterset).await?;
    let guard = Guard::set(&clusterset, &shop.namespace).await?;

    clusterset.stop_hub().await?;
    fs::remove_dir_all(clusterset.data())?;
    clusterset.start_hub().await?;
    listed(&clusterset, &CLUSTERS).await?;
    shop.arrived(&clusterset).await?;
    guard.nothing_lost_of(&["cart", "basket"])?;

    // The guard would have seen it, and deletion by the rules still happens.
    shop.withdraw(&clusterset, "west", "basket").await?;
    shop.arrived(&clusterset).await?;
    guard.saw_going("basket").await?;
    guard.nothing_lost_of(&["cart"])?;
    shop.close(&clusterset).await?;
    clusterset.end().await
}

/// The hub starts with a copy of its directory from before exports came and went.
pub(super) async fn an_old_copy_deletes_nothing_that_lives(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &backend, &CLUSTERS).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "east", "cart", &["10.1.0.1"]).await?;
    shop.export(&clusterset, "west", "basket", &["10.2.0.1"]).await?;
    shop.export(&clusterset, "east", "sold", &["10.1.0.7"]).await?;
    shop.arrived(&clusterset).await?;
    clusterset.stop_hub().await?;
    let copy = dir.path().join("copy");
    copy_directory(&clusterset.data(), &copy)?;
    clusterset.start_hub().await?;

    shop.export(&clusterset, "north", "lamp", &["10.3.0.1"]).await?;
    shop.export(&clusterset, "west", "cart", &["10.2.0.5"]).await?;
    shop.withdraw(&clusterset, "east", "sold").await?;
    shop.arrived(&clusterset).await?;
    let before: Epoch = state(&clusterset).await?.epoch.parse()?;
    let guard = Guard::set(&clusterset, &shop.namespace).await?;

    clusterset.kill_hub().await?;
    fs::remove_dir_all(clusterset.data())?;
    fs::rename(&copy, clusterset.data())?;
    clusterset.start_hub().await?;
    listed(&clusterset, &CLUSTERS).await?;
    shop.arrived(&clusterset).await?;
    guard.nothing_lost_of(&["cart", "basket", "lamp"])?;
    let after: Epoch = state(&clusterset).await?.epoch.parse()?;
    ensure!(
        after > before,
        "cursors ahead of the log must lead to a new epoch: {before}, {after}"
    );
    shop.close(&clusterset).await?;
    clusterset.end().await
}

/// One member is away while the hub starts anew: what it exported stays until it lists or is forgotten.
pub(super) async fn an_absent_member_keeps_its_objects_until_it_is_forgotten(
    backend: Backend,
) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &backend, &CLUSTERS).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "east", "cart", &["10.1.0.1"]).await?;
    shop.export(&clusterset, "north", "cart", &["10.3.0.1"]).await?;
    shop.export(&clusterset, "north", "lamp", &["10.3.0.2"]).await?;
    shop.arrived(&clusterset).await?;
    let guard = Guard::set(&clusterset, &shop.namespace).await?;

    clusterset.kill_agent("north").await?;
    clusterset.stop_hub().await?;
    fs::remove_dir_all(clusterset.data())?;
    clusterset.start_hub().await?;
    listed(&clusterset, &["east", "west"]).await?;
    holds_for(STEADY, async || guard.nothing_lost_of(&["cart", "lamp"])).await?;
    shop.arrived(&clusterset).await?;

    let mut membership = clusterset.inspect().await?.membership;
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
        shop.arrived_in(&clusterset, cluster).await?;
    }

    clusterset.start_agent("north").await?;
    shop.export(&clusterset, "north", "cart", &["10.3.0.1"]).await?;
    shop.export(&clusterset, "north", "lamp", &["10.3.0.2"]).await?;
    shop.arrived(&clusterset).await?;
    eventually("north is a member again", async || {
        let members = state(&clusterset).await?.members;
        Ok(members
            .iter()
            .any(|member| member.cluster == "north" && member.listed)
            .then_some(()))
    })
    .await?;
    shop.close(&clusterset).await?;
    clusterset.end().await
}
