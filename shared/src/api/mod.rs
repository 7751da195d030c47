//! The Kubernetes kinds that Tributary brings along, as types, and the words that go with them. Forms only: the
//! conversion to the model is in its own folder, and nothing here talks to a cluster.
//!
//! Objects are written in the stored version of their CRD (`v1beta1`; ClusterProfile: `v1alpha1`).

pub mod cluster_profile;
pub mod cluster_property;
pub mod conditions;
pub mod convert;
pub mod crd;
pub mod leader_lease;
pub mod service_export;
pub mod service_import;

pub use cluster_profile::{ClusterProfile, ClusterProfileSpec, ClusterProfileStatus};
pub use cluster_property::{ClusterProperty, ClusterPropertySpec, ClusterPropertyStatus};
pub use conditions::Condition;
pub use model::names;
pub use service_export::{ServiceExport, ServiceExportSpec, ServiceExportStatus};
pub use service_import::{
    ClusterStatus, EndpointSliceObjects, ServiceImport, ServiceImportSpec, ServiceImportStatus,
    ServiceImportType, ServicePort,
};
