//! Owns: the bare relay, the floor of what any multi-cluster product can reach: one watch in one cluster, one
//! server-side apply into another per event. No hub, no log, no conflict, no deletion.
//! Never: is more than that.

use std::sync::Arc;

use futures::TryStreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{
    Client,
    api::{Api, Patch, PatchParams},
    runtime::watcher::{self, watcher},
};
use tokio::{sync::Semaphore, task::JoinSet};

/// Writes under way at a time.
const WRITES_MAX: usize = 16;
const MANAGER: &str = "bare-relay";

/// Relays the slices of one namespace until it is dropped.
pub(super) async fn relay(from: Client, to: Client, namespace: &str) -> anyhow::Result<()> {
    let from: Api<EndpointSlice> = Api::namespaced(from, namespace);
    let to: Api<EndpointSlice> = Api::namespaced(to, namespace);
    let (mut writing, turn) = (JoinSet::new(), Arc::new(Semaphore::new(WRITES_MAX)));
    let mut events = std::pin::pin!(watcher(from, watcher::Config::default()));
    while let Some(event) = events.try_next().await? {
        let (watcher::Event::Apply(slice) | watcher::Event::InitApply(slice)) = event else {
            continue;
        };
        let (turn, to) = (turn.clone().acquire_owned().await?, to.clone());
        writing.spawn(async move {
            let _turn = turn;
            apply(&to, slice).await
        });
        while let Some(written) = writing.try_join_next() {
            written??;
        }
    }
    Ok(())
}

async fn apply(to: &Api<EndpointSlice>, mut slice: EndpointSlice) -> anyhow::Result<()> {
    let name = slice.metadata.name.take().unwrap_or_default();
    slice.metadata = kube::api::ObjectMeta {
        name: Some(name.clone()),
        labels: slice.metadata.labels,
        ..Default::default()
    };
    to.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&slice))
        .await?;
    Ok(())
}
