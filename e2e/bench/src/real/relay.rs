//! Owns: the bare relay, the floor of what any multi-cluster product can reach: one watch in one cluster, one
//! server-side apply into another per event, and one beside the original, for KEP-1645 has an exporting cluster
//! import its own service too. No hub, no log, no conflict, no deletion.
//! Never: is more than that.

use std::sync::Arc;

use futures::TryStreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{
    Client,
    api::{Api, Patch, PatchParams},
    runtime::watcher::{self, watcher},
};
use serde_json::json;
use shared::api::names;
use tokio::{sync::Semaphore, task::JoinSet};

use super::objects::{SLICES_MANAGER, create};
use cluster::real::Cluster;

/// Writes under way at a time: as many as an agent has, for each of the two clusters.
const WRITES_MAX: usize = 32;
const MANAGER: &str = "bare-relay";
/// The relay's service account, by namespace and name.
pub(super) const ACCOUNT: (&str, &str) = ("bare-relay", "bare-relay");
/// The role of an agent: what asks as an administrator is neither held against roles nor queued, and costs less.
const ROLE: &str = "tributary-agent";
/// Prefix of the names of copies in the exporting cluster.
const COPY_PREFIX: &str = "copy-of-";

/// A client for the relay in one cluster, with the rights of an agent. `administrator` gives them.
pub(super) async fn client(cluster: &Cluster, administrator: &Client) -> anyhow::Result<Client> {
    let (namespace, name) = ACCOUNT;
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": ROLE},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}],
    });
    create(administrator, None, binding).await?;
    Ok(cluster.service_account(namespace, name)?.client().await?)
}

/// Relays the slices of one namespace until it is dropped.
pub(super) async fn relay(from: Client, to: Client, namespace: &str) -> anyhow::Result<()> {
    let own: Api<EndpointSlice> = Api::namespaced(from, namespace);
    let other: Api<EndpointSlice> = Api::namespaced(to, namespace);
    let (mut writing, turn) = (JoinSet::new(), Arc::new(Semaphore::new(WRITES_MAX)));
    let originals = format!("{}={SLICES_MANAGER}", names::LABEL_ENDPOINT_SLICE_MANAGED_BY);
    let config = watcher::Config::default().labels(&originals);
    let mut events = std::pin::pin!(watcher(own.clone(), config));
    while let Some(event) = events.try_next().await? {
        let (watcher::Event::Apply(slice) | watcher::Event::InitApply(slice)) = event else {
            continue;
        };
        let name = slice.metadata.name.clone().unwrap_or_default();
        for (api, name) in [(&other, name.clone()), (&own, format!("{COPY_PREFIX}{name}"))] {
            let (turn, api) = (turn.clone().acquire_owned().await?, api.clone());
            let copy = copy(&slice, name);
            writing.spawn(async move {
                let _turn = turn;
                let name = copy.metadata.name.clone().unwrap_or_default();
                let parameters = PatchParams::apply(MANAGER).force();
                api.patch(&name, &parameters, &Patch::Apply(&copy)).await
            });
        }
        while let Some(written) = writing.try_join_next() {
            written??;
        }
    }
    Ok(())
}

/// The same endpoints under another name, and not to be relayed again.
fn copy(slice: &EndpointSlice, name: String) -> EndpointSlice {
    let mut labels = slice.metadata.labels.clone().unwrap_or_default();
    labels.insert(names::LABEL_ENDPOINT_SLICE_MANAGED_BY.into(), MANAGER.into());
    EndpointSlice {
        metadata: kube::api::ObjectMeta {
            name: Some(name),
            labels: Some(labels),
            ..Default::default()
        },
        ..slice.clone()
    }
}
