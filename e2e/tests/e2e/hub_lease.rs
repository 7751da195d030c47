//! The Lease by which a hub says in its own cluster that it runs: one at every start of the same hub, gone with a clean end,
//! and of no concern to anybody when it cannot be kept.

use std::path::Path;

use anyhow::{Context, ensure};
use cluster::clusterset::{
    Backend, LocalClusterset, admin,
    eventually::eventually,
    questions::{listed, said},
};
use libtest_mimic::Trial;
use serde_json::Value;
use shared::api::names::{HUB_MANAGER, LABEL_HOSTNAME, LABEL_IDENTITY, TRIBUTARY_NAMESPACE};
use sim::{ALWAYS, Fault, SimCluster};
use tributary_e2e::suite::sim_test;

/// 1 while the Lease is not kept.
const FAILING: &str = "tributary_hub_identity_lease_failing";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test(
            "sim::hub_lease::is_one_at_every_start_and_goes_with_a_clean_end",
            is_one_at_every_start_and_goes_with_a_clean_end,
        ),
        sim_test(
            "sim::hub_lease::that_cannot_be_kept_is_told_and_nothing_else",
            that_cannot_be_kept_is_told_and_nothing_else,
        ),
    ]
}

/// A hub whose own cluster is east's, and that cluster.
async fn hub_in_east(dir: &Path) -> anyhow::Result<(LocalClusterset, SimCluster)> {
    let backend = Backend::Simulated;
    let mut clusterset = LocalClusterset::without_hub(dir, &backend, &["east"], "default").await?;
    let east = clusterset.cluster("east")?;
    let cluster = east.sim().context("a simulated cluster")?.clone();
    start(&mut clusterset).await?;
    Ok((clusterset, cluster))
}

async fn start(clusterset: &mut LocalClusterset) -> anyhow::Result<()> {
    let kubeconfig = clusterset.cluster("east")?.kubeconfig.display().to_string();
    clusterset.start_hub_with(&["--kubeconfig", &kubeconfig]).await
}

/// Leases of hubs; nothing else with their label.
fn leases(cluster: &SimCluster) -> Vec<Value> {
    let ours = |lease: &Value| lease["metadata"]["labels"][LABEL_IDENTITY] == HUB_MANAGER;
    cluster.list("Lease").into_iter().filter(ours).collect()
}

async fn one(cluster: &SimCluster, transitions: i64) -> anyhow::Result<Value> {
    eventually("there is one Lease, of this start", async || {
        let found = leases(cluster);
        let this = |lease: &&Value| lease["spec"]["leaseTransitions"] == transitions;
        let one = found.first().filter(this).cloned();
        Ok(one.filter(|_| found.len() == 1))
    })
    .await
}

async fn is_one_at_every_start_and_goes_with_a_clean_end() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut clusterset, cluster) = hub_in_east(dir.path()).await?;
    let first = one(&cluster, 0).await?;
    let (metadata, spec) = (&first["metadata"], &first["spec"]);
    ensure!(metadata["namespace"] == TRIBUTARY_NAMESPACE, "{metadata}");
    ensure!(metadata["labels"][LABEL_HOSTNAME].is_string(), "{metadata}");
    let name = metadata["name"].as_str().context("a name")?;
    let hash = name.strip_prefix("tributary-hub-").context("of a hub")?;
    ensure!(hash.len() == 26, "{name}");
    ensure!(spec["leaseDurationSeconds"] == 3_600, "{spec}");
    let holder = spec["holderIdentity"].as_str().unwrap_or_default();
    ensure!(holder.starts_with(&format!("{name}_")), "{spec}");

    clusterset.kill_hub().await?;
    ensure!(leases(&cluster) == [first.clone()], "a kill leaves it");
    start(&mut clusterset).await?;
    let second = one(&cluster, 1).await?;
    ensure!(second["metadata"]["name"] == name, "{second}");
    ensure!(second["spec"]["holderIdentity"] != holder, "{second}");
    clusterset.stop_hub().await?;
    ensure!(leases(&cluster).is_empty(), "a clean end takes it along");
    Ok(())
}

async fn that_cannot_be_kept_is_told_and_nothing_else() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut clusterset, cluster) = hub_in_east(dir.path()).await?;
    one(&cluster, 0).await?;
    let address = clusterset.hub()?.admin().await?;
    cluster.faults().rate(Fault::InternalError, ALWAYS, "leases");
    eventually("the metric says that it is not kept", async || {
        let failing = admin::metric_at(address, FAILING, "").await?;
        Ok((failing == 1.0).then_some(()))
    })
    .await?;
    said(
        &clusterset.log("hub"),
        "cannot renew the Lease that says that this process runs",
    )
    .await?;
    // The agent's own Lease is in that cluster too.
    cluster.faults().clear();
    clusterset.start_agent("east").await?;
    listed(&clusterset, &["east"]).await?;
    eventually("the metric says that it is kept again", async || {
        let failing = admin::metric_at(address, FAILING, "").await?;
        Ok((failing == 0.0).then_some(()))
    })
    .await?;
    one(&cluster, 0).await?;
    // It ends in good order though nobody answers about its Lease.
    cluster.faults().rate(Fault::InternalError, ALWAYS, "leases");
    clusterset.stop_hub().await
}
