//! Deleted and made again at once, under the same name: what is there now is another object, and counts as one.

use anyhow::ensure;
use serde_json::{Value, json};

use super::story::{
    Kind, Story, act,
    expect::{backends_are, complete, exported, from_clusters, same},
    objects::{address, export, plain, ports, with},
};

/// The Service of an export, before anybody can have seen it gone: the new one's properties are exported.
/// Then the export: the new one is the youngest, and the next oldest wins.
pub(super) async fn a_service_and_an_export_are_made_again_at_once(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export("east", "cart", &plain()).await?;
    act::next_second().await;
    let sticky = with(plain(), json!({"sessionAffinity": "ClientIP"}));
    story.export("west", "cart", &sticky).await?;
    let endpoints = [("east", &*address("east", 1)), ("west", &*address("west", 1))];
    let both = |import: &Value| from_clusters(import, &["east", "west"]);
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            both(import)?;
            same(&import["spec"]["sessionAffinity"], &json!("None"), "the affinity")?;
            backends_are(seen, "cart", &endpoints)
        })
        .await?;

    let before = uid(story, Kind::Service).await?;
    story.delete("east", Kind::Service, "cart").await?;
    let moved = ports(json!([{"name": "http", "port": 8080}]));
    story.back("east", "cart", &moved).await?;
    ensure!(
        uid(story, Kind::Service).await? != before,
        "the Service is the old one"
    );
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            both(import)?;
            same(
                &import["spec"]["ports"][0]["port"],
                &json!(8080),
                "the oldest export's port",
            )
        })
        .await?;
    let conflicts = "PortConflict,SessionAffinityConflict,SessionAffinityConfigConflict";
    story
        .until("east", |seen| exported(seen, "cart", conflicts))
        .await?;

    let before = uid(story, Kind::ServiceExport).await?;
    act::next_second().await;
    story.delete("east", Kind::ServiceExport, "cart").await?;
    story.apply("east", export("cart")).await?;
    ensure!(
        uid(story, Kind::ServiceExport).await? != before,
        "the export is the old one"
    );
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            both(import)?;
            same(
                &import["spec"]["ports"][0]["port"],
                &json!(80),
                "the port of the export that is oldest now",
            )?;
            same(
                &import["spec"]["sessionAffinity"],
                &json!("ClientIP"),
                "its affinity",
            )
        })
        .await?;
    for cluster in ["east", "west"] {
        story
            .until(cluster, |seen| exported(seen, "cart", conflicts))
            .await?;
    }
    story.all_is_right().await
}

async fn uid(story: &Story, kind: Kind) -> anyhow::Result<Value> {
    Ok(story.get("east", kind, "cart").await?["metadata"]["uid"].clone())
}
