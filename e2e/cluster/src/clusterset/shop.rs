//! A namespace with services that clusters export: what a story does to them, and whether every cluster holds what
//! the oracle makes of it. It knows nothing of hubs and agents.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{LocalClusterset, eventually::eventually, picture::picture};
use anyhow::{Context, ensure};
use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, Patch, PatchParams},
};
use oracle::{Picture, wrong_in};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use shared::api::{ServiceExport, names};

/// Marks the namespaces of stories on shared clusters, so that a later one finds what one left that was killed.
pub const LABEL_STORY: &str = "e2e.tributary.dev/story";
/// Its value while the namespace holds something.
pub const RUNNING: &str = "running";

/// A name that no other test of this process has: for namespaces on the shared clusters.
pub fn unique_name(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{prefix}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The namespace, and what is exported in it.
pub struct Shop {
    /// Its name, the same in every cluster.
    pub namespace: String,
    /// Cluster and service of each export.
    exports: BTreeSet<(String, String)>,
    /// Clusters that count as no members.
    forgotten: BTreeSet<String>,
}

impl Shop {
    /// Makes a namespace in every cluster.
    pub async fn open(clusterset: &LocalClusterset) -> anyhow::Result<Self> {
        let namespace = unique_name("failures");
        for cluster in clusterset.clusters.values() {
            let metadata = json!({"name": namespace, "labels": {LABEL_STORY: RUNNING}});
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
            apply(
                &Api::<Namespace>::all(cluster.client.clone()),
                &namespace,
                &object,
            )
            .await?;
        }
        Ok(Self {
            namespace,
            exports: BTreeSet::new(),
            forgotten: BTreeSet::new(),
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
        clusterset: &LocalClusterset,
        cluster: &str,
        service: &str,
        addresses: &[&str],
    ) -> anyhow::Result<()> {
        let client = &clusterset.cluster(cluster)?.client;
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
        self.exports.insert((cluster.to_owned(), service.to_owned()));
        self.forgotten.remove(cluster);
        Ok(())
    }

    /// Takes an export back.
    pub async fn withdraw(
        &mut self,
        clusterset: &LocalClusterset,
        cluster: &str,
        service: &str,
    ) -> anyhow::Result<()> {
        let client = &clusterset.cluster(cluster)?.client;
        let exports = self.api::<ServiceExport>(client);
        exports.delete(service, &DeleteParams::default()).await?;
        self.exports.remove(&(cluster.to_owned(), service.to_owned()));
        Ok(())
    }

    /// Returns true if a cluster exports a service.
    pub fn exports(&self, cluster: &str, service: &str) -> bool {
        self.exports.contains(&(cluster.to_owned(), service.to_owned()))
    }

    /// From now on the outcome is as if this cluster exported nothing, until it exports again.
    pub fn forget_cluster(&mut self, cluster: &str) {
        self.forgotten.insert(cluster.to_owned());
    }

    /// Waits until a cluster holds what it should.
    pub async fn arrived_in(&self, clusterset: &LocalClusterset, cluster: &str) -> anyhow::Result<()> {
        eventually(&format!("{cluster} holds what the exports say"), async || {
            let mut pictures = Vec::new();
            for member in clusterset.clusters.values() {
                pictures.push(picture(&member.client, &member.name, &self.namespace).await?);
            }
            let members: Vec<&Picture> = pictures
                .iter()
                .filter(|picture| !self.forgotten.contains(&picture.cluster))
                .collect();
            let of_it = pictures.iter().find(|picture| picture.cluster == cluster);
            let wrong = wrong_in(&members, of_it.context("it is a member")?);
            ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
            Ok(Some(()))
        })
        .await
    }

    /// Waits until every cluster holds what it should.
    pub async fn arrived(&self, clusterset: &LocalClusterset) -> anyhow::Result<()> {
        for cluster in clusterset.clusters.keys() {
            self.arrived_in(clusterset, cluster).await?;
        }
        Ok(())
    }

    /// Waits until every export says where it arrived: what is written after that has another reason.
    pub async fn arrivals_are_said(&self, clusterset: &LocalClusterset) -> anyhow::Result<()> {
        for (cluster, service) in &self.exports {
            let exports = self.api::<ServiceExport>(&clusterset.cluster(cluster)?.client);
            eventually(&format!("{cluster} says where {service} arrived"), async || {
                let export = serde_json::to_value(exports.get(service).await?)?;
                oracle::arrival_is_said(&export).map(Some)
            })
            .await?;
        }
        Ok(())
    }

    /// Imports and exports that [`Shop::arrived`] compares: each name in each cluster, and each export.
    pub fn compared(&self, clusterset: &LocalClusterset) -> u64 {
        let names: BTreeSet<&String> = self.exports.iter().map(|(_, service)| service).collect();
        (names.len() * clusterset.clusters.len() + self.exports.len()) as u64
    }

    /// Deletes the namespace everywhere: clusters may be shared.
    pub async fn close(self, clusterset: &LocalClusterset) -> anyhow::Result<()> {
        for cluster in clusterset.clusters.values() {
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
