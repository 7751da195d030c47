//! The cluster as this process sees it: one store per kind, and slices by the service they belong to.
//! It answers questions and says which services an event concerns. It never writes to the cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{Resource, ResourceExt, runtime::watcher::Event};
use shared::{
    api::{ClusterProperty, ServiceExport, ServiceImport, names},
    model::{ClusterId, ServiceKey, sync::SOURCES_HELD_MAX},
};
use tokio::sync::watch;

use super::{
    queue::KeyQueue,
    store::{Change, Changes, ObjectKey, Store},
};

/// All stores.
#[derive(Debug, Default)]
pub struct Cache {
    /// Namespaces.
    pub namespaces: Store<Namespace>,
    /// Services, the derived ones included.
    pub services: Store<Service>,
    /// ServiceExports.
    pub exports: Store<ServiceExport>,
    /// ServiceImports.
    pub imports: Store<ServiceImport>,
    /// EndpointSlices, local and imported.
    pub slices: Store<EndpointSlice>,
    /// ClusterProperties.
    pub properties: Store<ClusterProperty>,
    slices_by_service: BTreeMap<ServiceKey, BTreeSet<ObjectKey>>,
    /// The services of derived Services, by the derived Service's key.
    derived_services: BTreeMap<ObjectKey, ServiceKey>,
}

impl Cache {
    /// The slices that belong to a service: its own cluster's and the imported ones.
    pub fn slices_of(&self, service: &ServiceKey) -> impl Iterator<Item = &Arc<EndpointSlice>> {
        let keys = self.slices_by_service.get(service).into_iter().flatten();
        keys.filter_map(|key| self.slices.get(key))
    }

    /// Whether every kind is listed that exports are joined from.
    pub fn exports_are_complete(&self) -> bool {
        self.namespaces.is_listed()
            && self.services.is_listed()
            && self.exports.is_listed()
            && self.slices.is_listed()
    }

    /// Every service that any export, import, slice or derived Service names.
    pub fn named_services(&self) -> BTreeSet<ServiceKey> {
        let exports = self.exports.iter().filter_map(|(key, _)| service_key(key));
        let imports = self.imports.iter().filter_map(|(key, _)| service_key(key));
        let slices = self.slices_by_service.keys().cloned();
        let derived = self.derived_services.values().cloned();
        exports.chain(imports).chain(slices).chain(derived).collect()
    }

    /// The clusters whose objects stand here: named by imports of ours and by imported slices.
    pub fn sources_held(&self) -> BTreeSet<ClusterId> {
        let slices = self.slices.iter().filter_map(|(_, slice)| {
            slice
                .labels()
                .get(names::LABEL_SOURCE_CLUSTER)
                .and_then(|cluster| ClusterId::new(cluster).ok())
        });
        let imports = self.imports.iter().flat_map(|(_, import)| {
            let clusters = import.status.iter().flat_map(|status| &status.clusters);
            clusters.filter_map(|status| ClusterId::new(&status.cluster).ok())
        });
        slices.chain(imports).take(SOURCES_HELD_MAX).collect()
    }

    /// The namespaces that exist; a terminating one still does.
    pub fn namespace_names(&self) -> BTreeSet<Box<str>> {
        self.namespaces.iter().map(|(key, _)| key.name.clone()).collect()
    }

    fn index_slice(&mut self, change: &Change<EndpointSlice>, touched: &mut BTreeSet<ServiceKey>) {
        for service in change.old.iter().flat_map(|slice| services_of_slice(slice)) {
            if let Some(keys) = self.slices_by_service.get_mut(&service) {
                keys.remove(&change.key);
                if keys.is_empty() {
                    self.slices_by_service.remove(&service);
                }
            }
            touched.insert(service);
        }
        for service in change.new.iter().flat_map(|slice| services_of_slice(slice)) {
            let keys = self.slices_by_service.entry(service.clone()).or_default();
            keys.insert(change.key.clone());
            touched.insert(service);
        }
    }

    fn index_service(&mut self, change: &Change<Service>, touched: &mut BTreeSet<ServiceKey>) {
        touched.extend(service_key(&change.key));
        if let Some(service) = self.derived_services.remove(&change.key) {
            touched.insert(service);
        }
        if let Some(service) = change.new.as_deref().and_then(service_of_derived) {
            self.derived_services.insert(change.key.clone(), service.clone());
            touched.insert(service);
        }
    }

    /// Everything in a namespace is to be looked at again: it came, went, or is terminating.
    fn in_namespace(&self, namespace: &str, touched: &mut BTreeSet<ServiceKey>) {
        let first = ServiceKey {
            namespace: namespace.into(),
            name: "".into(),
        };
        let first_object = ObjectKey {
            namespace: namespace.into(),
            name: "".into(),
        };
        let slices = self
            .slices_by_service
            .range(first..)
            .map(|(service, _)| service.clone());
        touched.extend(slices.take_while(|service| &*service.namespace == namespace));
        let exports = self.exports.range_from(&first_object).filter_map(service_key);
        touched.extend(exports.take_while(|service| &*service.namespace == namespace));
        let imports = self.imports.range_from(&first_object).filter_map(service_key);
        touched.extend(imports.take_while(|service| &*service.namespace == namespace));
    }
}

/// The services a slice is listed under: the local Service's, or the imported one's.
fn services_of_slice(slice: &EndpointSlice) -> Option<ServiceKey> {
    let labels = slice.labels();
    let imported = labels.get(names::LABEL_SERVICE_NAME);
    let name = imported.or_else(|| labels.get(names::LABEL_KUBERNETES_SERVICE_NAME))?;
    ServiceKey::new(slice.metadata.namespace.as_deref()?, name).ok()
}

/// The service that a derived Service of ours stands for, as the label that the agent puts on it says.
fn service_of_derived(service: &Service) -> Option<ServiceKey> {
    let name = service.labels().get(names::LABEL_SERVICE_NAME)?;
    ServiceKey::new(service.metadata.namespace.as_deref()?, name).ok()
}

fn service_key(key: &ObjectKey) -> Option<ServiceKey> {
    ServiceKey::new(&key.namespace, &key.name).ok()
}

/// A kind that the cache holds.
pub trait Cached: Resource<DynamicType = ()> + Clone + Send + Sync + 'static {
    /// Takes an event into its store; returns the services that it concerns and whether the kind became listed.
    fn take(cache: &mut Cache, event: Event<Self>) -> (BTreeSet<ServiceKey>, bool);
}

fn by_own_name<K>(changes: &Changes<K>) -> (BTreeSet<ServiceKey>, bool) {
    let touched = changes
        .objects
        .iter()
        .filter_map(|change| service_key(&change.key));
    (touched.collect(), changes.became_listed)
}

impl Cached for ServiceExport {
    fn take(cache: &mut Cache, event: Event<Self>) -> (BTreeSet<ServiceKey>, bool) {
        by_own_name(&cache.exports.take(event))
    }
}

impl Cached for ServiceImport {
    fn take(cache: &mut Cache, event: Event<Self>) -> (BTreeSet<ServiceKey>, bool) {
        by_own_name(&cache.imports.take(event))
    }
}

impl Cached for ClusterProperty {
    fn take(cache: &mut Cache, event: Event<Self>) -> (BTreeSet<ServiceKey>, bool) {
        (BTreeSet::new(), cache.properties.take(event).became_listed)
    }
}

impl Cached for Service {
    fn take(cache: &mut Cache, event: Event<Self>) -> (BTreeSet<ServiceKey>, bool) {
        let (changes, mut touched) = (cache.services.take(event), BTreeSet::new());
        for change in &changes.objects {
            cache.index_service(change, &mut touched);
        }
        (touched, changes.became_listed)
    }
}

impl Cached for EndpointSlice {
    fn take(cache: &mut Cache, event: Event<Self>) -> (BTreeSet<ServiceKey>, bool) {
        let (changes, mut touched) = (cache.slices.take(event), BTreeSet::new());
        for change in &changes.objects {
            cache.index_slice(change, &mut touched);
        }
        (touched, changes.became_listed)
    }
}

impl Cached for Namespace {
    fn take(cache: &mut Cache, event: Event<Self>) -> (BTreeSet<ServiceKey>, bool) {
        let (changes, mut touched) = (cache.namespaces.take(event), BTreeSet::new());
        for change in &changes.objects {
            cache.in_namespace(&change.key.name, &mut touched);
        }
        (touched, changes.became_listed)
    }
}

/// The cache as the process shares it: watches write, everybody reads, queues hear of it.
#[derive(Debug, Clone)]
pub struct SharedCache {
    cache: Arc<RwLock<Cache>>,
    queues: Arc<Vec<KeyQueue>>,
    version: watch::Sender<u64>,
}

impl SharedCache {
    /// An empty cache that tells these queues which services events concern.
    pub fn new(queues: Vec<KeyQueue>) -> Self {
        Self {
            cache: Arc::default(),
            queues: Arc::new(queues),
            version: watch::Sender::new(0),
        }
    }

    /// Looks at it. Short: the watches wait.
    pub fn read(&self) -> RwLockReadGuard<'_, Cache> {
        self.cache.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event of a watch.
    pub fn take<K: Cached>(&self, event: Event<K>) {
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        let (mut touched, became_listed) = K::take(&mut cache, event);
        if became_listed {
            // What was unknown is known now, for every service.
            touched = cache.named_services();
        }
        drop(cache);
        for queue in self.queues.iter() {
            queue.push(touched.iter().cloned());
        }
        self.version.send_modify(|version| *version += 1);
    }

    /// Tells of every event: the number grows.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }
}
