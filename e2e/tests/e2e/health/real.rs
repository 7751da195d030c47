//! Health on a control plane of its own: etcd that stands still, API servers with host names of their own that are killed
//! and come back.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use cluster::{
    clusterset::{Backend, LocalClusterset, signal},
    real::{Fleet, Options},
};

use super::{CONTROL_PLANE, member, until};

const EAST: &str = "east";
/// Host name of the second API server.
const SECOND: &str = "second-master";
/// Time for a control plane to be seen healthy after the start.
const START: Duration = Duration::from_secs(60);
/// Within this a failure of etcd is told.
const FAILURE: Duration = Duration::from_secs(45);
/// Within this its end is: 30 s by the rules, and what a busy machine takes beside them.
const RECOVERY: Duration = Duration::from_secs(45);
/// Within this a server is missed.
const MISSED: Duration = Duration::from_secs(60);

async fn stage(dir: &std::path::Path) -> anyhow::Result<(Arc<Fleet>, LocalClusterset)> {
    let fleet = Arc::new(Fleet::start(&[EAST], Options::default()).await?);
    let clusterset = LocalClusterset::without_agents(dir, &Backend::Real(fleet.clone()), &[EAST]).await?;
    Ok((fleet, clusterset))
}

pub(super) async fn a_frozen_etcd_is_told_and_forgotten() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (fleet, mut clusterset) = stage(dir.path()).await?;
    clusterset.start_agent(EAST).await?;
    let of = (EAST, CONTROL_PLANE);
    until(&clusterset, of, START, |one| one.reason == "Healthy").await?;
    let processes = fleet.processes();
    let etcd = processes
        .iter()
        .find(|(name, _)| name == "etcd")
        .context("etcd runs")?
        .1;
    signal(etcd, "STOP").await?;
    let told = until(&clusterset, of, FAILURE, |one| one.status == "False").await;
    signal(etcd, "CONT").await?;
    let (took, failed) = told?;
    println!(
        "a frozen etcd is told after {took:?}: {} {}",
        failed.reason, failed.message
    );
    let reasons = ["EtcdUnhealthy", "IdentityLeasesStale"];
    ensure!(reasons.contains(&&*failed.reason), "{failed:?}");
    let (took, _) = until(&clusterset, of, RECOVERY, |one| one.status == "True").await?;
    println!("its end is told after {took:?}");
    clusterset.end().await
}

pub(super) async fn one_of_two_api_servers_is_killed_and_restarted() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (fleet, mut clusterset) = stage(dir.path()).await?;
    let cluster = fleet.cluster(EAST)?;
    cluster.start_another_apiserver(SECOND).await?;
    clusterset.start_agent(EAST).await?;
    let of = (EAST, CONTROL_PLANE);
    let both = "2 of 2 API servers renew their identity Lease.";
    until(&clusterset, of, START, |one| one.message == both).await?;

    cluster.kill_another_apiserver();
    let (took, one) = until(&clusterset, of, MISSED, |one| one.reason == "APIServersDegraded").await?;
    println!("one of two API servers is missed after {took:?}: {}", one.message);
    ensure!(one.status == "True" && one.message.contains(SECOND), "{one:?}");

    cluster.start_another_apiserver(SECOND).await?;
    let (took, _) = until(&clusterset, of, MISSED, |one| one.message == both).await?;
    println!("its return is told after {took:?}");
    let servers = member(&clusterset, EAST).await?.api_servers;
    let second = servers
        .iter()
        .find(|server| server.host == SECOND)
        .context("it is named")?;
    ensure!(second.restarts == 1, "{second:?}");
    clusterset.end().await
}
