//! Connectivity (docs/design.md, section 4): silence becomes an event, a pause does not, and a hub that was stopped itself
//! blames nobody.

use std::time::Duration;

use anyhow::{Context, ensure};
use cluster::clusterset::{
    Backend, LocalClusterset,
    eventually::{eventually, holds_for},
    signal,
};
use proto::v1;

use super::hub::{kinds, listed, state};

/// A pause that is nobody's business.
const PAUSE: Duration = Duration::from_millis(1_500);
/// A stop of the hub that is longer than any silence it bears.
const STOPPED: Duration = Duration::from_secs(20);
/// After this much time on its own clock the hub would have blamed somebody.
const BLAME: Duration = Duration::from_secs(12);

/// The status of a member's condition ControlPlaneHealthy.
async fn healthy(clusterset: &LocalClusterset, cluster: &str) -> anyhow::Result<String> {
    let state = state(clusterset).await?;
    let profile = state.profiles.iter().find(|profile| profile.cluster == cluster);
    let conditions = &profile.context("no profile")?.conditions;
    let condition = conditions
        .iter()
        .find(|condition| condition.r#type == "ControlPlaneHealthy");
    Ok(condition
        .context("no condition ControlPlaneHealthy")?
        .status
        .clone())
}

/// Numbers of a cluster's recorded transitions: suspect, lost, live.
async fn transitions(clusterset: &LocalClusterset, cluster: &str) -> anyhow::Result<[usize; 3]> {
    let kinds = kinds(clusterset, cluster).await?;
    let count = |kind: &str| kinds.iter().filter(|found| *found == kind).count();
    Ok([
        count("member_suspect"),
        count("member_lost"),
        count("member_live"),
    ])
}

/// An agent pauses, then is silent for long, then returns.
pub(super) async fn silence_is_seen_and_forgiven() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &["east", "west"]).await?;
    listed(&clusterset, &["east", "west"]).await?;
    eventually("the control plane of east is healthy", async || {
        Ok((healthy(&clusterset, "east").await? == "True").then_some(()))
    })
    .await?;
    let east = clusterset.agent("east")?.id().context("the agent runs")?;
    for _ in 0..2 {
        signal(east, "STOP").await?;
        let pause = holds_for(PAUSE, async || Ok(())).await;
        signal(east, "CONT").await?;
        pause?;
        holds_for(PAUSE, async || {
            let noted = transitions(&clusterset, "east").await?;
            ensure!(noted == [0, 0, 0], "a pause of {PAUSE:?} was noted: {noted:?}");
            Ok(())
        })
        .await?;
    }

    signal(east, "STOP").await?;
    let stopped = async {
        eventually("east is lost", async || {
            Ok((transitions(&clusterset, "east").await? == [1, 1, 0]).then_some(()))
        })
        .await?;
        let profile = healthy(&clusterset, "east").await?;
        ensure!(profile == "Unknown", "silence is Unknown, never {profile}");
        let state = state(&clusterset).await?;
        let member = state.members.iter().find(|member| member.cluster == "east");
        ensure!(
            member.is_some_and(|member| member.state() == v1::SourceState::SourceLost),
            "{member:?}"
        );
        anyhow::Ok(())
    };
    let stopped = stopped.await;
    signal(east, "CONT").await?;
    stopped?;
    eventually("east lives again", async || {
        Ok((transitions(&clusterset, "east").await? == [1, 1, 1]).then_some(()))
    })
    .await?;
    eventually("its profile too", async || {
        Ok((healthy(&clusterset, "east").await? == "True").then_some(()))
    })
    .await?;
    ensure!(
        transitions(&clusterset, "west").await? == [0, 0, 0],
        "west was there all the time"
    );
    clusterset.end().await
}

/// An agent that ends in good order says goodbye, and the hub hears it: nothing is recorded of its silence.
pub(super) async fn who_says_goodbye_is_not_missed(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &backend, &["east", "west"]).await?;
    listed(&clusterset, &["east", "west"]).await?;
    clusterset.stop_agent("east").await?;
    holds_for(BLAME, async || {
        let noted = transitions(&clusterset, "east").await?;
        ensure!(noted == [0, 0, 0], "it said goodbye and is missed: {noted:?}");
        Ok(())
    })
    .await?;
    clusterset.start_agent("east").await?;
    listed(&clusterset, &["east", "west"]).await?;
    clusterset.end().await
}

/// The hub itself stands still: when it goes on, no member is blamed for its own silence.
pub(super) async fn a_stopped_hub_blames_nobody() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &["east", "west"]).await?;
    listed(&clusterset, &["east", "west"]).await?;
    let hub = clusterset.hub()?.id().context("the hub runs")?;
    signal(hub, "STOP").await?;
    let stopped = holds_for(STOPPED, async || Ok(())).await;
    signal(hub, "CONT").await?;
    stopped?;
    listed(&clusterset, &["east", "west"]).await?;
    holds_for(BLAME, async || {
        for cluster in ["east", "west"] {
            let noted = transitions(&clusterset, cluster).await?;
            ensure!(noted == [0, 0, 0], "{cluster} was blamed: {noted:?}");
        }
        Ok(())
    })
    .await?;
    listed(&clusterset, &["east", "west"]).await?;
    clusterset.end().await
}
