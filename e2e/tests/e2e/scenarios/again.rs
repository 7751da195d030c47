//! Deleted and made again at once, under the same name: what is there now is another object, and counts as one.

use anyhow::ensure;
use serde_json::{Value, json};

use super::story::{
    Kind, Story, act,
    expect::{backends_are, complete, exported, from_clusters, same},
    objects::{address, export, plain, ports, with},
};

/// The Service of an export, before anybody can have seen it gone: the new one's properties are exported.
/// Then the export: the new one is the youngest, and the next oldest wins. Then that one's, while its agent is away: the
/// hub hears of the new one without having heard that the old one went.
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

    let before = uid(story, "east", Kind::Service).await?;
    story.delete("east", Kind::Service, "cart").await?;
    let moved = ports(json!([{"name": "http", "port": 8080}]));
    story.back("east", "cart", &moved).await?;
    ensure!(
        uid(story, "east", Kind::Service).await? != before,
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

    let before = uid(story, "east", Kind::ServiceExport).await?;
    act::next_second().await;
    story.delete("east", Kind::ServiceExport, "cart").await?;
    story.apply("east", export("cart")).await?;
    ensure!(
        uid(story, "east", Kind::ServiceExport).await? != before,
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
    in_conflict(story, conflicts).await?;
    unseen(story).await?;
    in_conflict(story, conflicts).await?;
    story.all_is_right().await
}

/// The export of west, while nobody is there who could tell that it went: its place among the exports is the new one's.
async fn unseen(story: &mut Story) -> anyhow::Result<()> {
    let before = uid(story, "west", Kind::ServiceExport).await?;
    story.clusterset.kill_agent("west").await?;
    act::next_second().await;
    story.delete("west", Kind::ServiceExport, "cart").await?;
    story.apply("west", export("cart")).await?;
    ensure!(
        uid(story, "west", Kind::ServiceExport).await? != before,
        "the export of west is the old one"
    );
    story.clusterset.start_agent("west").await?;
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            from_clusters(import, &["east", "west"])?;
            same(
                &import["spec"]["ports"][0]["port"],
                &json!(8080),
                "the port of the export that is oldest again",
            )?;
            same(&import["spec"]["sessionAffinity"], &json!("None"), "its affinity")
        })
        .await
        .map(drop)
}

/// Both exports say the same.
async fn in_conflict(story: &Story, conflicts: &str) -> anyhow::Result<()> {
    for cluster in ["east", "west"] {
        story
            .until(cluster, |seen| exported(seen, "cart", conflicts))
            .await?;
    }
    Ok(())
}

async fn uid(story: &Story, cluster: &str, kind: Kind) -> anyhow::Result<Value> {
    Ok(story.get(cluster, kind, "cart").await?["metadata"]["uid"].clone())
}
