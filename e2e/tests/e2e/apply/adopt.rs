//! Tests of objects from a backup: the agent's own, whose fields another writer owns.

use agent::apply::adopt;
use anyhow::{Context, ensure};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};
use sim::SimCluster;

use super::{cluster::*, driver::*};

const KINDS: [(&str, &str, &str); 3] = [
    ("multicluster.x-k8s.io", "v1beta1", "ServiceImport"),
    ("", "v1", "Service"),
    ("discovery.k8s.io", "v1", "EndpointSlice"),
];

fn ours(cluster: &SimCluster) -> Vec<Value> {
    let all = KINDS.iter().flat_map(|(_, _, kind)| cluster.list(kind));
    let labelled = all.filter(|object| {
        object["metadata"]["labels"]["app.kubernetes.io/managed-by"] == json!("tributary-agent")
    });
    labelled.map(|object| Value::clone(&object)).collect()
}

/// As a backup tool leaves an object: it has made it itself, and labelled it.
async fn restored(client: &Client, object: &Value) -> anyhow::Result<()> {
    let kind = object["kind"].as_str().context("a kind")?;
    let (group, version, kind) = KINDS
        .iter()
        .find(|known| known.2 == kind)
        .context("a known kind")?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "shop", &resource);
    let mut entries = object["metadata"]["managedFields"].clone();
    for entry in entries.as_array_mut().context("owners")? {
        entry["manager"] = json!("velero-server");
        entry["operation"] = json!("Update");
    }
    let patch = json!({"metadata": {
        "managedFields": entries, "labels": {"velero.io/restore-name": "monday"}}});
    let name = object["metadata"]["name"].as_str().context("a name")?;
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    Ok(())
}

pub(super) async fn objects_from_a_backup_are_adopted_once() -> anyhow::Result<()> {
    let cluster = cluster()?;
    settled(&cluster).await?.stop().await?;
    let (client, before) = (cluster.client_named("velero-server"), ours(&cluster));
    ensure!(
        before.len() == 4,
        "an import, a Service and two slices: {before:#?}"
    );
    for object in &before {
        restored(&client, object).await?;
    }
    // People copy manifests: that label alone makes nothing Tributary's.
    let copied = json!({"app.kubernetes.io/managed-by": "tributary-agent"});
    cluster.apply(json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "copied", "namespace": "shop", "labels": copied}, "spec": {"ports": [{"port": 9}]}}))?;
    let of_agent = shared::api_client::api_server(cluster.client_named("agent"));
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    let versions = |cluster: &SimCluster| ours(cluster).iter().map(version).collect::<Vec<_>>();
    let left = versions(&cluster);
    let found = adopt(&of_agent, false).await?;
    ensure!(found.len() == 4, "{found:?}");
    ensure!(
        found.iter().all(|orphan| orphan.managers == ["velero-server"]),
        "{found:?}"
    );
    ensure!(versions(&cluster) == left, "a dry run wrote something");
    ensure!(
        adopt(&of_agent, true).await? == found,
        "others than the dry run said"
    );
    ensure!(adopt(&of_agent, true).await?.is_empty(), "taken twice");
    // They are as they were, and the agent keeps them: what the backup tool added goes, and nothing else does.
    let agent = settled(&cluster).await?;
    looked_at_everything(&cluster, &agent, 1).await?;
    let unlabelled = || {
        let labels = |object: &Value| object["metadata"]["labels"]["velero.io/restore-name"].clone();
        ours(&cluster).iter().all(|object| labels(object).is_null())
    };
    until("the labels of the backup tool are gone", unlabelled).await?;
    for was in &before {
        let text = |field: &str| was["metadata"][field].as_str().unwrap_or_default();
        let kind = was["kind"].as_str().unwrap_or_default();
        let is = cluster.get(kind, "shop", text("name")).context("it is there")?;
        for part in ["spec", "endpoints", "ports"] {
            ensure!(
                is[part] == was[part],
                "{kind}: {} instead of {}",
                is[part],
                was[part]
            );
        }
        ensure!(is["metadata"]["uid"] == was["metadata"]["uid"], "another {kind}");
    }
    let empty = [source("east", true), source("west", true), source("north", true)];
    agent.told(2, &empty, Vec::new());
    until("everything of the agent's goes", || {
        ours(&cluster)
            .iter()
            .all(|object| object["metadata"]["name"] == json!("copied"))
    })
    .await?;
    agent.stop().await
}
