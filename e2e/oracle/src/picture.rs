//! Owns: the objects of one cluster at one moment, sorted into what users declared and what Tributary made.
//! Never: asks a cluster for them, or says what should be there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    ServiceKey,
    derived_name::derived_service_name,
    names::{AGENT_MANAGER, LABEL_KUBERNETES_SERVICE_NAME, LABEL_MANAGED_BY, LABEL_SERVICE_NAME},
};
use serde_json::Value;

/// The kinds that a picture is made of.
pub const KINDS: [&str; 5] = [
    "Namespace",
    "Service",
    "EndpointSlice",
    "ServiceExport",
    "ServiceImport",
];

/// Objects of one kind by namespace and name.
type Objects = BTreeMap<ServiceKey, Arc<Value>>;

/// One cluster's objects at one moment.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// The cluster's id.
    pub cluster: String,
    /// The uids of namespaces that are there and stay, by name.
    namespaces: BTreeMap<String, String>,
    services: Objects,
    exports: Objects,
    imports: Objects,
    /// By namespace and the name of the Service that they stand behind.
    local_slices: BTreeMap<ServiceKey, Vec<Arc<Value>>>,
    /// The slices that Tributary made, by the service that they were imported for.
    imported_slices: BTreeMap<ServiceKey, Vec<Arc<Value>>>,
    /// A policy refuses everything that this cluster exports.
    pub denied: bool,
    /// Services that a policy does not let this cluster take.
    pub withheld: BTreeSet<ServiceKey>,
    /// Services whose first place this cluster's export keeps, though another one is older.
    pub held: BTreeSet<ServiceKey>,
}

impl Picture {
    /// Puts together what `list` answers for each of [`KINDS`].
    pub fn of(cluster: &str, mut list: impl FnMut(&str) -> Vec<Arc<Value>>) -> Self {
        let mut picture = Self {
            cluster: cluster.to_owned(),
            ..Self::default()
        };
        for namespace in list("Namespace") {
            let metadata = &namespace["metadata"];
            if metadata["deletionTimestamp"].is_null() {
                picture
                    .namespaces
                    .insert(text(&metadata["name"]), text(&metadata["uid"]));
            }
        }
        let named = |objects: Vec<Arc<Value>>| -> Objects {
            let keyed = |object: Arc<Value>| Some((own_key(&object)?, object));
            objects.into_iter().filter_map(keyed).collect()
        };
        picture.services = named(list("Service"));
        picture.exports = named(list("ServiceExport"));
        picture.imports = named(list("ServiceImport"));
        for slice in list("EndpointSlice") {
            let (slices, key) = if is_ours(&slice) {
                (
                    &mut picture.imported_slices,
                    label_key(&slice, LABEL_SERVICE_NAME),
                )
            } else {
                (
                    &mut picture.local_slices,
                    label_key(&slice, LABEL_KUBERNETES_SERVICE_NAME),
                )
            };
            if let Some(key) = key {
                slices.entry(key).or_default().push(slice);
            }
        }
        picture
    }

    /// The same, with what the cluster had of a service when it took its export back: it counts as it was then.
    pub fn with_taken_back(mut self, service: &ServiceKey, then: &Self) -> Self {
        let put = |now: &mut Objects, then: &Objects| match then.get(service) {
            Some(object) => drop(now.insert(service.clone(), object.clone())),
            None => drop(now.remove(service)),
        };
        put(&mut self.exports, &then.exports);
        put(&mut self.services, &then.services);
        let slices = then.local_slices.get(service).cloned().unwrap_or_default();
        self.local_slices.insert(service.clone(), slices);
        self
    }

    /// The same without the slices that stood behind a service.
    pub fn without_slices(mut self, service: &ServiceKey) -> Self {
        self.local_slices.remove(service);
        self
    }

    /// Every service that somebody exports, or that something of ours belongs to.
    pub fn services(&self) -> BTreeSet<ServiceKey> {
        let derived = self.services.values().filter(|service| is_ours(service));
        let derived = derived.filter_map(|service| owner(service));
        let imports = self.imports.iter().filter(|(_, import)| is_ours(import));
        let made = imports.map(|(key, _)| key).chain(self.imported_slices.keys());
        made.chain(self.exports.keys()).cloned().chain(derived).collect()
    }

    /// The uid of a namespace that is there and stays.
    pub(super) fn namespace(&self, service: &ServiceKey) -> Option<&str> {
        self.namespaces.get(&*service.namespace).map(String::as_str)
    }

    /// Returns true if somebody asks for this service to be exported.
    pub fn exports(&self, service: &ServiceKey) -> bool {
        self.exports.contains_key(service)
    }

    pub(super) fn export(&self, service: &ServiceKey) -> Option<&Value> {
        self.exports.get(service).map(Arc::as_ref)
    }

    pub(super) fn service(&self, service: &ServiceKey) -> Option<&Value> {
        self.services.get(service).map(Arc::as_ref)
    }

    /// The Service under the name of the one that is derived for an import.
    pub(super) fn derived_service(&self, service: &ServiceKey) -> Option<&Value> {
        let name = derived_service_name(&service.namespace, &service.name);
        self.service(&ServiceKey::new(&service.namespace, &name).ok()?)
    }

    pub(super) fn import(&self, service: &ServiceKey) -> Option<&Value> {
        self.imports.get(service).map(Arc::as_ref)
    }

    /// The slices of users, or of the cluster's own controllers, behind a Service.
    pub(super) fn local_slices(&self, service: &ServiceKey) -> impl Iterator<Item = &Value> {
        self.local_slices
            .get(service)
            .into_iter()
            .flatten()
            .map(Arc::as_ref)
    }

    /// The slices that Tributary made for an import.
    pub(super) fn imported_slices(&self, service: &ServiceKey) -> impl Iterator<Item = &Value> {
        let found = self.imported_slices.get(service);
        found.into_iter().flatten().map(Arc::as_ref)
    }
}

/// Returns true if the agent made an object: its label, and its entry among the managers of the fields.
pub fn is_ours(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let mut managers = metadata["managedFields"].as_array().into_iter().flatten();
    metadata["labels"][LABEL_MANAGED_BY] == AGENT_MANAGER
        && managers.any(|entry| entry["manager"] == AGENT_MANAGER)
}

/// The service that an object of the agent's belongs to.
pub fn owner(object: &Value) -> Option<ServiceKey> {
    label_key(object, LABEL_SERVICE_NAME).or_else(|| own_key(object))
}

fn own_key(object: &Value) -> Option<ServiceKey> {
    key(object, &object["metadata"]["name"])
}

fn label_key(object: &Value, label: &str) -> Option<ServiceKey> {
    key(object, &object["metadata"]["labels"][label])
}

fn key(object: &Value, name: &Value) -> Option<ServiceKey> {
    ServiceKey::new(object["metadata"]["namespace"].as_str()?, name.as_str()?).ok()
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
