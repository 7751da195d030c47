//! Owns: what a hub does with each of its rights.
//! Never: says which right that is; the table does.

use kube::api::{Patch, PatchParams};
use proto::v1::EvictMemberRequest;
use serde_json::json;
use shared::api::names::{CLUSTER_MANAGER, LABEL_CLUSTER_MANAGER};

use super::stage::{MEMBER, Stage};
use crate::rights::Account;

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
                .is_some_and(|manager| manager == CLUSTER_MANAGER)
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
