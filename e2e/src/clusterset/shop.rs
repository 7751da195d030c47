//! A namespace with services that clusters export: what a story does to them, what should be the outcome in every
//! cluster, and what is. It knows nothing of hubs and agents.

use std::collections::{BTreeMap, BTreeSet};

use super::{LocalClusterset, eventually::eventually};
use crate::suite::unique_name;
use anyhow::{Context, bail, ensure};
use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use shared::{
    api::{ServiceExport, ServiceImport, names},
    model::derived_name::derived_service_name,
};

/// Addresses by exporting cluster.
type Exporters = BTreeMap<String, BTreeSet<String>>;

/// The namespace, and what is exported in it.
pub struct Shop {
    /// Its name, the same in every cluster.
    pub namespace: String,
    exports: BTreeMap<String, Exporters>,
}

/// What a cluster holds of one service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Held {
    /// status.clusters of the import.
    clusters: BTreeSet<String>,
    /// Addresses by source cluster.
    addresses: Exporters,
    /// Whether a derived Service stands behind it.
    derived: bool,
}

impl Shop {
    /// Makes a namespace in every cluster.
    pub async fn open(world: &LocalClusterset) -> anyhow::Result<Self> {
        let namespace = unique_name("failures");
        for cluster in world.clusters.values() {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            apply(
                &Api::<Namespace>::all(cluster.client.clone()),
                &namespace,
                &object,
            )
            .await?;
        }
        Ok(Self {
            namespace,
            exports: BTreeMap::new(),
        })
    }

    fn api<K>(&self, client: &Client) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(client.clone(), &self.namespace)
    }

    /// Exports a service of a cluster with these endpoints, or changes the endpoints of one that is exported.
    pub async fn export(
        &mut self,
        world: &LocalClusterset,
        cluster: &str,
        service: &str,
        addresses: &[&str],
    ) -> anyhow::Result<()> {
        let client = &world.cluster(cluster)?.client;
        let object = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": service},
            "spec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}
        });
        apply(&self.api::<Service>(client), service, &object).await?;
        let name = format!("{service}-1");
        let endpoints: Vec<Value> = addresses
            .iter()
            .map(|address| json!({"addresses": [address], "conditions": {"ready": true}}))
            .collect();
        let object = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "labels": {names::LABEL_KUBERNETES_SERVICE_NAME: service}},
            "addressType": "IPv4", "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": endpoints,
        });
        apply(&self.api::<EndpointSlice>(client), &name, &object).await?;
        let object = json!({
            "apiVersion": names::MULTICLUSTER_API_VERSION, "kind": "ServiceExport", "metadata": {"name": service}
        });
        apply(&self.api::<ServiceExport>(client), service, &object).await?;
        let addresses = addresses.iter().map(|&address| address.to_owned()).collect();
        let exporters = self.exports.entry(service.to_owned()).or_default();
        exporters.insert(cluster.to_owned(), addresses);
        Ok(())
    }

    /// Takes an export back.
    pub async fn withdraw(
        &mut self,
        world: &LocalClusterset,
        cluster: &str,
        service: &str,
    ) -> anyhow::Result<()> {
        let client = &world.cluster(cluster)?.client;
        let exports = self.api::<ServiceExport>(client);
        exports.delete(service, &DeleteParams::default()).await?;
        self.forget(cluster, service);
        Ok(())
    }

    /// Whether a cluster exports a service.
    pub fn exports(&self, cluster: &str, service: &str) -> bool {
        self.exports
            .get(service)
            .is_some_and(|exporters| exporters.contains_key(cluster))
    }

    /// From now on the outcome is as if this cluster did not export the service.
    pub fn forget(&mut self, cluster: &str, service: &str) {
        if let Some(exporters) = self.exports.get_mut(service) {
            exporters.remove(cluster);
            if exporters.is_empty() {
                self.exports.remove(service);
            }
        }
    }

    /// From now on the outcome is as if this cluster exported nothing.
    pub fn forget_cluster(&mut self, cluster: &str) {
        for service in self.exports.keys().cloned().collect::<Vec<_>>() {
            self.forget(cluster, &service);
        }
    }

    /// What every cluster should hold, computed from the exports alone.
    fn expected(&self) -> BTreeMap<String, Held> {
        let held = self.exports.iter().map(|(service, exporters)| {
            let held = Held {
                clusters: exporters.keys().cloned().collect(),
                addresses: exporters.clone(),
                derived: true,
            };
            (service.clone(), held)
        });
        held.collect()
    }

    /// What a cluster holds.
    async fn actual(&self, client: &Client) -> anyhow::Result<BTreeMap<String, Held>> {
        let all = ListParams::default();
        let mut found: BTreeMap<String, Held> = BTreeMap::new();
        for import in self.api::<ServiceImport>(client).list(&all).await? {
            let held = found.entry(import.name_any()).or_default();
            let clusters = import.status.unwrap_or_default().clusters;
            held.clusters = clusters.into_iter().map(|cluster| cluster.cluster).collect();
        }
        for slice in self.api::<EndpointSlice>(client).list(&all).await? {
            let labels = slice.labels();
            if labels
                .get(names::LABEL_ENDPOINT_SLICE_MANAGED_BY)
                .map(String::as_str)
                != Some(names::ENDPOINT_SLICE_MANAGER)
            {
                continue;
            }
            let label = |name: &str| {
                labels
                    .get(name)
                    .cloned()
                    .context("an imported slice lacks a label")
            };
            let held = found.entry(label(names::LABEL_SERVICE_NAME)?).or_default();
            let source = label(names::LABEL_SOURCE_CLUSTER)?;
            let addresses = slice
                .endpoints
                .iter()
                .flat_map(|endpoint| endpoint.addresses.clone());
            held.addresses.entry(source).or_default().extend(addresses);
        }
        let services = self.api::<Service>(client).list(&all).await?;
        let names: BTreeSet<String> = services.iter().map(ResourceExt::name_any).collect();
        let ours = services.iter().filter(|service| {
            let manager = service.labels().get(names::LABEL_MANAGED_BY);
            manager.map(String::as_str) == Some(names::AGENT_MANAGER)
        });
        let mut orphans: BTreeSet<String> = ours.map(ResourceExt::name_any).collect();
        for (service, held) in &mut found {
            let derived = derived_service_name(&self.namespace, service);
            held.derived = names.contains(&derived);
            orphans.remove(&derived);
        }
        ensure!(
            orphans.is_empty(),
            "derived Services without an import: {orphans:?}"
        );
        Ok(found)
    }

    /// Waits until a cluster holds what it should.
    pub async fn arrived_in(&self, world: &LocalClusterset, cluster: &str) -> anyhow::Result<()> {
        let client = world.cluster(cluster)?.client.clone();
        let expected = self.expected();
        eventually(&format!("{cluster} holds what the exports say"), async || {
            let actual = self.actual(&client).await?;
            if actual != expected {
                bail!("expected {expected:#?}\nbut there is {actual:#?}");
            }
            Ok(Some(()))
        })
        .await
    }

    /// Waits until every cluster holds what it should.
    pub async fn arrived(&self, world: &LocalClusterset) -> anyhow::Result<()> {
        for cluster in world.clusters.keys() {
            self.arrived_in(world, cluster).await?;
        }
        Ok(())
    }

    /// Deletes the namespace everywhere: clusters may be shared.
    pub async fn close(self, world: &LocalClusterset) -> anyhow::Result<()> {
        for cluster in world.clusters.values() {
            let namespaces = Api::<Namespace>::all(cluster.client.clone());
            namespaces
                .delete(&self.namespace, &DeleteParams::default())
                .await?;
        }
        Ok(())
    }
}

async fn apply<K>(api: &Api<K>, name: &str, object: &Value) -> anyhow::Result<()>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let user = PatchParams::apply("user").force();
    api.patch(name, &user, &Patch::Apply(object)).await?;
    Ok(())
}
