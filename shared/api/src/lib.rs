//! The Kubernetes kinds that Tributary brings along, as types, and the words that go with them.
//!
//! * [`convert`]: objects to the model. [`crd`]: the definitions of the kinds.
//! * [`server`]: an API server as a trait, and typed requests; connections are made elsewhere.
//! * [`identity_lease`]: the Lease that each process keeps of itself. [`leader_lease`]: the form of a leader's.
//!
//! Objects are written in the stored version of their CRD (`v1beta1`; ClusterProfile: `v1alpha1`).

pub mod cluster_profile;
pub mod cluster_property;
pub mod conditions;
pub mod convert;
pub mod crd;
pub mod identity_lease;
pub mod leader_lease;
pub mod server;
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
