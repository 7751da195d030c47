//! One watch per kind for the whole process: observe and apply read the same stores.
//! Keeps objects as they are; what they mean is for the readers.

mod dirty;
mod follow;
mod store;

use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{Api, Client, Resource, ResourceExt};
use shared::{
    api::{
        ServiceExport, ServiceImport,
        names::{AGENT_MANAGER, LABEL_KUBERNETES_SERVICE_NAME, LABEL_MANAGED_BY, LABEL_SERVICE_NAME},
    },
    model::ServiceKey,
};
use tokio_util::sync::CancellationToken;

pub use dirty::{Dirty, Queue};
pub use follow::{follow, means_not_served, show};
pub use store::{Index, ObjectKey, Watched, WriteTicket};

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
