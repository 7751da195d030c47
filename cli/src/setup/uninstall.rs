//! `tributary uninstall`: the hub goes from its cluster.

use anyhow::bail;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};
use proto::v1::{MemberState, SourceState};
use serde_json::json;
use shared::model::advice;

use super::{
    args::UninstallArgs,
    cluster::{Cluster, Right},
    helm::{DEFINITIONS_RELEASE, Helm},
    home::Home,
    hub::Operator,
    init::HUB,
    join::AGENT,
    leave::{gone, remove_namespace, uninstall},
    progress::Progress,
    values::{HUB_JOINING, HUB_TLS},
};

/// Runs the command and returns what to print.
pub(super) async fn run(
    args: &UninstallArgs,
    home: &Home,
    progress: &mut Progress,
) -> anyhow::Result<String> {
    let helm = Helm::find(&args.helm).await?;
    let cluster = Cluster::connect(&args.cluster).await?;
    cluster.require(&needed(cluster.namespace())).await?;
    check_ours(&cluster, home).await?;
    if helm.release(&cluster, HUB).await?.is_some() {
        check_empty(home).await?;
    }
    uninstall(&helm, &cluster, HUB, progress).await?;
    gone(
        progress,
        "volume",
        "the volume of the event log",
        delete_volume(&cluster).await?,
    )?;
    for name in [HUB_TLS, HUB_JOINING] {
        let text = format!("the Secret {}/{name}", cluster.namespace());
        gone(progress, "secret", &text, cluster.delete_secret(name).await?)?;
    }
    if helm.release(&cluster, AGENT).await?.is_none() {
        uninstall(&helm, &cluster, DEFINITIONS_RELEASE, progress).await?;
        remove_namespace(&cluster, args.common.timeout, progress).await?;
    }
    home.remember(|all| all.hub = None)?;
    gone(
        progress,
        "context",
        &format!("the context {}", home.clusterset),
        home.remove_context()?,
    )?;
    let text = format!(
        "The hub of the clusterset {} is gone. Its keys stay in {}: with them `{}` makes the clusterset again; \
         delete them if it is not to return.",
        home.clusterset,
        home.directory.display(),
        advice::init()
    );
    Ok(progress.result(args.common.output, json!({"clusterset": home.clusterset}), &text))
}

fn needed(namespace: &str) -> [Right<'_>; 4] {
    [
        Right("apps", "statefulsets", "delete", Some(namespace)),
        Right("", "persistentvolumeclaims", "delete", Some(namespace)),
        Right("", "secrets", "delete", Some(namespace)),
        Right("rbac.authorization.k8s.io", "clusterroles", "delete", None),
    ]
}

/// The hub in the cluster must be of the authority on this machine.
async fn check_ours(cluster: &Cluster, home: &Home) -> anyhow::Result<()> {
    let Some(texts) = cluster.secret(HUB_TLS).await? else {
        return Ok(());
    };
    let there = texts.get("ca.crt").map(String::as_str).unwrap_or_default();
    let here = home.need("ca.crt")?;
    if !there.contains(here.trim()) {
        bail!(
            "nothing was changed: the hub in context {} is of another authority than clusterset {} of this machine. Check \
             --context and --clusterset",
            cluster.args.context,
            home.clusterset
        );
    }
    Ok(())
}

/// No member may be left: each would keep what it has, and nobody could tell it anything.
async fn check_empty(home: &Home) -> anyhow::Result<()> {
    // Without an address `init` never came to its end, and nobody can have joined.
    let Some(hub) = home.remembered()?.hub else {
        return Ok(());
    };
    let left = members(&Operator::connect(home, &hub).await?.members().await?);
    if left.is_empty() {
        return Ok(());
    }
    bail!(
        "nothing was changed: {} still in the clusterset. Run `{}` for each first",
        match left.as_slice() {
            [one] => format!("{one} is"),
            many => format!("{} are", many.join(", ")),
        },
        advice::leave(left.first().map_or("my-cluster", String::as_str))
    )
}

/// Those whose membership goes on.
fn members(all: &[MemberState]) -> Vec<String> {
    let ended = [
        SourceState::SourceLeft,
        SourceState::SourceEvicted,
        SourceState::SourceForgotten,
    ];
    let members = all.iter().filter(|member| !ended.contains(&member.state()));
    members.map(|member| member.cluster.clone()).collect()
}

async fn delete_volume(cluster: &Cluster) -> anyhow::Result<bool> {
    let claims = Api::<PersistentVolumeClaim>::namespaced(cluster.client.clone(), cluster.namespace());
    let of_hub = ListParams::default().labels(&format!("app.kubernetes.io/name={HUB}"));
    let found = claims
        .list(&of_hub)
        .await
        .map_err(|error| cluster.failed(error))?
        .items;
    for claim in &found {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let deleted = claims.delete(name, &DeleteParams::default()).await;
        deleted.map_err(|error| cluster.failed(error))?;
    }
    Ok(!found.is_empty())
}
