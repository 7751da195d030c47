//! Fencing (docs/design.md, section 6): one session per cluster id, and the right one.

use anyhow::ensure;
use cluster::clusterset::{
    AgentVariant, Backend, LocalClusterset, POD_UID_FLAG, admin, eventually::eventually,
};

use super::hub::{events, listed, said, state};

/// A second agent has east's certificate and watches another cluster.
pub(super) async fn another_cluster_with_the_same_certificate_is_refused() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset =
        LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &["east", "west"]).await?;
    clusterset.start_agent("east").await?;
    listed(&clusterset, &["east"]).await?;
    let before = state(&clusterset).await?.members;
    let copycat = AgentVariant {
        certificate: "east",
        cluster: "west",
        log: "copycat",
        flags: &[],
    };
    // Its Lease is as old as the holder's, and then has moved on further: the cluster is another one all the same.
    for log in ["copycat", "copycat-again"] {
        let agent = clusterset.spawn_agent(&AgentVariant {
            log,
            ..copycat.clone()
        })?;
        let line = said(&clusterset.log(log), "kube-system UID").await?;
        ensure!(line.contains("member rekey east"), "{line}");
        agent.kill().await?;
    }
    let after = state(&clusterset).await?.members;
    ensure!(after.len() == 1 && after[0].connected, "{after:?}");
    ensure!(
        after[0].cluster_fingerprint == before[0].cluster_fingerprint
            && after[0].incarnation == before[0].incarnation,
        "{after:?}"
    );
    let sessions = admin::metric(
        clusterset.agent("east")?,
        "tributary_agent_hub_sessions_total",
        "",
    )
    .await?;
    ensure!(sessions == 1.0, "the holder was disturbed: {sessions} sessions");
    let name = "tributary_hub_sessions_rejected_total";
    let rejected = admin::metric(clusterset.hub()?, name, "membership").await?;
    ensure!(rejected >= 2.0, "it is counted");
    clusterset.end().await
}

/// A second agent of the same cluster has the newer Lease: the old one is told and ends.
pub(super) async fn a_newer_agent_of_the_same_cluster_takes_over() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &["east"]).await?;
    listed(&clusterset, &["east"]).await?;
    let old = clusterset.take_running_agent("east")?;
    let sessions = |events: &[proto::v1::Event]| events.iter().map(|event| event.session).max();
    let before = sessions(&events(&clusterset).await?);
    let mut new = clusterset.spawn_agent(&AgentVariant {
        certificate: "east",
        cluster: "east",
        log: "newer",
        flags: &[],
    })?;
    said(&clusterset.log("newer"), "the hub admitted this cluster").await?;
    let (status, tail) = old.ended().await?;
    ensure!(
        !status.success(),
        "the old agent must not look as if all was well: {status}"
    );
    ensure!(
        tail.contains("the Lease tributary-agent is held by another agent"),
        "it says who holds the Lease: {tail}"
    );
    eventually("the new agent holds the cluster", async || {
        let members = state(&clusterset).await?.members;
        Ok((members[0].connected && members[0].listed).then_some(()))
    })
    .await?;
    ensure!(new.is_running(), "{}", new.tail());
    let after = sessions(&events(&clusterset).await?);
    ensure!(after >= before, "sessions only grow");
    new.stop().await?;
    clusterset.end().await
}

/// An agent in another pod waits, and says for whom; the end of the first one lets it in at once, for a clean end
/// releases the Lease.
pub(super) async fn an_agent_in_another_pod_waits_for_the_end_of_the_first() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &["east"]).await?;
    listed(&clusterset, &["east"]).await?;
    let mut other = clusterset.spawn_agent(&AgentVariant {
        certificate: "east",
        cluster: "east",
        log: "other",
        flags: &[POD_UID_FLAG, "pod-of-another-node"],
    })?;
    let line = said(&clusterset.log("other"), "another agent holds the Lease").await?;
    ensure!(line.contains("pod-of-east"), "it says for whom it waits: {line}");
    let (status, why) = admin::get(other.admin().await?, "/readyz").await?;
    ensure!(status == 200, "one that waits is ready: {why}");
    ensure!(admin::metric(&mut other, "tributary_agent_lease_held", "").await? == 0.0);
    ensure!(admin::metric(clusterset.agent("east")?, "tributary_agent_lease_held", "").await? == 1.0);
    clusterset.stop_agent("east").await?;
    said(&clusterset.log("other"), "the hub admitted this cluster").await?;
    ensure!(admin::metric(&mut other, "tributary_agent_lease_held", "").await? == 1.0);
    other.stop().await?;
    clusterset.end().await
}
