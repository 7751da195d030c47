//! The Leases of source clusters, with times of seconds (ADR 0047): what goes when the hub is away for long, who takes it
//! away, what stays, and how it comes back.

use std::{collections::BTreeSet, time::Duration};

use anyhow::ensure;
use cluster::clusterset::{
    AgentVariant, Backend, LocalClusterset, POD_UID_FLAG, Program,
    eventually::{eventually, holds_for},
    signal,
};
use serde_json::{Value, json};
use shared::api::names::{
    ANNOTATION_ON_EXPIRY, LABEL_IDENTITY, LABEL_SOURCE_CLUSTER, SOURCE_LEASE_PREFIX, TRIBUTARY_NAMESPACE,
};
use sim::{ALWAYS, Fault, SimCluster};

use super::{hub::said, shop::Shop};

/// Flags of an agent whose source Leases expire after seconds.
pub(super) const EXPIRE: [&str; 3] = [
    "--on-hub-loss=expire",
    "--source-lease-duration=6",
    "--source-lease-renew=2",
];
const RETAIN: [&str; 2] = ["--source-lease-duration=6", "--source-lease-renew=2"];
/// Longer than a Lease lasts and anybody waits to see that it does.
const LONG: Duration = Duration::from_secs(12);
/// The Lease of the cluster whose exports are imported.
pub(super) const LEASE: &str = "tributary-source-west";

fn east(clusterset: &LocalClusterset) -> anyhow::Result<SimCluster> {
    let cluster = clusterset.cluster("east")?.sim();
    cluster.cloned().ok_or_else(|| anyhow::anyhow!("it is simulated"))
}

/// Agents of east run with these flags beside west's, and west exports a cart that east imports.
async fn stage(dir: &std::path::Path, flags: &[&str]) -> anyhow::Result<(LocalClusterset, Shop, SimCluster)> {
    let mut clusterset = LocalClusterset::without_agents(dir, &Backend::Simulated, &["east", "west"]).await?;
    clusterset.start_agent("west").await?;
    clusterset.start_agent_with("east", flags).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "west", "cart", &["10.2.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    let east = east(&clusterset)?;
    Ok((clusterset, shop, east))
}

fn lease(cluster: &SimCluster) -> Option<Value> {
    cluster.get("Lease", TRIBUTARY_NAMESPACE, LEASE)
}

/// Slices that came from west.
fn from_west(cluster: &SimCluster) -> usize {
    let of_west = |slice: &Value| slice["metadata"]["labels"][LABEL_SOURCE_CLUSTER] == "west";
    cluster
        .objects("EndpointSlice")
        .iter()
        .filter(|slice| of_west(slice))
        .count()
}

async fn lease_made(cluster: &SimCluster) -> anyhow::Result<Value> {
    eventually("west has a Lease in east with the policy", async || {
        let says = |lease: &Value| lease["metadata"]["annotations"][ANNOTATION_ON_EXPIRY] == "withdraw";
        Ok(lease(cluster).filter(says))
    })
    .await
}

/// Slices, import and derived Service went, in this order.
async fn gone(cluster: &SimCluster) -> anyhow::Result<()> {
    let deleted = || {
        let deleted = cluster.requests().writes().into_iter();
        let deleted = deleted.filter(|entry| entry.verb == "delete" && entry.code < 300);
        deleted
            .map(|entry| entry.resource)
            .filter(|resource| resource != "leases")
            .collect::<Vec<String>>()
    };
    // The Service is the last to go: whoever looks when the import went looks too early.
    eventually("what came from west is gone in east", async || {
        let imports = cluster.objects("ServiceImport").len();
        let all = from_west(cluster) == 0 && imports == 0 && deleted().iter().any(|it| it == "services");
        Ok(all.then_some(()))
    })
    .await?;
    let deleted = deleted();
    ensure!(
        deleted == ["endpointslices", "serviceimports", "services"],
        "it went as {deleted:?}"
    );
    Ok(())
}

/// Without a hub, and said so: what came from others goes when its Lease is over, and comes back with the hub.
pub(super) async fn what_came_from_others_goes_while_the_hub_is_away() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut clusterset, shop, east) = stage(dir.path(), &EXPIRE).await?;
    let made = lease_made(&east).await?;
    ensure!(made["metadata"]["name"] == format!("{SOURCE_LEASE_PREFIX}west"));
    // While the hub confirms it, it moves and nothing goes.
    holds_for(LONG, async || {
        ensure!(from_west(&east) == 1, "it went while the hub was there");
        Ok(())
    })
    .await?;
    ensure!(
        lease(&east)
            .is_some_and(|now| now["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"])
    );
    east.requests().clear();
    clusterset.stop_hub().await?;
    gone(&east).await?;
    // It is not made again from what the hub sent last, and the Lease stays as it was.
    holds_for(LONG, async || {
        ensure!(from_west(&east) == 0, "it came again without its hub");
        Ok(())
    })
    .await?;
    clusterset.start_hub().await?;
    shop.arrived_in(&clusterset, "east").await?;
    clusterset.end().await
}

/// The default: without a hub everything stays, however long it takes.
pub(super) async fn what_came_from_others_stays_under_retain() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut clusterset, _shop, east) = stage(dir.path(), &RETAIN).await?;
    lease_made(&east).await?;
    clusterset.stop_hub().await?;
    holds_for(LONG, async || {
        ensure!(from_west(&east) == 1, "it went though it is to stay");
        Ok(())
    })
    .await?;
    clusterset.start_hub().await?;
    clusterset.end().await
}

/// Hub and leader stand still, neither of them ended: who stands by judges, and takes away.
pub(super) async fn one_that_stands_by_takes_away_what_expired() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut clusterset, _shop, east) = stage(dir.path(), &EXPIRE).await?;
    lease_made(&east).await?;
    let leader = clusterset.take_running_agent("east")?;
    let second = standby(&clusterset, "second").await?;
    east.requests().clear();
    clusterset.kill_hub().await?;
    leader.kill().await?;
    gone(&east).await?;
    second.stop().await?;
    clusterset.start_hub().await?;
    clusterset.end().await
}

/// Objects that a caller of imports notices when they are made again: uids of the slices, imports and Services.
fn uids(cluster: &SimCluster) -> BTreeSet<String> {
    let kinds = ["EndpointSlice", "ServiceImport", "Service"];
    let objects = kinds.iter().flat_map(|kind| cluster.list(kind));
    objects
        .filter_map(|object| object["metadata"]["uid"].as_str().map(str::to_owned))
        .collect()
}

/// A policy denies writes of the Leases of sources by their names, dry runs included, and everything else passes: each
/// replica renews its own Lease, reads and deletes. Nobody takes away what the open session confirms, and the replica that
/// stands by, which sees a Lease stand still, tries whether one could be renewed.
pub(super) async fn a_lease_that_nobody_may_renew_costs_nothing() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (clusterset, mut shop, east) = stage(dir.path(), &EXPIRE).await?;
    lease_made(&east).await?;
    let second = standby(&clusterset, "second").await?;
    let before = uids(&east);
    east.requests().clear();
    east.faults()
        .rate(Fault::Denied(SOURCE_LEASE_PREFIX), ALWAYS, "leases");
    let stands = lease(&east);
    said(&clusterset.log("second"), "nobody could renew the Lease of west").await?;
    holds_for(LONG, async || {
        ensure!(uids(&east) == before, "it went though the hub confirms it");
        Ok(())
    })
    .await?;
    ensure!(lease(&east) == stands, "the policy let a renewal pass");
    let deleted = east.requests().writes().into_iter();
    let deleted: Vec<String> = deleted
        .filter(|entry| entry.verb == "delete")
        .map(|entry| format!("{}/{}", entry.resource, entry.name))
        .collect();
    ensure!(deleted.is_empty(), "somebody tried to delete {deleted:?}");
    east.faults().clear();
    eventually("the Lease moves again", async || {
        Ok((lease(&east) != stands).then_some(()))
    })
    .await?;
    holds_for(LONG, async || {
        ensure!(uids(&east) == before, "it went after the policy had gone");
        Ok(())
    })
    .await?;
    shop.export(&clusterset, "west", "cart", &["10.2.0.2"]).await?;
    shop.arrived(&clusterset).await?;
    second.stop().await?;
    clusterset.end().await
}

async fn standby(clusterset: &LocalClusterset, pod: &str) -> anyhow::Result<Program> {
    let flags = [&[POD_UID_FLAG, pod], &EXPIRE[..]].concat();
    let program = clusterset.spawn_agent(&AgentVariant {
        certificate: "east",
        cluster: "east",
        log: pod,
        flags: &flags,
    })?;
    said(&clusterset.log(pod), "standing by until it ends").await?;
    Ok(program)
}

/// Somebody else's Lease has the name: it is left as it is, said, and nothing goes by it.
pub(super) async fn a_strangers_lease_is_left_alone() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset =
        LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &["east", "west"]).await?;
    let east = east(&clusterset)?;
    let stranger = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": TRIBUTARY_NAMESPACE, "name": LEASE,
            "annotations": {ANNOTATION_ON_EXPIRY: "withdraw"}},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 1}});
    let made = east.apply(stranger)?;
    clusterset.start_agent("west").await?;
    clusterset.start_agent_with("east", &EXPIRE).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "west", "cart", &["10.2.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    said(&clusterset.log("east"), "somebody else's Lease has the name").await?;
    clusterset.stop_hub().await?;
    holds_for(LONG, async || {
        ensure!(from_west(&east) == 1, "it went by a stranger's Lease");
        Ok(())
    })
    .await?;
    ensure!(lease(&east) == Some(made), "it was changed");
    clusterset.start_hub().await?;
    clusterset.end().await
}

/// A source's Lease goes when nothing comes from it any more; and each agent has one of itself, which it takes along.
pub(super) async fn leases_come_and_go_with_what_they_stand_for() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (clusterset, mut shop, east) = stage(dir.path(), &EXPIRE).await?;
    lease_made(&east).await?;
    let identities = || {
        let leases = east.objects("Lease");
        leases
            .iter()
            .filter(|lease| lease["metadata"]["labels"][LABEL_IDENTITY] == "tributary-agent")
            .count()
    };
    eventually("the agent has a Lease of itself", async || {
        Ok((identities() == 1).then_some(()))
    })
    .await?;
    let second = standby(&clusterset, "second").await?;
    eventually("so has the other one", async || {
        Ok((identities() == 2).then_some(()))
    })
    .await?;
    signal(second.id().unwrap_or_default(), "TERM").await?;
    let (status, tail) = second.ended().await?;
    ensure!(status.success(), "{tail}");
    ensure!(identities() == 1, "it ended, and its Lease stays");
    shop.withdraw(&clusterset, "west", "cart").await?;
    eventually("the Lease of west goes", async || {
        Ok(lease(&east).is_none().then_some(()))
    })
    .await?;
    clusterset.end().await
}
