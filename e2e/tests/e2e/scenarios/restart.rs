//! A restarted agent finds its cluster as it left it, and writes nothing.

use anyhow::ensure;
use serde_json::json;

use super::story::{
    CLUSTERS, Kind, Story, act,
    expect::{complete, exported, gone, refused},
    objects::{self, address, export, export_with, headless, plain, service, slice, slice_ports, with},
    seen::Seen,
};

/// Something of everything: conflicts, a headless service, refusals, several slices, ports without names.
async fn a_full_clusterset(story: &Story) -> anyhow::Result<()> {
    let local = with(
        plain(),
        json!({"internalTrafficPolicy": "Local", "trafficDistribution": "PreferClose"}),
    );
    story.export("east", "cart", &plain()).await?;
    story.export("north", "db", &headless()).await?;
    let unnamed = objects::ports(json!([{"port": 80}]));
    story.export("west", "till", &unnamed).await?;
    let labels = json!({"exportedLabels": {"example.org/tier": "gold"}});
    story.back("west", "labelled", &plain()).await?;
    story.apply("west", export_with("labelled", labels)).await?;
    story.apply("north", export("missing")).await?;
    act::next_second().await;
    story.export("west", "cart", &local).await?;
    let more = objects::ports(json!([{"name": "grpc", "port": 90}]));
    story.export("east", "till", &more).await?;
    for number in 2..=4 {
        let pods = json!([{
            "addresses": [address("west", number)], "zone": "zone-a", "nodeName": "node-1",
            "conditions": {"ready": number == 2, "serving": true, "terminating": false},
        }]);
        let suffix = number.to_string();
        story
            .apply("west", slice("cart", &suffix, slice_ports(&plain()), pods))
            .await?;
    }
    Ok(())
}

async fn all_is_there(story: &Story) -> anyhow::Result<()> {
    story
        .everywhere(|seen| {
            for name in ["cart", "db", "till", "labelled"] {
                complete(seen, name)?;
            }
            let slices = seen.imported("cart").count();
            ensure!(slices == 5, "{slices} slices of cart instead of 5");
            gone(seen, "missing")
        })
        .await?;
    let conflicts = "InternalTrafficPolicyConflict,TrafficDistributionConflict";
    for cluster in ["east", "west"] {
        story
            .until(cluster, |seen| {
                exported(seen, "cart", conflicts)?;
                exported(seen, "till", "PortConflict")
            })
            .await?;
    }
    story
        .until("north", |seen| {
            exported(seen, "db", "")?;
            refused(seen, "missing", "NoService")
        })
        .await?;
    // Ports and clusters of an import may arrive after all else that was looked at.
    story.all_is_right().await
}

/// Killed or stopped, one after the other or the hub between them: nothing is written by a restart.
pub(super) async fn writes_nothing(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    a_full_clusterset(story).await?;
    all_is_there(story).await?;
    story.pass("east").await?;
    story.everywhere(Seen::arrivals_are_said).await?;
    let before = story.listen().await?;
    story.clusterset.kill_agent("west").await?;
    story.clusterset.start_agent("west").await?;
    story.clusterset.stop_agent("east").await?;
    story.clusterset.start_agent("east").await?;
    // The fence is imported by restarted agents after they have compared all else with the hub's snapshot.
    for cluster in CLUSTERS {
        story.pass(cluster).await?;
    }
    story.nothing_written_since(&before).await?;
    story.clusterset.kill_hub().await?;
    story.clusterset.kill_agent("north").await?;
    story.clusterset.start_hub().await?;
    story.clusterset.start_agent("north").await?;
    for cluster in CLUSTERS {
        story.pass(cluster).await?;
    }
    story.nothing_written_since(&before).await?;
    all_is_there(story).await
}

/// Changes while an agent was away are made good when it is back, and nothing else is written.
pub(super) async fn an_absent_agent_catches_up(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    a_full_clusterset(story).await?;
    all_is_there(story).await?;
    story.clusterset.kill_agent("west").await?;
    // Meanwhile: an import changes, one goes, one comes; in west itself an export goes, and one comes.
    let pods = json!([{"addresses": [address("east", 9)]}]);
    story
        .apply("east", slice("cart", "1", slice_ports(&plain()), pods))
        .await?;
    story.delete("north", Kind::ServiceExport, "db").await?;
    story.export("north", "fresh", &plain()).await?;
    story.delete("west", Kind::ServiceExport, "labelled").await?;
    story.apply("west", service("late", &plain())).await?;
    story.apply("west", export("late")).await?;
    for cluster in ["east", "north"] {
        story
            .until(cluster, |seen| {
                gone(seen, "db")?;
                complete(seen, "fresh").map(drop)
            })
            .await?;
        let seen = story.look(cluster).await?;
        complete(&seen, "labelled")?; // nobody has said that it is gone
        gone(&seen, "late")?;
    }
    let till = story.get("west", Kind::ServiceImport, "till").await?;
    story.clusterset.start_agent("west").await?;
    story
        .everywhere(|seen| {
            for name in ["cart", "till", "fresh", "late"] {
                complete(seen, name)?;
            }
            gone(seen, "db")?;
            gone(seen, "labelled")?;
            let moved = ("east".to_owned(), address("east", 9));
            ensure!(
                seen.backends("cart").contains(&moved),
                "a change of endpoints was missed: {:?}",
                seen.backends("cart")
            );
            Ok(())
        })
        .await?;
    let after = story.get("west", Kind::ServiceImport, "till").await?;
    ensure!(
        till["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"],
        "the restart wrote an import that had not changed"
    );
    story.all_is_right().await
}
