//! Acts on the clusters in the demo and in its check: the exports, and the conflict among them. It acts as a user and
//! waits for the clusters' APIs.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context;
use jiff::Timestamp;
use kube::Client;

use super::{kept::Name, objects, picture::Picture, stage::Stage};

/// Times in metadata are whole seconds.
const TIMESTAMP_UNIT: Duration = Duration::from_secs(1);

/// The service that two clusters export.
pub(super) fn cart() -> Name {
    Name::new("shop", "cart")
}

/// The service that not every cluster has the namespace for.
pub(super) fn invoice() -> Name {
    Name::new("billing", "invoice")
}

/// The headless service.
pub(super) fn search() -> Name {
    Name::new("shop", "search")
}

/// One cluster's client.
pub(super) fn client<'a>(clients: &'a BTreeMap<String, Client>, cluster: &str) -> anyhow::Result<&'a Client> {
    let client = clients.get(cluster);
    client.with_context(|| format!("there is no cluster {cluster}"))
}

/// West exports two services and north one; they arrive wherever their namespace is.
pub(super) async fn first_exports(
    stage: &mut Stage,
    clients: &BTreeMap<String, Client>,
) -> anyhow::Result<()> {
    for client in clients.values() {
        objects::apply(client, objects::EVERYWHERE).await?;
    }
    let shop = Name::new("", &cart().namespace);
    let there = stage.until("every cluster has the namespace shop", |picture| {
        let mut views = picture.clusters().filter_map(|cluster| picture.view(cluster));
        views.all(|view| view.namespaces.get(&shop).is_some())
    });
    there.await?;
    objects::apply(client(clients, "west")?, objects::WEST).await?;
    objects::apply(client(clients, "north")?, objects::NORTH).await?;
    let arrived = stage.until("the first three exports are everywhere", |picture| {
        picture.is_everywhere("west", &cart())
            && picture.is_everywhere("west", &invoice())
            && picture.is_everywhere("north", &search())
    });
    arrived.await.map(drop)
}

/// East exports shop/cart too, later and with other settings; both exporters are told.
pub(super) async fn conflict(stage: &mut Stage, clients: &BTreeMap<String, Client>) -> anyhow::Result<()> {
    until_later_than_export(&stage.picture, "west", &cart()).await?;
    objects::apply(client(clients, "east")?, objects::EAST).await?;
    conflict_told(stage).await
}

/// Waits until both exporters of shop/cart know.
pub(super) async fn conflict_told(stage: &mut Stage) -> anyhow::Result<()> {
    let told = stage.until("the conflict is told to both exporters of shop/cart", |picture| {
        let rows = picture.rows();
        let carts: Vec<_> = rows.iter().filter(|row| row.service == cart()).collect();
        carts.len() == 2
            && carts.iter().all(|row| row.conflict.is_some())
            && picture.is_everywhere("east", &cart())
    });
    told.await.map(drop)
}

/// Waits for the second to pass in which an export was created: one made in the same second is not younger.
pub(super) async fn until_later_than_export(
    picture: &Picture,
    cluster: &str,
    service: &Name,
) -> anyhow::Result<()> {
    let export = picture.export(cluster, service).context("the export is there")?;
    let created = export
        .metadata
        .creation_timestamp
        .as_ref()
        .context("an object has its time")?;
    let later = created.0.checked_add(TIMESTAMP_UNIT)?;
    // The clock itself is what is waited for.
    while let Ok(left) = Duration::try_from(later.duration_since(Timestamp::now())) {
        if left.is_zero() {
            break;
        }
        tokio::time::sleep(left.min(TIMESTAMP_UNIT)).await;
    }
    Ok(())
}
