//! Owns: the classes, Clusters and objects of these as the API server of a management cluster has them.
//! Never: writes anything.
//!
//! * `kinds.rs`: which kinds have them; pure.

pub mod kinds;

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, ListParams},
    config::KubeConfigOptions,
    core::GroupVersionKind,
    discovery,
};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use api_client::{ApiMetrics, api_client};
use clusterclass::desired::objects::{Listed, Unread};

/// The group of Clusters and ClusterClasses.
const CLUSTER_API_GROUP: &str = "cluster.x-k8s.io";

/// The kinds to read, and whether each must exist.
const KINDS: [(&str, bool); 5] = [
    ("ClusterClass", true),
    ("Cluster", true),
    ("MachineDeployment", true),
    ("Machine", false),
    ("MachineHealthCheck", false),
];
/// Clusters may have them. Whoever may not read them still learns of the Clusters without.
const MACHINE_POOL: &str = "MachinePool";
/// The label of what machine pools of topologies refer to, as of the pools themselves.
pub const OF_POOLS: &str = "topology.cluster.x-k8s.io/pool-name";
/// Objects of one answer.
const PAGE: u32 = 500;
/// Most objects that are read.
const MAX_OBJECTS: usize = 100_000;

/// Further kinds to read before deleting templates: machines may still be made from them.
const KINDS_OF_MACHINES: [(&str, bool); 1] = [("MachineSet", false)];

/// Reads the objects of topologies, in these namespaces, or in all if there are none.
pub async fn read(client: Client, namespaces: &[&str]) -> anyhow::Result<Listed> {
    read_kinds(client, namespaces, &KINDS).await
}

/// Reads one Cluster, if it is there.
pub async fn cluster(client: &Client, namespace: &str, name: &str) -> anyhow::Result<Option<Value>> {
    let resource = kind_of_clusters(client).await?;
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let found = api.get_opt(name).await.context("cannot get the Cluster")?;
    Ok(found.map(serde_json::to_value).transpose()?)
}

/// The kind Cluster, in the version that the server prefers.
pub async fn kind_of_clusters(client: &Client) -> anyhow::Result<ApiResource> {
    let group = cluster_api(client).await?;
    let found = group.recommended_kind("Cluster");
    let (resource, _) = found.context("the cluster serves no Cluster")?;
    Ok(resource)
}

/// Reads that of all namespaces, and all that may still refer to its templates.
pub async fn read_for_writing(client: Client) -> anyhow::Result<Listed> {
    let kinds: Vec<_> = KINDS.into_iter().chain(KINDS_OF_MACHINES).collect();
    read_kinds(client, &[], &kinds).await
}

async fn cluster_api(client: &Client) -> anyhow::Result<discovery::ApiGroup> {
    let group = discovery::group(client, CLUSTER_API_GROUP).await;
    group.with_context(|| {
        format!(
            "the cluster serves no {CLUSTER_API_GROUP}: install Cluster API there, or name another kubeconfig or context"
        )
    })
}

async fn read_kinds(client: Client, namespaces: &[&str], kinds: &[(&str, bool)]) -> anyhow::Result<Listed> {
    let mut reader = Reader {
        client,
        namespaces,
        objects: Vec::new(),
        unread: Unread::new(),
    };
    let group = cluster_api(&reader.client).await?;
    for (kind, needed) in kinds.iter().copied() {
        match group.recommended_kind(kind) {
            Some((resource, _)) => reader.list(&resource, None).await?,
            None => ensure!(!needed, "the cluster serves no {kind} of {CLUSTER_API_GROUP}"),
        }
    }
    let kinds = kinds::of_classes(&reader.objects);
    for (api_version, kind) in &kinds {
        reader.list_named(api_version, kind).await?;
    }
    reader.of_clusters(&kinds).await?;
    if let Some((resource, _)) = group.recommended_kind(MACHINE_POOL) {
        reader.pools(&resource, &kinds).await?;
    }
    Ok(Listed {
        objects: reader.objects,
        unread: reader.unread,
    })
}

/// A client for the API server of a kubeconfig; of its contexts the current one unless another is named.
pub async fn client(kubeconfig: &Path, context: Option<&str>) -> anyhow::Result<Client> {
    let shown = kubeconfig.display();
    let read = api_client::kubeconfig("--kubeconfig", kubeconfig)?;
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(read, &options).await;
    let config = config.with_context(|| format!("{shown} names no cluster to use"))?;
    api_client(config, ApiMetrics::register(&mut Registry::default())).context("no client can be made")
}

/// A kind that a class names.
///
/// # Errors
///
/// The server does not serve it, or does not answer.
pub async fn resource(client: &Client, api_version: &str, kind: &str) -> anyhow::Result<ApiResource> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let found = discovery::pinned_kind(client, &GroupVersionKind::gvk(group, version, kind)).await;
    let (resource, _) = found.with_context(|| {
        format!(
            "the cluster serves no {kind} of {api_version}, which a ClusterClass names: install its provider"
        )
    })?;
    Ok(resource)
}

/// The definition of a kind, which says the contract of each version. Without the right to read it, the version's name does.
///
/// # Errors
///
/// The server does not say: a guess would move fields of objects that exist.
pub async fn definition(client: &Client, resource: &ApiResource) -> anyhow::Result<Option<Value>> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = format!("{}.{}", resource.plural, resource.group);
    let definition = match definitions.get(&name).await {
        Ok(definition) => definition,
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot get the definition {name}")),
    };
    let labels = definition.metadata.labels;
    Ok(Some(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "labels": labels},
        "spec": {"group": resource.group, "names": {"kind": resource.kind, "plural": resource.plural}},
    })))
}

/// The kinds of Cluster API that writers read, as the server serves them.
///
/// # Errors
///
/// One that every topology needs is not served, or the server does not answer.
pub async fn kinds_for_writing(client: &Client) -> anyhow::Result<kinds::Served> {
    let group = cluster_api(client).await?;
    let mut served = kinds::Served::default();
    for (kind, needed) in KINDS.into_iter().chain(KINDS_OF_MACHINES) {
        match group.recommended_kind(kind) {
            Some((resource, _)) => served.kinds.push(resource),
            None => ensure!(!needed, "the cluster serves no {kind} of {CLUSTER_API_GROUP}"),
        }
    }
    served.pools = group.recommended_kind(MACHINE_POOL).map(|(resource, _)| resource);
    Ok(served)
}

struct Reader<'a> {
    client: Client,
    namespaces: &'a [&'a str],
    objects: Vec<Value>,
    unread: Unread,
}

impl Reader<'_> {
    /// The templates that Clusters refer to, in every version that classes use, and the contract of each kind.
    async fn of_clusters(&mut self, templates: &BTreeSet<(String, String)>) -> anyhow::Result<()> {
        let kinds = kinds::of_clusters(&self.objects);
        for (api_version, kind) in kinds::made(templates, &kinds, &self.unread) {
            let before = self.objects.len();
            if let Some(resource) = self.list_named(&api_version, &kind).await? {
                let definition = definition(&self.client, &resource).await;
                let defined = definition.map(|definition| self.objects.extend(definition));
                self.noted(before, (&api_version, &kind), defined)?;
            }
        }
        Ok(())
    }

    /// Machine pools, and what they refer to, in every version in which classes make it.
    async fn pools(
        &mut self,
        resource: &ApiResource,
        templates: &BTreeSet<(String, String)>,
    ) -> anyhow::Result<()> {
        let before = self.objects.len();
        let listed = self.list(resource, None).await;
        self.noted(before, (&resource.api_version, &resource.kind), listed)?;
        let kinds = kinds::of_pools(&self.objects[before..]);
        for (api_version, kind) in kinds::made(templates, &kinds, &self.unread) {
            let before = self.objects.len();
            let listed = async {
                let resource = crate::resource(&self.client, &api_version, &kind).await?;
                // Bootstrap objects of single machines are of the same kinds, and many.
                self.list(&resource, Some(OF_POOLS)).await
            };
            let listed = listed.await;
            self.noted(before, (&api_version, &kind), listed)?;
        }
        Ok(())
    }

    /// Notes why objects of a kind could not be listed, unless there are more than may be.
    fn noted(
        &mut self,
        before: usize,
        (api_version, kind): (&str, &str),
        listed: anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match listed {
            Err(error) if self.objects.len() > MAX_OBJECTS => Err(error),
            Err(error) => {
                // A part of them would be taken for all.
                self.objects.truncate(before);
                let key = (api_version.to_owned(), kind.to_owned());
                self.unread.insert(key, format!("{error:#}"));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Adds all objects of a kind that a class names, or notes why there are none: one class has no influence on the
    /// others.
    ///
    /// # Errors
    ///
    /// There are more objects than may be.
    async fn list_named(&mut self, api_version: &str, kind: &str) -> anyhow::Result<Option<ApiResource>> {
        let before = self.objects.len();
        let listed = async {
            let resource = crate::resource(&self.client, api_version, kind).await?;
            self.list(&resource, None).await?;
            anyhow::Ok(resource)
        };
        let (resource, listed) = match listed.await {
            Ok(resource) => (Some(resource), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.noted(before, (api_version, kind), listed)?;
        Ok(resource)
    }

    /// Adds all objects of a kind, or those with a label.
    async fn list(&mut self, resource: &ApiResource, labelled: Option<&str>) -> anyhow::Result<()> {
        if self.namespaces.is_empty() {
            let api = Api::all_with(self.client.clone(), resource);
            return self.list_all(resource, api, labelled).await;
        }
        for namespace in self.namespaces {
            let api = Api::namespaced_with(self.client.clone(), namespace, resource);
            self.list_all(resource, api, labelled).await?;
        }
        Ok(())
    }

    async fn list_all(
        &mut self,
        resource: &ApiResource,
        api: Api<DynamicObject>,
        labelled: Option<&str>,
    ) -> anyhow::Result<()> {
        let mut page = ListParams::default().limit(PAGE);
        page.label_selector = labelled.map(str::to_owned);
        loop {
            let listed = api.list(&page).await;
            let listed = listed.with_context(|| format!("cannot list {}", resource.plural))?;
            for object in listed.items {
                let mut value = serde_json::to_value(object)?;
                value["apiVersion"] = json!(resource.api_version);
                value["kind"] = json!(resource.kind);
                self.objects.push(value);
            }
            ensure!(
                self.objects.len() <= MAX_OBJECTS,
                "the cluster has more than {MAX_OBJECTS} objects: name a namespace"
            );
            match listed.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
