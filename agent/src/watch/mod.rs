//! One watch per kind for the whole process: observe and apply read the same stores.
//! Keeps objects as they are; what they mean is for the readers.

mod dirty;
mod store;

use std::{fmt::Debug, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::watcher::{self, watcher},
};
use serde::de::DeserializeOwned;
use shared::{
    api::{
        ServiceExport, ServiceImport,
        names::{AGENT_MANAGER, LABEL_KUBERNETES_SERVICE_NAME, LABEL_MANAGED_BY, LABEL_SERVICE_NAME},
    },
    model::ServiceKey,
    process::{Backoff, random},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

pub use dirty::Dirty;
pub use store::{Index, ObjectKey, Watched, WriteTicket};

/// First wait after a watch failed.
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// Longest wait after a watch failed.
const RETRY_LONGEST: Duration = Duration::from_secs(10);

/// The kinds that observe and apply share.
#[derive(Clone)]
pub struct Watches {
    /// Namespaces.
    pub namespaces: Watched<Namespace>,
    /// Services; a derived one belongs to the service it is derived for.
    pub services: Watched<Service>,
    /// EndpointSlices: those of local Services and the imported ones, each by the service it belongs to.
    pub slices: Watched<EndpointSlice>,
    /// ServiceExports.
    pub exports: Watched<ServiceExport>,
    /// ServiceImports.
    pub imports: Watched<ServiceImport>,
}

impl Default for Watches {
    fn default() -> Self {
        Self {
            namespaces: Watched::new(|_| None),
            services: Watched::new(|service| {
                label_key(service, LABEL_SERVICE_NAME)
                    .filter(|_| is_labelled_ours(service))
                    .or_else(|| own_key(service))
            }),
            slices: Watched::new(|slice| {
                label_key(slice, LABEL_SERVICE_NAME)
                    .or_else(|| label_key(slice, LABEL_KUBERNETES_SERVICE_NAME))
            }),
            exports: Watched::new(own_key),
            imports: Watched::new(own_key),
        }
    }
}

impl Watches {
    /// Follows all kinds until `drain`. A kind that cannot be listed is tried again for ever, and unknown
    /// meanwhile.
    pub async fn run(self, client: Client, drain: CancellationToken) -> anyhow::Result<()> {
        tokio::join!(
            follow(Api::all(client.clone()), &self.namespaces, &drain),
            follow(Api::all(client.clone()), &self.services, &drain),
            follow(Api::all(client.clone()), &self.slices, &drain),
            follow(Api::all(client.clone()), &self.exports, &drain),
            follow(Api::all(client), &self.imports, &drain),
        );
        Ok(())
    }

    /// Whether every kind that an export is joined from is known.
    pub fn exports_known(&self) -> bool {
        self.namespaces.is_listed()
            && self.services.is_listed()
            && self.slices.is_listed()
            && self.exports.is_listed()
    }
}

/// Follows one kind until `drain`.
pub async fn follow<K>(api: Api<K>, store: &Watched<K>, drain: &CancellationToken)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let kind = K::kind(&());
    let mut backoff = Backoff::new(RETRY_FIRST, RETRY_LONGEST);
    let begin = || watcher(api.clone(), watcher::Config::default()).boxed();
    let mut events = begin();
    loop {
        let event = tokio::select! {
            biased;
            () = drain.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            Some(Ok(event)) => {
                backoff.succeeded();
                show(store, event);
            }
            Some(Err(error)) => {
                if is_not_served(&error) {
                    store.unlisted();
                    events = begin(); // a watch would go on where it was: only a listing makes the kind known again
                    warn!(%kind, %error, "cannot list the kind: install its CRD, or let the agent read it (see deploy/)");
                } else {
                    debug!(%kind, %error, "watch interrupted");
                }
                let wait = backoff.failed(random());
                tokio::select! {
                    biased;
                    () = drain.cancelled() => return,
                    () = tokio::time::sleep(wait) => {}
                }
            }
            None => return,
        }
    }
}

/// Takes an event of a watch into the store that follows it.
pub fn show<K: Resource>(store: &Watched<K>, event: watcher::Event<K>) {
    store.handle(event.modify(forget_strange_managers));
}

/// The kind is not there, or not for us.
fn is_not_served(error: &watcher::Error) -> bool {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => status.code,
        watcher::Error::WatchError(status) => status.code,
        _ => 0,
    };
    means_not_served(code)
}

/// Whether this HTTP status says that the kind is not there, or not for us: then it is unknown, not empty.
pub fn means_not_served(code: u16) -> bool {
    matches!(code, 401 | 403 | 404)
}

/// Who wrote other people's objects is nothing to us, and the larger part of their size.
fn forget_strange_managers<K: Resource>(object: &mut K) {
    let ours = |entry: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry| {
        entry.manager.as_deref() == Some(AGENT_MANAGER)
    };
    if let Some(entries) = &mut object.meta_mut().managed_fields {
        entries.retain(ours);
    }
}

fn is_labelled_ours<K: Resource>(object: &K) -> bool {
    object
        .labels()
        .get(LABEL_MANAGED_BY)
        .is_some_and(|by| by == AGENT_MANAGER)
}

/// Namespace and name of the object itself.
fn own_key<K: Resource>(object: &K) -> Option<ServiceKey> {
    let meta = object.meta();
    ServiceKey::new(meta.namespace.as_deref()?, meta.name.as_deref()?).ok()
}

/// The object's namespace and the name that a label states.
fn label_key<K: Resource>(object: &K, label: &str) -> Option<ServiceKey> {
    let namespace = object.meta().namespace.as_deref()?;
    ServiceKey::new(namespace, object.labels().get(label)?).ok()
}
