//! The cached part of the cluster's objects: plain values, read off each object once, on arrival. Unused fields are
//! dropped, so ten thousand slices take megabytes and not hundreds of them. Nothing here is sent anywhere, and nothing
//! here decides.

mod export;
mod import;
mod service;
mod slice;

use std::fmt::Debug;

use kube_core::{ObjectMeta, Resource};
use model::ServiceKey;
use serde::de::DeserializeOwned;

pub use export::KeptExport;
pub use import::KeptImport;
pub use service::KeptService;
pub use slice::KeptSlice;

/// Namespace (empty for kinds that have none) and name.
pub type ObjectKey = (Box<str>, Box<str>);

/// The kept part of an object of one kind.
pub trait Kept: Debug + Send + Sync + Sized + 'static {
    /// The object as the API server sends it.
    type Object: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static;

    /// Reads off an object what is kept of it.
    fn keep(object: Self::Object) -> Self;

    /// The object's identity.
    fn head(&self) -> &Head;
}

/// The object's identity and version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// Empty for kinds that have none.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Box<str>,
    /// Its resource version: those of one kind grow. Zero for one that is no number, so that the watch decides.
    pub version: u64,
    /// It is being deleted.
    pub deleting: bool,
}

impl Head {
    /// The head of the object with this metadata.
    pub fn of(meta: &ObjectMeta) -> Self {
        let text = |field: &Option<String>| field.as_deref().unwrap_or_default().into();
        let version = meta.resource_version.as_deref();
        Self {
            namespace: text(&meta.namespace),
            name: text(&meta.name),
            uid: text(&meta.uid),
            version: version.and_then(|version| version.parse().ok()).unwrap_or(0),
            deleting: meta.deletion_timestamp.is_some(),
        }
    }

    /// The object's namespace and name.
    pub fn key(&self) -> ObjectKey {
        (self.namespace.clone(), self.name.clone())
    }

    /// The service of that namespace and name.
    pub fn service(&self) -> Option<ServiceKey> {
        self.service_named(&self.name)
    }

    /// The service of another name in the object's namespace.
    pub fn service_named(&self, name: &str) -> Option<ServiceKey> {
        ServiceKey::new(&self.namespace, name).ok()
    }

    /// The same object, unchanged.
    pub fn is_same_state(&self, other: &Self) -> bool {
        self.uid == other.uid && self.version == other.version && self.version > 0
    }
}

/// A namespace: that it is there, and whether it goes away.
#[derive(Debug)]
pub struct KeptNamespace {
    head: Head,
}

impl Kept for KeptNamespace {
    type Object = k8s_openapi::api::core::v1::Namespace;

    fn keep(object: Self::Object) -> Self {
        Self {
            head: Head::of(&object.metadata),
        }
    }

    fn head(&self) -> &Head {
        &self.head
    }
}

/// A whole object, for kinds with few objects.
#[derive(Debug)]
pub struct Whole<K> {
    head: Head,
    /// The object.
    pub object: K,
}

impl<K> Kept for Whole<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    type Object = K;

    fn keep(object: K) -> Self {
        Self {
            head: Head::of(object.meta()),
            object,
        }
    }

    fn head(&self) -> &Head {
        &self.head
    }
}
