//! Watches every cluster of a clusterset and notes each thing that Tributary made and that went: an object, an
//! address of a slice, a cluster or a port of an import. What goes is told by the law *what stood stays*. It judges
//! nothing but what it is asked about.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
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
use oracle::{Part, Parts, laws::Standing, object_shown};
use serde::{Serialize, de::DeserializeOwned};
use shared::{api::ServiceImport, model::ServiceKey};
use tokio::task::JoinSet;

/// Something that was there and went.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Loss {
    cluster: String,
    service: ServiceKey,
    what: Part,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cluster,
            service,
            what,
        } = self;
        write!(f, "{cluster} lost of {service}: {what}")
    }
}

/// Cluster, kind and name of an object.
type WatchedObject = (String, String, String);

#[derive(Default)]
struct Noted {
    standing: Standing<WatchedObject>,
    losses: Vec<Loss>,
    /// Watches whose first list is complete.
    listed: usize,
    /// Services of which something was seen, and in which clusters, so that a guard that saw nothing is noticed.
    seen: BTreeMap<ServiceKey, BTreeSet<String>>,
}

/// The watches; they end with it.
pub struct Guard {
    namespace: String,
    noted: Arc<Mutex<Noted>>,
    _watches: JoinSet<()>,
}

impl Guard {
    /// Begins to watch a namespace in every cluster, and returns when every watch has listed.
    pub async fn set(clusterset: &LocalClusterset, namespace: &str) -> anyhow::Result<Self> {
        let noted = Arc::new(Mutex::new(Noted::default()));
        let mut watches = JoinSet::new();
        for (name, cluster) in &clusterset.clusters {
            let post = Post {
                cluster: name.clone(),
                client: cluster.client.clone(),
                namespace: namespace.to_owned(),
                noted: noted.clone(),
            };
            watches.spawn(post.clone().watch::<ServiceImport>());
            watches.spawn(post.clone().watch::<EndpointSlice>());
            watches.spawn(post.watch::<Service>());
        }
        let guard = Self {
            namespace: namespace.to_owned(),
            noted,
            _watches: watches,
        };
        let all = 3 * clusterset.clusters.len();
        eventually("every watch of the guard has listed", async || {
            Ok((guard.lock().listed >= all).then_some(()))
        })
        .await?;
        ensure!(!guard.lock().seen.is_empty(), "the guard has nothing to guard");
        Ok(guard)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing of these services went anywhere, at any time, and there was something of each.
    pub fn nothing_lost_of(&self, services: &[&str]) -> anyhow::Result<()> {
        let noted = self.lock();
        for service in services {
            let key = ServiceKey::new(&self.namespace, service)?;
            ensure!(
                noted.seen.contains_key(&key),
                "the guard never saw anything of {key}"
            );
            let lost = noted.losses.iter().filter(|loss| loss.service == key);
            let lost: Vec<String> = lost.map(ToString::to_string).collect();
            ensure!(lost.is_empty(), "something that lives went: {}", lost.join("; "));
        }
        Ok(())
    }

    /// Number of imports of these services that were looked at, which [`Guard::nothing_lost_of`] guards.
    pub fn guarded(&self, services: &[&str]) -> anyhow::Result<u64> {
        let noted = self.lock();
        let mut imports = 0;
        for service in services {
            let clusters = noted.seen.get(&ServiceKey::new(&self.namespace, service)?);
            imports += clusters.map_or(0, BTreeSet::len) as u64;
        }
        Ok(imports)
    }

    /// Waits until something of a service went: the guard does see.
    pub async fn saw_going(&self, service: &str) -> anyhow::Result<()> {
        let key = ServiceKey::new(&self.namespace, service)?;
        eventually(&format!("the guard sees {service} go"), async || {
            let noted = self.lock();
            Ok(noted.losses.iter().any(|loss| loss.service == key).then_some(()))
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
    async fn watch<K>(self)
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned
            + Send
            + 'static,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.namespace);
        let events = watcher(api, watcher::Config::default()).default_backoff();
        let mut events = std::pin::pin!(events);
        let kind = K::kind(&());
        let mut known: BTreeMap<String, ServiceKey> = BTreeMap::new();
        let mut listed: BTreeMap<String, Option<(ServiceKey, Parts)>> = BTreeMap::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => listed.clear(),
                Ok(watcher::Event::InitApply(object)) => {
                    listed.insert(object.name_any(), shown(&kind, &object));
                }
                Ok(watcher::Event::InitDone) => {
                    let gone = known.keys().filter(|name| !listed.contains_key(*name));
                    for name in gone.cloned().collect::<Vec<_>>() {
                        self.show(&kind, name, None, &mut known);
                    }
                    for (name, shown) in std::mem::take(&mut listed) {
                        self.show(&kind, name, shown, &mut known);
                    }
                    self.lock().listed += 1;
                }
                Ok(watcher::Event::Apply(object)) => {
                    self.show(&kind, object.name_any(), shown(&kind, &object), &mut known);
                }
                Ok(watcher::Event::Delete(object)) => {
                    self.show(&kind, object.name_any(), None, &mut known);
                }
                // The watch lists anew, and what went meanwhile is found by comparing.
                Err(_) => {}
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of what an object holds now, and of what it held before and holds no more.
    fn show(
        &self,
        kind: &str,
        name: String,
        shown: Option<(ServiceKey, Parts)>,
        known: &mut BTreeMap<String, ServiceKey>,
    ) {
        let place = (self.cluster.clone(), kind.to_owned(), name.clone());
        let mut noted = self.lock();
        let none = Parts::new();
        let parts = shown.as_ref().map_or(&none, |(_, parts)| parts);
        let lost = noted.standing.lost(&place, parts);
        let losses = known.remove(&name).into_iter().flat_map(|service| {
            let loss = move |what| Loss {
                cluster: self.cluster.clone(),
                service: service.clone(),
                what,
            };
            lost.iter().cloned().map(loss).collect::<Vec<_>>()
        });
        noted.losses.extend(losses);
        match shown {
            Some((service, parts)) => {
                let clusters = noted.seen.entry(service.clone()).or_default();
                clusters.insert(self.cluster.clone());
                noted.standing.stands(place, parts);
                known.insert(name, service);
            }
            None => noted.standing.release(&place),
        }
    }
}

/// The service that an object of Tributary's belongs to, and its parts.
fn shown<K: Serialize>(kind: &str, object: &K) -> Option<(ServiceKey, Parts)> {
    object_shown(kind, &serde_json::to_value(object).ok()?)
}
