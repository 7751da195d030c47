//! Owns: the admission policies about what a member's cluster says of itself, on a real API server: who may make, change
//! and delete the two ClusterProperties, and what the others are told.
//! Never: uses the shared clusters, whose tests play the agent without being it.

use anyhow::Context;
use cluster::deploy;
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use shared::api::names::{
    ABOUT_API_VERSION, AGENT_MANAGER, LABEL_MANAGED_BY, PROPERTY_CLUSTER_ID, PROPERTY_CLUSTERSET,
    TRIBUTARY_NAMESPACE,
};
use tributary_e2e::suite::{SCENARIO_WAIT, test_with_own_clusters};

use super::policies::{NOT_ITS_OWN, UNMARKED, account, apply, enforced, on_trial, refused, with_policies};

/// The refusal of a change of its value.
const IMMUTABLE: &str = "'tributary-membership-is-immutable' denied request: what a cluster says of itself does not \
    change while it is a member of a clusterset: delete a wrong one that is not the agent's, and Tributary's agent makes \
    the right one; a cluster that shall have another id leaves first";
/// The refusal of removing, or marking, an object of the agent's.
const THE_AGENTS: &str = "'tributary-membership-is-immutable' denied request: this ClusterProperty is Tributary's \
    agent's for as long as the cluster is a member of a clusterset, and carries the label \
    app.kubernetes.io/managed-by: tributary-agent: uninstall the agent before you take it away";
const BOTH: [&str; 2] = [PROPERTY_CLUSTER_ID, PROPERTY_CLUSTERSET];
/// A property that says nothing of a membership.
const OTHER: &str = "fingerprint.example.org";

pub(super) fn trials() -> Vec<Trial> {
    vec![test_with_own_clusters(
        "real::charts::policies_keep_what_a_member_says",
        SCENARIO_WAIT,
        membership,
    )]
}

async fn membership() -> anyhow::Result<()> {
    let fleet = with_policies(&["membership"]).await?;
    let cluster = &fleet.clusters()[0];
    let client = cluster.client().await?;
    let agent = account(cluster, TRIBUTARY_NAMESPACE, "tributary-agent").await?;
    enforced(THE_AGENTS, || on_trial(&client, marked(BOTH[0], "probe"))).await?;
    enforced(UNMARKED, || on_trial(&agent, plain(BOTH[0], "probe"))).await?;
    for name in BOTH {
        anothers_is_left_alone(&agent, &client, name).await?;
        the_agents_is_the_agents(&agent, &client, name).await?;
    }
    others_are_no_matter_of_it(&client).await
}

fn plain(name: &str, value: &str) -> Value {
    json!({"apiVersion": ABOUT_API_VERSION, "kind": "ClusterProperty", "metadata": {"name": name},
        "spec": {"value": value}})
}

fn marked(name: &str, value: &str) -> Value {
    let mut property = plain(name, value);
    property["metadata"]["labels"] = json!({ LABEL_MANAGED_BY: AGENT_MANAGER });
    property
}

async fn merge(client: &Client, name: &str, change: Value) -> anyhow::Result<()> {
    let object: DynamicObject = serde_json::from_value(plain(name, "any"))?;
    let api = deploy::api(client, &object)?;
    api.patch(name, &PatchParams::default(), &Patch::Merge(&change))
        .await?;
    Ok(())
}

async fn delete(client: &Client, name: &str) -> anyhow::Result<()> {
    let object: DynamicObject = serde_json::from_value(plain(name, "any"))?;
    deploy::api(client, &object)?
        .delete(name, &DeleteParams::default())
        .await?;
    Ok(())
}

fn says(value: &str) -> Value {
    json!({"spec": {"value": value}})
}

async fn the_agents_is_the_agents(agent: &Client, client: &Client, name: &str) -> anyhow::Result<()> {
    apply(agent, marked(name, "right")).await?;
    refused(
        merge(client, name, says("wrong")).await,
        IMMUTABLE,
        "another value",
    )?;
    let off = json!({"metadata": {"labels": {LABEL_MANAGED_BY: null}}});
    refused(merge(client, name, off).await, THE_AGENTS, "taking the label off")?;
    refused(delete(client, name).await, THE_AGENTS, "the end of the agent's")?;
    // What does not change it is nobody's matter, and the agent restores its own.
    let note = json!({"metadata": {"annotations": {"note": "seen"}}});
    merge(client, name, note).await?;
    merge(agent, name, says("restored"))
        .await
        .context("the agent restores it")
}

/// One that was there before the agent: it may go, and not change.
async fn anothers_is_left_alone(agent: &Client, client: &Client, name: &str) -> anyhow::Result<()> {
    apply(client, plain(name, "right")).await?;
    let marking = apply(client, marked(name, "right")).await;
    refused(marking, THE_AGENTS, "putting the label on")?;
    let changed = merge(client, name, says("wrong")).await;
    refused(changed, IMMUTABLE, "another value of a user's")?;
    let taken = apply(agent, marked(name, "right")).await;
    refused(taken, NOT_ITS_OWN, "the agent over a user's")?;
    delete(client, name).await.context("a user deletes a user's")?;
    let bare = apply(agent, plain(name, "right")).await;
    refused(bare, UNMARKED, "an unmarked one of the agent's")
}

async fn others_are_no_matter_of_it(client: &Client) -> anyhow::Result<()> {
    apply(client, plain(OTHER, "one")).await?;
    merge(client, OTHER, says("two")).await?;
    delete(client, OTHER).await
}
