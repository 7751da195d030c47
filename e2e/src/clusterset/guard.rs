//! Watches every cluster of a world and notes each thing that Tributary made and that went: an object, an
//! address of a slice, a cluster or a port of an import. It judges nothing but what it is asked about.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use super::{LocalClusterset, eventually::eventually};
use anyhow::ensure;
use futures::StreamExt;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use shared::{
    api::{ServiceImport, names},
    model::derived_name::derived_service_name,
};
use tokio::task::JoinSet;

/// Something that was there and went.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Loss {
    cluster: String,
    /// The multi-cluster service, or the derived Service's name.
    service: String,
    what: String,
}

#[derive(Default)]
struct Noted {
    losses: Vec<Loss>,
    /// Watches whose first list is complete.
    listed: usize,
    /// Things seen, so that a guard that saw nothing is noticed.
    seen: usize,
}

/// The watches; they end with it.
pub struct Guard {
    namespace: String,
    noted: Arc<Mutex<Noted>>,
    _watches: JoinSet<()>,
}

/// What an object holds: the service it belongs to, and its parts.
type Parts = (String, BTreeSet<String>);

impl Guard {
    /// Begins to watch a namespace in every cluster, and returns when every watch has listed.
    pub async fn set(world: &LocalClusterset, namespace: &str) -> anyhow::Result<Self> {
        let noted = Arc::new(Mutex::new(Noted::default()));
        let mut watches = JoinSet::new();
        for (name, cluster) in &world.clusters {
            let post = Post {
                cluster: name.clone(),
                client: cluster.client.clone(),
                namespace: namespace.to_owned(),
                noted: noted.clone(),
            };
            watches.spawn(post.clone().watch::<ServiceImport>(import_parts));
            watches.spawn(post.clone().watch::<EndpointSlice>(slice_parts));
            watches.spawn(post.watch::<Service>(service_parts));
        }
        let guard = Self {
            namespace: namespace.to_owned(),
            noted,
            _watches: watches,
        };
        let all = 3 * world.clusters.len();
        eventually("every watch of the guard has listed", async || {
            Ok((guard.lock().listed >= all).then_some(()))
        })
        .await?;
        ensure!(guard.lock().seen > 0, "the guard has nothing to guard");
        Ok(guard)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing of these services went anywhere, at any time.
    pub fn nothing_lost_of(&self, services: &[&str]) -> anyhow::Result<()> {
        let derived: BTreeMap<String, &str> = services
            .iter()
            .map(|&service| (derived_service_name(&self.namespace, service), service))
            .collect();
        let noted = self.lock();
        let lost: Vec<&Loss> = noted
            .losses
            .iter()
            .filter(|loss| services.contains(&loss.service.as_str()) || derived.contains_key(&loss.service))
            .collect();
        ensure!(lost.is_empty(), "something that lives went: {lost:#?}");
        Ok(())
    }

    /// Waits until something of a service went: the guard does see.
    pub async fn saw_going(&self, service: &str) -> anyhow::Result<()> {
        eventually(&format!("the guard sees {service} go"), async || {
            Ok(self
                .lock()
                .losses
                .iter()
                .any(|loss| loss.service == service)
                .then_some(()))
        })
        .await
    }
}

/// One cluster's watch.
#[derive(Clone)]
struct Post {
    cluster: String,
    client: Client,
    namespace: String,
    noted: Arc<Mutex<Noted>>,
}

impl Post {
    async fn watch<K>(self, parts: fn(&K) -> Option<Parts>)
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.namespace);
        let events = watcher(api, watcher::Config::default()).default_backoff();
        let mut events = std::pin::pin!(events);
        let mut known: BTreeMap<String, Parts> = BTreeMap::new();
        let mut listed: BTreeMap<String, Parts> = BTreeMap::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => listed.clear(),
                Ok(watcher::Event::InitApply(object)) => {
                    if let Some(parts) = parts(&object) {
                        listed.insert(object.name_any(), parts);
                    }
                }
                Ok(watcher::Event::InitDone) => {
                    let before = std::mem::take(&mut known);
                    for (name, had) in &before {
                        self.compare(had, listed.get(name));
                    }
                    let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
                    noted.listed += 1;
                    noted.seen += listed.len();
                    drop(noted);
                    known = std::mem::take(&mut listed);
                }
                Ok(watcher::Event::Apply(object)) => {
                    let (name, has) = (object.name_any(), parts(&object));
                    if let Some(had) = known.remove(&name) {
                        self.compare(&had, has.as_ref());
                    }
                    known.extend(has.map(|has| (name, has)));
                }
                Ok(watcher::Event::Delete(object)) => {
                    if let Some(had) = known.remove(&object.name_any()) {
                        self.compare(&had, None);
                    }
                }
                // The watch lists anew, and what went meanwhile is found by comparing.
                Err(_) => {}
            }
        }
    }

    fn compare(&self, (service, had): &Parts, has: Option<&Parts>) {
        let none = BTreeSet::new();
        let has = has.map_or(&none, |(_, has)| has);
        let losses = had.difference(has).map(|what| Loss {
            cluster: self.cluster.clone(),
            service: service.clone(),
            what: what.clone(),
        });
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.losses.extend(losses);
    }
}

fn import_parts(import: &ServiceImport) -> Option<Parts> {
    let clusters = import.status.iter().flat_map(|status| &status.clusters);
    let parts = clusters
        .map(|cluster| format!("cluster {} of the import", cluster.cluster))
        .chain(
            import
                .spec
                .ports
                .iter()
                .map(|port| format!("port {} of the import", port.port)),
        )
        .chain(import.spec.ips.iter().map(|ip| format!("ip {ip} of the import")))
        .chain(["the import".to_owned()]);
    Some((import.name_any(), parts.collect()))
}

fn slice_parts(slice: &EndpointSlice) -> Option<Parts> {
    let labels = slice.labels();
    let manager = labels.get(names::LABEL_ENDPOINT_SLICE_MANAGED_BY)?;
    let service = labels.get(names::LABEL_SERVICE_NAME)?;
    let source = labels.get(names::LABEL_SOURCE_CLUSTER)?;
    let endpoints = slice.endpoints.iter();
    let parts = endpoints
        .flat_map(|endpoint| &endpoint.addresses)
        .map(|address| format!("address {address} of {source}"))
        .chain([format!("a slice of {source}")]);
    (manager == names::ENDPOINT_SLICE_MANAGER).then(|| (service.clone(), parts.collect()))
}

fn service_parts(service: &Service) -> Option<Parts> {
    let manager = service.labels().get(names::LABEL_MANAGED_BY)?;
    let spec = service.spec.as_ref()?;
    let ports = spec
        .ports
        .iter()
        .flatten()
        .map(|port| format!("port {} of the Service", port.port));
    let ips = spec
        .cluster_ips
        .iter()
        .flatten()
        .map(|ip| format!("ip {ip} of the Service"));
    let parts = ports.chain(ips).chain(["the derived Service".to_owned()]);
    (manager == names::AGENT_MANAGER).then(|| (service.name_any(), parts.collect()))
}
