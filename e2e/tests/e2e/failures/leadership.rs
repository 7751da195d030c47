//! Two agents of one cluster: one leads, the other stands by and takes over (ADR 0042). What it took is printed, not
//! judged: a busy machine is slow.

use std::{collections::BTreeMap, time::Instant};

use anyhow::{Context, ensure};
use cluster::clusterset::{Backend, LocalClusterset, Program, USER_AGENT, admin, signal};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{Api, Resource, ResourceExt, api::ListParams};
use shared::api::ServiceImport;
use sim::SimCluster;

use super::{hub::listed, shop::Shop};

/// One more agent of east that stands by, without the Lease and without a session.
async fn standby(clusterset: &LocalClusterset, pod: &str) -> anyhow::Result<Program> {
    let mut program = clusterset.start_standby("east", pod).await?;
    for name in ["tributary_agent_lease_held", "tributary_agent_hub_sessions_total"] {
        let value = admin::metric(&mut program, name, "").await?;
        ensure!(value == 0.0, "{name} is {value} while it stands by");
    }
    Ok(program)
}

/// Resident memory of a process, in KiB.
fn memory(program: &Program) -> anyhow::Result<u64> {
    let id = program.id().context("it runs")?;
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("no VmRSS")?.parse()?)
}

/// Agents' writes since the record was cleared, Leases excepted.
fn written(cluster: &SimCluster) -> Vec<String> {
    let writes = cluster.requests().writes();
    let of_agents = writes
        .iter()
        .filter(|entry| entry.resource != "leases" && entry.user_agent != USER_AGENT && entry.code < 300);
    of_agents
        .map(|entry| format!("{} {}/{}", entry.verb, entry.resource, entry.name))
        .collect()
}

fn east(clusterset: &LocalClusterset) -> anyhow::Result<SimCluster> {
    Ok(clusterset
        .cluster("east")?
        .sim()
        .context("it is simulated")?
        .clone())
}

/// From now on requests are noted anew, where they are.
fn forget_requests(clusterset: &LocalClusterset) {
    if let Ok(east) = east(clusterset) {
        east.requests().clear();
    }
}

/// The version of each object of a kind in a namespace of east.
async fn versions<K>(
    clusterset: &LocalClusterset,
    namespace: &str,
) -> anyhow::Result<BTreeMap<String, String>>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope> + Clone + std::fmt::Debug,
    K: serde::de::DeserializeOwned,
{
    let objects = Api::<K>::namespaced(clusterset.cluster("east")?.client.clone(), namespace);
    let listed = objects.list(&ListParams::default()).await?.items;
    let version = |object: &K| object.resource_version().unwrap_or_default();
    let named = |object: &K| (format!("{}/{}", K::kind(&()), object.name_any()), version(object));
    Ok(listed.iter().map(named).collect())
}

/// The same of everything that an agent keeps there.
async fn all_versions(
    clusterset: &LocalClusterset,
    namespace: &str,
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut all = versions::<ServiceImport>(clusterset, namespace).await?;
    all.extend(versions::<EndpointSlice>(clusterset, namespace).await?);
    all.extend(versions::<Service>(clusterset, namespace).await?);
    Ok(all)
}

/// Changes what west exports, waits until east has it, and says how long that took. One slice is written in east, and
/// nothing else.
async fn change_arrives(
    clusterset: &LocalClusterset,
    shop: &mut Shop,
    (what, address): (&str, &str),
) -> anyhow::Result<()> {
    let before = all_versions(clusterset, &shop.namespace).await?;
    let began = Instant::now();
    shop.export(clusterset, "west", "cart", &[address]).await?;
    shop.arrived_in(clusterset, "east").await?;
    println!("a change arrives {what} after {:?}", began.elapsed());
    let after = all_versions(clusterset, &shop.namespace).await?;
    let differs = |(name, version): &(&String, &String)| before.get(*name) != Some(*version);
    let changed: Vec<&String> = after.iter().filter(differs).map(|(name, _)| name).collect();
    ensure!(
        after.len() == before.len() && after.len() > 1 && changed.len() == 1,
        "{what}, of {} objects that were there {} are there, and changed are {changed:?}",
        before.len(),
        after.len()
    );
    let Ok(east) = east(clusterset) else {
        // A real one keeps no list of requests.
        return Ok(());
    };
    let written = written(&east);
    ensure!(
        written.len() == 1 && written[0].starts_with("patch endpointslices/"),
        "{what}: {written:?}"
    );
    Ok(())
}

/// The leader is killed; then its successor ends in good order. Changes arrive, and nothing is written but them.
pub(super) async fn a_second_agent_takes_over(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &backend, &["east", "west"]).await?;
    listed(&clusterset, &["east", "west"]).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "west", "cart", &["10.2.0.1"]).await?;
    shop.export(&clusterset, "east", "lamp", &["10.1.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    shop.arrivals_are_said(&clusterset).await?;
    let first = clusterset.take_running_agent("east")?;
    let second = standby(&clusterset, "second").await?;
    let (leads, stands_by) = (memory(&first)?, memory(&second)?);
    println!("the leader takes {leads} KiB, the one that stands by {stands_by} KiB");

    forget_requests(&clusterset);
    first.kill().await?;
    change_arrives(&clusterset, &mut shop, ("after a kill", "10.2.0.2")).await?;

    let mut third = standby(&clusterset, "third").await?;
    forget_requests(&clusterset);
    second.stop().await?;
    change_arrives(&clusterset, &mut shop, ("after a clean end", "10.2.0.3")).await?;
    ensure!(admin::metric(&mut third, "tributary_agent_lease_held", "").await? == 1.0);
    third.stop().await?;
    shop.close(&clusterset).await?;
    clusterset.end().await
}

/// The leader stands still for longer than its Lease lasts. When it goes on another one leads, and it ends without
/// having written anything.
pub(super) async fn a_leader_that_was_paused_is_replaced_and_ends() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &["east", "west"]).await?;
    listed(&clusterset, &["east", "west"]).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "west", "cart", &["10.2.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    let paused = clusterset.take_running_agent("east")?;
    let mut other = standby(&clusterset, "other").await?;
    east(&clusterset)?.requests().clear();
    let id = paused.id().context("it runs")?;
    signal(id, "STOP").await?;
    change_arrives(&clusterset, &mut shop, ("beside a paused leader", "10.2.0.2")).await?;
    signal(id, "CONT").await?;
    let (status, tail) = paused.ended().await?;
    ensure!(
        !status.success() && tail.contains("is held by another agent"),
        "{status}: {tail}"
    );
    let written = written(&east(&clusterset)?);
    ensure!(written.len() == 1, "it wrote when it went on: {written:?}");
    ensure!(other.is_running(), "{}", other.tail());
    other.stop().await?;
    clusterset.end().await
}
