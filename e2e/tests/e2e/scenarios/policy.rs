//! An operator's policy on imports: an import goes with all that belongs to it and stays away through all restarts, and
//! comes back with the rule.

use anyhow::ensure;
use serde_json::Value;

use super::story::{
    CLUSTERS, Kind, Story,
    expect::{complete, exported, from_clusters, gone, same},
    objects::plain,
    seen::condition,
};

/// West takes `till`, and what passes between the steps of a story.
const TIGHT: &str = "
apiVersion: tributary.dev/v1alpha1
kind: ClustersetPolicy
spec:
  members:
  - name: few
    members: [west]
    imports:
    - namespaces: [\"*\"]
      services: [till, \"fence-*\"]
";
/// The same rule, which allows everything.
const LOOSE: &str = "
apiVersion: tributary.dev/v1alpha1
kind: ClustersetPolicy
spec:
  members:
  - name: few
    members: [west]
    imports:
    - namespaces: [\"*\"]
";

/// West exports `cart` too: its own slices of it go with the import, and what its export says of itself stays.
pub(super) async fn what_a_member_takes_goes_and_comes_with_the_rule(
    story: &mut Story,
) -> anyhow::Result<()> {
    story.start().await?;
    story.export_in_order(&["east", "west"], "cart", &plain()).await?;
    story.export("east", "till", &plain()).await?;
    all_is_there(story).await?;
    let before = statuses(story).await?;

    story.clusterset.apply_policy(TIGHT).await?;
    story.until("west", |seen| gone(seen, "cart")).await?;
    all_but_cart_in_west(story).await?;
    story.clusterset.kill_agent("west").await?;
    story.clusterset.start_agent("west").await?;
    story.pass("east").await?;
    all_but_cart_in_west(story).await?;
    story.clusterset.kill_hub().await?;
    story.clusterset.start_hub().await?;
    for cluster in CLUSTERS {
        story.pass(cluster).await?;
    }
    all_but_cart_in_west(story).await?;
    same_statuses(story, &before).await?;
    story
        .until("east", |seen| {
            let arrived = condition(seen.export("cart")?, oracle::ARRIVED)?;
            let wanted = "in 2 of 3 clusters; withheld by policy from west";
            ensure!(arrived["message"] == wanted, "cart says {arrived}");
            Ok(())
        })
        .await?;

    story.clusterset.apply_policy(LOOSE).await?;
    all_is_there(story).await?;
    same_statuses(story, &before).await?;
    story.all_is_right().await
}

async fn all_is_there(story: &Story) -> anyhow::Result<()> {
    story
        .everywhere(|seen| {
            complete(seen, "till")?;
            from_clusters(complete(seen, "cart")?, &["east", "west"])?;
            let slices = seen.imported("cart").count();
            ensure!(slices == 2, "{slices} slices of cart instead of 2");
            Ok(())
        })
        .await?;
    for cluster in ["east", "west"] {
        story.until(cluster, |seen| exported(seen, "cart", "")).await?;
    }
    Ok(())
}

/// At this moment: whoever asks has waited for something that comes after.
async fn all_but_cart_in_west(story: &Story) -> anyhow::Result<()> {
    for cluster in CLUSTERS {
        let seen = story.look(cluster).await?;
        complete(&seen, "till")?;
        match cluster {
            "west" => gone(&seen, "cart")?,
            _ => from_clusters(complete(&seen, "cart")?, &["east", "west"])?,
        }
    }
    Ok(())
}

/// The statuses of the exports of `cart` without the clusters that hold it.
async fn statuses(story: &Story) -> anyhow::Result<Vec<Value>> {
    let mut statuses = Vec::new();
    for cluster in ["east", "west"] {
        let export = story.get(cluster, Kind::ServiceExport, "cart").await?;
        let mut status = export["status"].clone();
        if let Some(conditions) = status["conditions"].as_array_mut() {
            conditions.retain(|condition| condition["type"] != oracle::ARRIVED);
        }
        statuses.push(status);
    }
    Ok(statuses)
}

async fn same_statuses(story: &Story, before: &[Value]) -> anyhow::Result<()> {
    for (now, before) in statuses(story).await?.iter().zip(before) {
        same(now, before, "the status of an export of cart")?;
    }
    Ok(())
}
