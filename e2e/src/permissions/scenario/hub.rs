//! Owns: what a hub does with each of its rights.
//! Never: says which right that is; the table does.

use anyhow::ensure;
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use proto::v1::EvictMemberRequest;
use serde_json::json;
use shared::api::names::{
    CLUSTER_MANAGER, HUB_MANAGER, LABEL_CLUSTER_MANAGER, LABEL_IDENTITY, TRIBUTARY_NAMESPACE,
};

use super::stage::{MEMBER, Stage, api};
use cluster::rights::Account;

/// A member has a profile, which says how its cluster is, which is put right when somebody changes it, and which goes
/// with the member.
pub(super) async fn profiles_are_kept(stage: &mut Stage) -> anyhow::Result<()> {
    let kubeconfig = stage.kubeconfig(Account::Hub)?;
    stage.clusterset.stop_hub().await?;
    let flags = ["--kubeconfig", &*kubeconfig.to_string_lossy()];
    stage.clusterset.start_hub_with(&flags).await?;
    stage.start_agent().await?;
    let profiles = stage.profiles();
    stage
        .until("the member has a healthy profile", async || {
            let profile = profiles.get(MEMBER).await?;
            let conditions = profile.data["status"]["conditions"].as_array();
            let healthy = conditions
                .into_iter()
                .flatten()
                .any(|one| one["type"] == "ControlPlaneHealthy" && one["status"] == "True");
            Ok(healthy.then_some(()))
        })
        .await?;
    let meddled = json!({"metadata": {"labels": {LABEL_CLUSTER_MANAGER: "meddler"}}});
    profiles
        .patch(MEMBER, &PatchParams::default(), &Patch::Merge(&meddled))
        .await?;
    stage
        .until("what somebody changed is changed back", async || {
            let labels = profiles.get(MEMBER).await?.metadata.labels.unwrap_or_default();
            let manager = labels.get(LABEL_CLUSTER_MANAGER);
            Ok(manager
                .is_some_and(|manager| manager.starts_with(CLUSTER_MANAGER))
                .then_some(()))
        })
        .await?;
    stage.clusterset.stop_agent(MEMBER).await?;
    let evict = EvictMemberRequest {
        cluster: MEMBER.to_owned(),
        confirm: true,
        ..EvictMemberRequest::default()
    };
    stage.clusterset.inspect().await?.membership.evict(evict).await?;
    stage
        .until("the profile goes with the member", async || {
            Ok(profiles.get_opt(MEMBER).await?.is_none().then_some(()))
        })
        .await
}

/// A hub keeps a Lease of itself, which the next start of the same hub takes over, and which goes with a clean end.
pub(super) async fn a_hub_says_that_it_runs(stage: &mut Stage) -> anyhow::Result<()> {
    let leases = api(
        &stage.client,
        "coordination.k8s.io/v1",
        "Lease",
        TRIBUTARY_NAMESPACE,
    );
    let selector = ListParams::default().labels(&format!("{LABEL_IDENTITY}={HUB_MANAGER}"));
    let kept = async || {
        let found = leases.list(&selector).await?.items.into_iter();
        anyhow::Ok(found.map(|lease| (lease.name_any(), lease.data["spec"]["leaseTransitions"].as_i64())))
    };
    let kubeconfig = stage.kubeconfig(Account::Hub)?;
    let flags = ["--kubeconfig", &*kubeconfig.to_string_lossy()];
    stage.clusterset.stop_hub().await?;
    let before: Vec<String> = kept().await?.map(|(name, _)| name).collect();
    stage.clusterset.start_hub_with(&flags).await?;
    let name = stage
        .until("the hub keeps a Lease of itself", async || {
            Ok(kept()
                .await?
                .map(|(name, _)| name)
                .find(|name| !before.contains(name)))
        })
        .await?;
    stage.clusterset.kill_hub().await?;
    stage.clusterset.start_hub_with(&flags).await?;
    let taken_over = (name.clone(), Some(1));
    stage
        .until("the next start takes the Lease over", async || {
            Ok(kept().await?.any(|lease| lease == taken_over).then_some(()))
        })
        .await?;
    stage.clusterset.stop_hub().await?;
    let left = kept().await?.any(|(left, _)| left == name);
    ensure!(!left, "the hub ended, and its Lease stays");
    Ok(())
}
