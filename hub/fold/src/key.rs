//! Derived objects: their keys, their content, and the change of one.
//! The order of keys makes a namespace's objects one range; nothing here derives anything.

use std::{cmp::Ordering, fmt, sync::Arc};

use model::{ClusterId, ExportStatus, ImportedSlice, ImportedSliceKey, Revision, ServiceImport, ServiceKey};

use super::Profile;

/// The key of a derived object. Ordered by namespace, service, kind, cluster and slice; profiles come last.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DerivedKey {
    /// A ServiceImport, the same for every member.
    Import(ServiceKey),
    /// A slice as importing clusters hold it.
    Slice(ImportedSliceKey),
    /// The status of the export of one cluster, for that cluster alone.
    ExportStatus(ClusterId, ServiceKey),
    /// The ClusterProfile of a member.
    Profile(ClusterId),
}

impl DerivedKey {
    /// The namespace it lives in; profiles have none.
    pub fn namespace(&self) -> Option<&str> {
        self.service().map(|service| &*service.namespace)
    }

    /// The service it belongs to; profiles have none.
    pub fn service(&self) -> Option<&ServiceKey> {
        match self {
            Self::Import(service) | Self::ExportStatus(_, service) => Some(service),
            Self::Slice(slice) => Some(&slice.service),
            Self::Profile(_) => None,
        }
    }

    /// The least key of a namespace: everything of it follows, until the namespace changes.
    pub fn first_of_namespace(namespace: &str) -> Self {
        Self::Import(ServiceKey::before_all_of(namespace))
    }

    /// The least key of a slice of `cluster` behind `service`.
    pub(super) fn first_slice(service: &ServiceKey, cluster: &ClusterId) -> Self {
        Self::slice(service, cluster, "")
    }

    pub(super) fn slice(service: &ServiceKey, cluster: &ClusterId, name: &str) -> Self {
        Self::Slice(ImportedSliceKey {
            service: service.clone(),
            source_cluster: cluster.clone(),
            source_slice: name.into(),
        })
    }

    /// False for profiles, the service's own parts, then the kind, then what tells apart within the kind.
    fn rank(&self) -> (bool, Option<&ServiceKey>, u8, Option<&ClusterId>, &str) {
        match self {
            Self::Import(service) => (false, Some(service), 0, None, ""),
            Self::Slice(slice) => (
                false,
                Some(&slice.service),
                1,
                Some(&slice.source_cluster),
                &slice.source_slice,
            ),
            Self::ExportStatus(cluster, service) => (false, Some(service), 2, Some(cluster), ""),
            Self::Profile(cluster) => (true, None, 3, Some(cluster), ""),
        }
    }
}

impl Ord for DerivedKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for DerivedKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The object, as people name it.
impl fmt::Display for DerivedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Import(service) => write!(f, "ServiceImport {service}"),
            Self::Slice(slice) => {
                let ImportedSliceKey {
                    service,
                    source_cluster,
                    source_slice,
                } = slice;
                write!(
                    f,
                    "EndpointSlice {source_slice} of {service} from {source_cluster}"
                )
            }
            Self::ExportStatus(cluster, service) => {
                write!(f, "status of ServiceExport {service} in {cluster}")
            }
            Self::Profile(cluster) => write!(f, "ClusterProfile {cluster}"),
        }
    }
}

/// The content of a derived object. Shared with the sessions that push it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DerivedContent {
    /// Content of [`DerivedKey::Import`].
    Import(Arc<ServiceImport>),
    /// Content of [`DerivedKey::Slice`].
    Slice(Arc<ImportedSlice>),
    /// Content of [`DerivedKey::ExportStatus`].
    ExportStatus(Arc<ExportStatus>),
    /// Content of [`DerivedKey::Profile`].
    Profile(Arc<Profile>),
}

impl DerivedContent {
    /// Equality of content: revisions and times are none.
    pub fn same_content(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Import(one), Self::Import(other)) => one == other,
            (Self::Slice(one), Self::Slice(other)) => one.same_content(other),
            (Self::ExportStatus(one), Self::ExportStatus(other)) => one == other,
            (Self::Profile(one), Self::Profile(other)) => one.same_content(other),
            _ => false,
        }
    }
}

/// A derived object that an event changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The object's key.
    pub key: DerivedKey,
    /// The event's revision.
    pub revision: Revision,
    /// Its new content; absent: it is gone.
    pub content: Option<DerivedContent>,
}
