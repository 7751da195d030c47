//! `tributary uninstall`: the hub goes from its cluster.
//!
//! * `decide.rs`: refusals, and if the members are asked for, pure. Here: looks, and carries the steps out.

mod decide;

use anyhow::{anyhow, bail};
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::PersistentVolumeClaim};
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};
use serde_json::json;
use shared::model::advice;

use self::decide::{Authority, Seen, StatefulSetSeen, authority, decide, members, secret_name};
use super::{
    args::UninstallArgs,
    cluster::{Cluster, Right},
    helm::Helm,
    home::Home,
    hub::Operator,
    init::HUB,
    join::AGENT,
    leave::{gone, remove_namespace, uninstall, uninstall_definitions},
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
    let seen = look(home, &cluster, &helm).await?;
    if decide(&seen).map_err(|why| anyhow!("nothing was changed: {why}"))? {
        check_empty(home).await?;
    }
    uninstall(&helm, &cluster, HUB, progress).await?;
    gone(
        progress,
        "volume",
        "the volume of the event log",
        delete_volume(&cluster).await?,
    )?;
    delete_secret(&cluster, HUB_JOINING, progress).await?;
    home.remember(|all| all.hub = None)?;
    gone(
        progress,
        "context",
        &format!("the context {}", home.clusterset),
        home.remove_context()?,
    )?;
    // Until the hub is forgotten, this Secret tells an interrupted command's next run that the hub was here.
    delete_secret(&cluster, HUB_TLS, progress).await?;
    if helm.release(&cluster, AGENT).await?.is_none() {
        uninstall_definitions(&helm, &cluster, progress).await?;
        remove_namespace(&cluster, args.common.timeout, progress).await?;
    }
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

/// Looks at the cluster and this machine. Nothing is changed.
async fn look<'a>(home: &'a Home, cluster: &'a Cluster, helm: &Helm) -> anyhow::Result<Seen<'a>> {
    let release = helm.release(cluster, HUB).await?;
    let secret = secret_name(release.as_ref()).to_owned();
    let there = cluster.secret(&secret).await?;
    let authority = match there {
        Some(texts) => {
            let there = texts.get("ca.crt").map(String::as_str).unwrap_or_default();
            authority(there, &home.need("ca.crt")?)
        }
        None => Authority::Missing,
    };
    let sets = Api::<StatefulSet>::namespaced(cluster.client.clone(), cluster.namespace());
    let set = sets.get_opt(HUB).await.map_err(|error| cluster.failed(error))?;
    Ok(Seen {
        clusterset: &home.clusterset,
        context: &cluster.args.context,
        namespace: cluster.namespace(),
        fingerprint: cluster.fingerprint().await?,
        release,
        set: StatefulSetSeen::of(set.as_ref()),
        secret,
        authority,
        volume: !volumes(cluster).await?.is_empty(),
        remembered: home.remembered()?,
    })
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

async fn delete_secret(cluster: &Cluster, name: &str, progress: &mut Progress) -> anyhow::Result<()> {
    let text = format!("the Secret {}/{name}", cluster.namespace());
    gone(progress, "secret", &text, cluster.delete_secret(name).await?)
}

/// Names of the hub's volumes.
async fn volumes(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let claims = Api::<PersistentVolumeClaim>::namespaced(cluster.client.clone(), cluster.namespace());
    let of_hub = ListParams::default().labels(&format!("app.kubernetes.io/name={HUB}"));
    let found = claims.list(&of_hub).await;
    let found = found.map_err(|error| cluster.failed(error))?.items;
    Ok(found
        .into_iter()
        .filter_map(|claim| claim.metadata.name)
        .collect())
}

async fn delete_volume(cluster: &Cluster) -> anyhow::Result<bool> {
    let claims = Api::<PersistentVolumeClaim>::namespaced(cluster.client.clone(), cluster.namespace());
    let found = volumes(cluster).await?;
    for name in &found {
        match claims.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            deleted => drop(deleted.map_err(|error| cluster.failed(error))?),
        }
    }
    Ok(!found.is_empty())
}
