//! A simulated cluster in which the driver works: looking at it, and waiting until it is as it should be.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use serde_json::{Value, json};
use shared::model::{
    Revision, ServiceKey,
    derived_name::derived_service_name,
    sync::{DesiredChange, DesiredItem},
};
use sim::{SimCluster, SimConfig};

use super::driver::*;

pub(super) const EXPORT: &str = "{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: cart, namespace: shop}}";
const WAIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(5);

pub(super) fn derived() -> String {
    derived_service_name("shop", "cart")
}

pub(super) fn cluster_with(config: SimConfig) -> anyhow::Result<SimCluster> {
    let cluster = SimCluster::new(config)?;
    cluster.apply_yaml("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")?;
    Ok(cluster)
}

pub(super) fn cluster() -> anyhow::Result<SimCluster> {
    cluster_with(SimConfig::default())
}

pub(super) async fn until(what: &str, holds: impl Fn() -> bool) -> anyhow::Result<()> {
    let waited = async {
        while !holds() {
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(WAIT, waited)
        .await
        .with_context(|| format!("waited in vain: {what}"))
}

pub(super) fn the_import(cluster: &SimCluster) -> Value {
    cluster.get("ServiceImport", "shop", "cart").unwrap_or_default()
}

pub(super) fn ready(cluster: &SimCluster) -> bool {
    the_import(cluster)["status"]["conditions"][0]["status"] == json!("True")
}

/// Addresses of the imported slices.
pub(super) fn addresses(cluster: &SimCluster) -> Vec<String> {
    let imported =
        |slice: &&Value| !slice["metadata"]["labels"]["multicluster.kubernetes.io/source-cluster"].is_null();
    let mut all: Vec<String> = cluster
        .list("EndpointSlice")
        .iter()
        .filter(imported)
        .map(|slice| {
            slice["endpoints"][0]["addresses"][0]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    all.sort();
    all
}

pub(super) async fn arrived(cluster: &SimCluster, count: usize) -> anyhow::Result<()> {
    let waited = until("import and slices", || {
        ready(cluster) && addresses(cluster).len() == count
    })
    .await;
    waited.with_context(|| format!("import {:#}", the_import(cluster)))
}

/// A started agent whose cluster holds everything.
pub(super) async fn settled(cluster: &SimCluster) -> anyhow::Result<Agent> {
    let agent = Agent::start(cluster);
    agent.told(1, &all_listed(), wishes());
    arrived(cluster, 2).await?;
    Ok(agent)
}

/// Everything the agent had to look at has been looked at: a change made afterwards has been applied.
pub(super) async fn looked_at_everything(
    cluster: &SimCluster,
    agent: &Agent,
    created_at: u64,
) -> anyhow::Result<()> {
    let other = ServiceKey::new("shop", "zz-probe")?;
    let mut probe = import(&[port("http", 80)], &["north"]);
    probe.service = other;
    agent.handle.feed(|desired| {
        let change = DesiredChange::Import(Arc::new(probe));
        let revision = Revision(100 + created_at);
        (desired.items(1, [DesiredItem { revision, change }]), ())
    });
    until("the probe", || {
        cluster.get("ServiceImport", "shop", "zz-probe").is_some()
    })
    .await
}
