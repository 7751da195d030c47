//! The runbook of a backup that is restored.

use std::fs;

use anyhow::ensure;
use cluster::clusterset::{Backend, LocalClusterset, questions, shop::Shop};

use super::{Page, Player};

/// A running hub is backed up, its disk is lost, and nobody loses anything, not even what came after the backup.
pub(super) async fn a_backup_is_restored(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let clusters = ["east", "west"];
    let mut clusterset = LocalClusterset::start(dir.path(), &backend, &clusters).await?;
    questions::listed(&clusterset, &clusters).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "east", "cart", &["10.96.0.7"]).await?;
    shop.arrived(&clusterset).await?;
    let mut page = Page::of("guides/backup.md", "Copies of the log")?;
    let backup = dir.path().join("backup");
    let file = |name: &str| clusterset.certificate(name).display().to_string();
    let player = Player::at(&clusterset)
        .with("https://HUB:8443", format!("https://{}", clusterset.hub_address))
        .with("DIR", backup.display().to_string())
        .with("data", clusterset.data().display().to_string())
        .with("ca.crt", file("ca.crt"))
        .with("operator.crt", file("operator.crt"))
        .with("operator.key", file("operator.key"));

    let command = "tributary-hub log backup DIR --hub https://HUB:8443 --tls-ca ca.crt --tls-cert operator.crt --tls-key \
                   operator.key";
    player.play(&clusterset, page.take(command)?).await?;
    let (before, _) = questions::epoch_and_events(&clusterset, 1).await?;
    shop.export(&clusterset, "west", "till", &["10.96.0.8"]).await?;
    shop.arrived(&clusterset).await?;

    clusterset.kill_hub().await?;
    fs::rename(clusterset.data(), dir.path().join("aside"))?;
    let restore = page.take("tributary-hub log restore DIR --data data")?;
    player.play(&clusterset, restore).await?;
    clusterset.start_hub().await?;
    questions::listed(&clusterset, &clusters).await?;
    shop.arrived(&clusterset).await?;
    let (after, _) = questions::epoch_and_events(&clusterset, 1).await?;
    ensure!(before != after, "no epoch began with the backup");
    let said = player
        .play(&clusterset, page.take("tributary member list")?)
        .await?;
    ensure!(clusters.iter().all(|cluster| said.contains(cluster)), "{said}");
    page.all_played(&[])?;
    clusterset.end().await
}
