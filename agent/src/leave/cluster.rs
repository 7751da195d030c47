//! Owns: the objects of the agent's in a cluster that leaves: finding all of them, and deleting, giving up or taking back
//! one, in the version that was seen.
//! Never: decides what becomes of one.

use std::fmt::Debug;

use k8s_openapi::{
    NamespaceResourceScope,
    api::{coordination::v1::Lease, core::v1::Service, discovery::v1::EndpointSlice},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions, ValidationDirective},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use shared::api::{
    ClusterProperty, ServiceExport, ServiceImport,
    names::{
        ABOUT_API_VERSION, AGENT_LEASE, AGENT_MANAGER, LABEL_IDENTITY, LABEL_MANAGED_BY,
        MULTICLUSTER_API_VERSION, PROPERTY_CLUSTER_ID, PROPERTY_CLUSTERSET,
    },
};

use super::decide::{Fate, Found, Kind};
use crate::convert::owned::{OwnedFields, is_ours};

/// Objects that are read at a time.
const PAGE: u32 = 500;

/// An object as it was seen.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) found: Found,
    uid: Option<String>,
    version: Option<String>,
    /// The value of a property.
    value: Option<String>,
}

/// A cluster, and the namespace of its agent.
pub(super) struct Cluster {
    client: Client,
    namespace: String,
}

impl Cluster {
    pub(super) fn new(client: Client, namespace: String) -> Self {
        Self { client, namespace }
    }

    /// Everything with the agent's label or fields of the agent's, in the order in which it goes.
    pub(super) async fn look(&self) -> Result<Vec<Item>, kube::Error> {
        let labelled = format!("{LABEL_MANAGED_BY}={AGENT_MANAGER}");
        let processes = format!("{LABEL_IDENTITY}={AGENT_MANAGER}");
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut items = Vec::new();
        items.extend(
            list(self.all::<EndpointSlice>(), Some(&labelled), |_| {
                Some(Kind::Slice)
            })
            .await?,
        );
        items.extend(
            list(self.all::<ServiceImport>(), Some(&labelled), |_| {
                Some(Kind::Import)
            })
            .await?,
        );
        items.extend(list(self.all::<Service>(), Some(&labelled), |_| Some(Kind::Derived)).await?);
        items.extend(list(self.all::<ServiceExport>(), None, conditions).await?);
        items.extend(self.properties(&labelled).await?);
        items.extend(list(leases.clone(), Some(&labelled), |_| Some(Kind::Lease)).await?);
        items.extend(list(leases.clone(), Some(&processes), |_| Some(Kind::Lease)).await?);
        items.extend(
            leases
                .get_opt(AGENT_LEASE)
                .await?
                .map(|lease| item(&lease, Kind::Lead)),
        );
        items.sort_by(|one, other| key(one).cmp(&key(other)));
        items.dedup_by(|one, other| key(one) == key(other));
        Ok(items)
    }

    async fn properties(&self, labelled: &str) -> Result<Vec<Item>, kube::Error> {
        let mut items = Vec::new();
        pages(&self.all::<ClusterProperty>(), Some(labelled), |property| {
            let kind = match property.name_any().as_str() {
                PROPERTY_CLUSTERSET => Kind::Clusterset,
                PROPERTY_CLUSTER_ID => Kind::ClusterId,
                _ => Kind::Property,
            };
            items.push(Item {
                value: Some(property.spec.value.clone()),
                ..item(property, kind)
            });
        })
        .await?;
        Ok(items)
    }

    fn all<K: Resource<DynamicType = ()>>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }

    /// Brings one about. Missing objects are done; changed ones are left for the next look.
    pub(super) async fn carry_out(&self, item: &Item, fate: Fate) -> Result<(), kube::Error> {
        let done = match fate {
            Fate::Goes => self.delete(item).await,
            Fate::TakenBack => self.take_back(item).await,
            Fate::GivenUp => self.give_up(item).await,
            Fate::Kept | Fate::NotOurs => Ok(()),
        };
        match done {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            done => done,
        }
    }

    async fn delete(&self, item: &Item) -> Result<(), kube::Error> {
        match item.found.kind {
            Kind::Slice => delete(self.of::<EndpointSlice>(item), item).await,
            Kind::Import => delete(self.of::<ServiceImport>(item), item).await,
            Kind::Derived => delete(self.of::<Service>(item), item).await,
            Kind::Lease | Kind::Lead => delete(self.of::<Lease>(item), item).await,
            Kind::Clusterset | Kind::ClusterId | Kind::Property => {
                delete(self.all::<ClusterProperty>(), item).await
            }
            // An export is never the agent's.
            Kind::Conditions => Ok(()),
        }
    }

    fn of<K>(&self, item: &Item) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &item.found.namespace)
    }

    /// An apply that states nothing of the status leaves nothing of the agent's in it.
    async fn take_back(&self, item: &Item) -> Result<(), kube::Error> {
        let body = json!({
            "apiVersion": MULTICLUSTER_API_VERSION, "kind": "ServiceExport",
            "metadata": {"name": item.found.name, "namespace": item.found.namespace, "uid": item.uid,
                         "resourceVersion": item.version},
        });
        let exports: Api<ServiceExport> = self.of(item);
        let name = &item.found.name;
        exports
            .patch_status(name, &force(), &Patch::Apply(&body))
            .await
            .map(drop)
    }

    /// An apply without the label leaves the value.
    async fn give_up(&self, item: &Item) -> Result<(), kube::Error> {
        let body = json!({
            "apiVersion": ABOUT_API_VERSION, "kind": "ClusterProperty",
            "metadata": {"name": item.found.name, "uid": item.uid, "resourceVersion": item.version},
            "spec": {"value": item.value},
        });
        let properties = self.all::<ClusterProperty>();
        properties
            .patch(&item.found.name, &force(), &Patch::Apply(&body))
            .await
            .map(drop)
    }
}

fn force() -> PatchParams {
    PatchParams::apply(AGENT_MANAGER)
        .force()
        .validation(ValidationDirective::Ignore)
}

async fn delete<K>(api: Api<K>, item: &Item) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: item.uid.clone(),
            resource_version: item.version.clone(),
        }),
        ..DeleteParams::default()
    };
    api.delete(&item.found.name, &params).await.map(drop)
}

fn key(item: &Item) -> (Kind, &str, &str) {
    (item.found.kind, &item.found.namespace, &item.found.name)
}

async fn list<K>(
    api: Api<K>,
    selector: Option<&str>,
    kind: impl Fn(&K) -> Option<Kind>,
) -> Result<Vec<Item>, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let mut items = Vec::new();
    pages(&api, selector, |object| {
        items.extend(kind(object).map(|kind| item(object, kind)));
    })
    .await?;
    Ok(items)
}

/// Every object, page by page; none where the kind is not served.
async fn pages<K>(api: &Api<K>, selector: Option<&str>, mut each: impl FnMut(&K)) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let mut params = ListParams::default().limit(PAGE);
    if let Some(selector) = selector {
        params = params.labels(selector);
    }
    loop {
        let page = match api.list(&params).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            page => page?,
        };
        page.items.iter().for_each(&mut each);
        match page.metadata.continue_.filter(|more| !more.is_empty()) {
            Some(more) => params = params.continue_token(&more),
            None => return Ok(()),
        }
    }
}

/// An export that bears conditions of the agent's.
fn conditions(export: &ServiceExport) -> Option<Kind> {
    OwnedFields::of_status(export)
        .has(&["status"])
        .then_some(Kind::Conditions)
}

fn item<K: Resource<DynamicType = ()>>(object: &K, kind: Kind) -> Item {
    let going = object.meta().deletion_timestamp.is_some();
    let finalizers = object.meta().finalizers.clone().unwrap_or_default();
    Item {
        found: Found {
            kind,
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            // Leases are written whole, by a name that is the agent's in the agent's own namespace.
            ours: matches!(kind, Kind::Conditions | Kind::Lead)
                || is_ours(object)
                || is_our_lease(object, kind),
            finalizers: if going { finalizers } else { Vec::new() },
        },
        uid: object.uid(),
        version: object.resource_version(),
        value: None,
    }
}

/// Leases are created and updated, not applied.
fn is_our_lease<K: Resource>(object: &K, kind: Kind) -> bool {
    let mut managers = object.meta().managed_fields.iter().flatten();
    kind == Kind::Lease && managers.any(|entry| entry.manager.as_deref() == Some(AGENT_MANAGER))
}
