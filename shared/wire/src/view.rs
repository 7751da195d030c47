//! Model values as the inspection services show them. One way only: nothing is read back from these.

use proto::v1;

pub use super::common::timestamp;
use super::{desired, export, health, property, sync_hub};
use model::{ApiServer, ClusterProperty, Conflict, Export, ServiceImport, sync::SourceState};

/// An export.
pub fn export(value: &Export) -> v1::Export {
    export::to_proto(value)
}

/// An import.
pub fn service_import(import: &ServiceImport) -> v1::ServiceImport {
    desired::import_to_proto(import)
}

/// A conflict.
pub fn conflict(value: &Conflict) -> v1::Conflict {
    desired::conflict_to_proto(value)
}

/// A cluster property.
pub fn cluster_property(value: &ClusterProperty) -> v1::ClusterProperty {
    property::property_to_proto(value)
}

/// An API server of a member.
pub fn api_server(value: &ApiServer) -> v1::ApiServer {
    health::api_server_to_proto(value)
}

/// The state of a source.
pub fn source_state(state: SourceState) -> v1::SourceState {
    sync_hub::source_state_to_proto(state)
}
