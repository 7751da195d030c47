//! Health on simulated clusters: gates that are off, nodes, Leases that a test renews.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::{Context, ensure};
use cluster::clusterset::{Backend, LocalClusterset};
use k8s_openapi::{api::core::v1::Node, jiff::Timestamp};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use shared::api::names::KUBE_SYSTEM_NAMESPACE;
use sim::SimCluster;

use super::{CONTROL_PLANE, NODES, member, until};

const EAST: &str = "east";
/// Time on a busy machine for something that takes none by itself.
const SOON: Duration = Duration::from_secs(45);

fn east(clusterset: &LocalClusterset) -> anyhow::Result<SimCluster> {
    let cluster = clusterset.cluster(EAST)?.sim();
    cluster.cloned().context("it is simulated")
}

pub(super) async fn without_identity_leases_the_probes_say_it() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &[EAST]).await?;
    let no_identity = |reason: &str| reason == "HealthyNoIdentity";
    let (_, healthy) = until(&clusterset, (EAST, CONTROL_PLANE), SOON, |one| {
        no_identity(&one.reason)
    })
    .await?;
    ensure!(healthy.status == "True", "{healthy:?}");
    let (_, nodes) = until(&clusterset, (EAST, NODES), SOON, |one| one.reason == "NoNodes").await?;
    ensure!(nodes.status == "True", "{nodes:?}");
    clusterset.end().await
}

async fn set_ready(nodes: &Api<Node>, name: &str, ready: &str) -> anyhow::Result<()> {
    let status = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"conditions": [{"type": "Ready", "status": ready}]}});
    let parameters = PatchParams::apply("kubelet").force();
    nodes
        .patch_status(name, &parameters, &Patch::Apply(&status))
        .await?;
    Ok(())
}

pub(super) async fn a_node_that_is_not_ready_is_told_after_the_tolerance() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &[EAST]).await?;
    let cluster = east(&clusterset)?;
    let nodes = Api::<Node>::all(cluster.client());
    for name in ["worker-1", "worker-2"] {
        cluster.apply(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}))?;
        set_ready(&nodes, name, "True").await?;
    }
    clusterset.start_agent_with(EAST, &["--node-tolerance=4"]).await?;
    let (_, all) = until(&clusterset, (EAST, NODES), SOON, |one| one.status == "True").await?;
    ensure!(all.message == "2 of 2 nodes are ready.", "{all:?}");

    // What lasts for less than is tolerated is not told.
    set_ready(&nodes, "worker-2", "False").await?;
    set_ready(&nodes, "worker-2", "True").await?;
    set_ready(&nodes, "worker-1", "Unknown").await?;
    let (took, one) = until(&clusterset, (EAST, NODES), SOON, |one| one.status == "False").await?;
    ensure!(took >= Duration::from_secs(3), "told after {took:?}");
    let want = ("NodesNotReady", "1 of 2 nodes are ready; not: worker-1.");
    ensure!((&*one.reason, &*one.message) == want, "{one:?}");
    set_ready(&nodes, "worker-1", "True").await?;
    until(&clusterset, (EAST, NODES), SOON, |one| one.status == "True").await?;
    clusterset.end().await
}

fn lease(host: &str, labels: Value) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": format!("apiserver-{host}"), "namespace": KUBE_SYSTEM_NAMESPACE, "labels": labels},
        "spec": {"holderIdentity": format!("apiserver-{host}_1"), "leaseDurationSeconds": 3600,
            "renewTime": Timestamp::now().to_string()}})
}

/// Renews the Leases of an API server of 1.27 or later and of one of 1.26, as long as each is to live.
async fn renew(cluster: SimCluster, second_lives: &AtomicBool) -> anyhow::Result<()> {
    let current =
        json!({"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": "m1"});
    let old = json!({"k8s.io/component": "kube-apiserver", "kubernetes.io/hostname": "m2"});
    let mut turns = tokio::time::interval(Duration::from_secs(10));
    loop {
        turns.tick().await;
        cluster.apply(lease("m1", current.clone()))?;
        if second_lives.load(Ordering::Relaxed) {
            cluster.apply(lease("m2", old.clone()))?;
        }
    }
}

pub(super) async fn an_api_server_that_renews_no_more_is_missed() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &[EAST]).await?;
    let (cluster, second_lives) = (east(&clusterset)?, AtomicBool::new(true));
    let of = (EAST, CONTROL_PLANE);
    let story = async {
        clusterset.start_agent(EAST).await?;
        let (_, both) = until(&clusterset, of, SOON, |one| one.status == "True").await?;
        let want = ("Healthy", "2 of 2 API servers renew their identity Lease.");
        ensure!((&*both.reason, &*both.message) == want, "{both:?}");
        second_lives.store(false, Ordering::Relaxed);
        let within = Duration::from_secs(60);
        let (took, one) = until(&clusterset, of, within, |one| one.reason == "APIServersDegraded").await?;
        println!("a server that renews no more is missed after {took:?}");
        let says = |text: &str| one.message.contains(text);
        ensure!(one.status == "True" && says("1 of 2") && says("m2"), "{one:?}");
        let servers = member(&clusterset, EAST).await?.api_servers;
        let hosts: Vec<&str> = servers.iter().map(|server| &*server.host).collect();
        ensure!(hosts == ["m1", "m2"], "{servers:?}");
        anyhow::Ok(())
    };
    tokio::select! {
        renewed = renew(cluster, &second_lives) => renewed?,
        told = story => told?,
    }
    clusterset.end().await
}
