//! The agent's one set of watches: each kind is watched once, and everyone in the process reads the same cache.
//! Watches go on for ever; a kind that cannot be listed stays as it was last known, or unknown.

mod cache;
mod queue;
mod store;

use std::fmt::Debug;

use futures::StreamExt;
use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use shared::api::{ClusterProperty, ServiceExport, ServiceImport};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

pub use self::{
    cache::{Cache, Cached, SharedCache},
    queue::KeyQueue,
    store::{Change, Changes, ObjectKey, Store},
};

/// Watches every kind until `drain`.
pub async fn run(client: Client, cache: SharedCache, drain: CancellationToken) {
    tokio::join!(
        kind::<Namespace>(&client, &cache, &drain),
        kind::<Service>(&client, &cache, &drain),
        kind::<ServiceExport>(&client, &cache, &drain),
        kind::<ServiceImport>(&client, &cache, &drain),
        kind::<EndpointSlice>(&client, &cache, &drain),
        kind::<ClusterProperty>(&client, &cache, &drain),
    );
}

async fn kind<K>(client: &Client, cache: &SharedCache, drain: &CancellationToken)
where
    K: Cached + DeserializeOwned + Debug,
{
    let name = K::kind(&());
    let api = Api::<K>::all(client.clone());
    let events = watcher(api, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    let mut failing = false;
    loop {
        let event = tokio::select! {
            biased;
            () = drain.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            None => return,
            Some(Ok(event)) => {
                if std::mem::take(&mut failing) {
                    info!(kind = %name, "the watch works again");
                }
                cache.take(event);
            }
            Some(Err(error)) => {
                // One line when it begins to fail: it is tried again for ever, with growing pauses.
                match std::mem::replace(&mut failing, true) {
                    false => warn!(kind = %name, %error, "{}", advice(&error)),
                    true => debug!(kind = %name, %error, "the watch still fails"),
                }
            }
        }
    }
}

fn advice(error: &watcher::Error) -> &'static str {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status,
        watcher::Error::WatchError(status) => status,
        _ => return "the watch failed; what is known of this kind stays as it is",
    };
    match status.code {
        404 => {
            "this kind is not served: install the CRDs from deploy/crds; until then it is unknown, not empty"
        }
        403 => {
            "this kind may not be listed: apply the RBAC from deploy/agent; until then it is unknown, not empty"
        }
        410 => "the watch was too far behind and lists again",
        _ => "the watch failed; what is known of this kind stays as it is",
    }
}
