//! ClusterProperties of a member (KEP-2149): its id and its clusterset, for as long as it is a member.

use anyhow::ensure;
use cluster::clusterset::{eventually::eventually, questions};
use serde_json::{Value, json};
use shared::api::names::{
    ABOUT_API_VERSION, AGENT_MANAGER, LABEL_MANAGED_BY, PROPERTY_CLUSTER_ID, PROPERTY_CLUSTERSET,
};

use super::{
    definitions,
    story::{
        CLUSTERS, Kind, Story,
        expect::{complete, same},
        objects::plain,
        seen::label,
    },
};

/// The definition of ClusterProperty.
const PROPERTIES: &str = "clusterproperties.about.k8s.io";

/// Both properties of a cluster, each with what it has to say.
fn said_of(story: &Story, cluster: &str) -> [(&'static str, String); 2] {
    let clusterset = story.clusterset.authority.clusterset().name();
    [
        (PROPERTY_CLUSTER_ID, cluster.to_owned()),
        (PROPERTY_CLUSTERSET, clusterset.to_owned()),
    ]
}

fn property(name: &str, value: &str) -> Value {
    json!({"apiVersion": ABOUT_API_VERSION, "kind": "ClusterProperty", "metadata": {"name": name},
        "spec": {"value": value}})
}

/// Waits until a cluster says the right thing, by objects that the agent made.
async fn says(story: &Story, cluster: &str) -> anyhow::Result<()> {
    let properties = story.api(cluster, Kind::ClusterProperty)?;
    for (name, value) in said_of(story, cluster) {
        eventually(&format!("{cluster} says {name} = {value}"), async || {
            let found = serde_json::to_value(properties.get_opt(name).await?)?;
            let ours = label(&found, LABEL_MANAGED_BY) == AGENT_MANAGER;
            Ok((found["spec"]["value"] == value && ours).then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// The agent makes them, and again when somebody changed or deleted them; those that a user made with the right values
/// are the user's, and those of other names are nobody's matter.
pub(super) async fn a_member_says_what_it_is(story: &mut Story) -> anyhow::Result<()> {
    let mut theirs = Vec::new();
    for (name, value) in said_of(story, "west") {
        theirs.push(story.apply("west", property(name, &value)).await?);
    }
    story.start().await?;
    for cluster in ["east", "north"] {
        says(story, cluster).await?;
    }
    for (name, _) in said_of(story, "east") {
        story.apply("east", property(name, "another")).await?;
        let found = story.get("north", Kind::ClusterProperty, name).await?;
        story.delete("north", Kind::ClusterProperty, name).await?;
        let uid = found["metadata"]["uid"].clone();
        let properties = story.api("north", Kind::ClusterProperty)?;
        eventually(&format!("north has another {name}"), async || {
            let again = serde_json::to_value(properties.get_opt(name).await?)?;
            Ok((!again.is_null() && again["metadata"]["uid"] != uid).then_some(()))
        })
        .await?;
    }
    for cluster in ["east", "north"] {
        says(story, cluster).await?;
    }
    for before in theirs {
        let name = before["metadata"]["name"].as_str().unwrap_or_default();
        let now = story.get("west", Kind::ClusterProperty, name).await?;
        same(&now["metadata"], &before["metadata"], "a user's property")?;
    }
    // What the cluster says of itself is told the hub as any property is.
    for cluster in CLUSTERS {
        eventually(&format!("{cluster} tells two properties"), async || {
            let state = questions::state(&story.clusterset).await?;
            let profile = state.profiles.iter().find(|profile| profile.cluster == cluster);
            let told = profile.map(|profile| profile.properties.len());
            ensure!(told == Some(2), "it told {}", told.unwrap_or_default());
            Ok(Some(()))
        })
        .await?;
    }
    Ok(())
}

/// Without their definition everything else goes on; with it they are there.
pub(super) async fn the_definition_may_come_later(story: &mut Story) -> anyhow::Result<()> {
    definitions::remove(story, "west", PROPERTIES).await?;
    story.start().await?;
    story.export("west", "cart", &plain()).await?;
    story.everywhere(|seen| complete(seen, "cart").map(drop)).await?;
    questions::said(
        &story.clusterset.log("west"),
        "the API server does not have the kind",
    )
    .await?;
    definitions::install_again(story, "west", PROPERTIES).await?;
    says(story, "west").await
}
