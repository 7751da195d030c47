//! The domain's vocabulary: identities, log positions, facts, derived objects, messages and limits.
//! Pure values only; it never does IO, reads a clock, or knows protobuf, Kubernetes or serde.

pub mod advice;
pub mod arrival;
pub mod bytes;
pub mod changed_by;
pub mod columns;
pub mod derived_name;
pub mod digest;
pub mod endpoint;
pub mod endpoints;
pub mod fact;
pub mod few_map;
pub mod health;
pub mod join;
pub mod name;
pub mod names;
pub mod policy;
pub mod position;
pub mod protocol;
pub mod service;
mod signed;
pub mod sync;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod token;
pub mod validate;
pub mod visible;

pub use arrival::{Arrival, Lack};
pub use changed_by::ChangedBy;
pub use digest::{ContentDigest, ContentHasher, FactsDigest, facts_digest};
pub use endpoint::{Endpoint, EndpointPort, EndpointSlice, ImportedSlice, ImportedSliceKey, SliceKey};
pub use endpoints::{EndpointView, Endpoints};
pub use fact::{
    ClusterProperty, EncodedFact, Event, Fact, FactHash, FactKey, InvalidKeyFingerprint, KeyAcceptance,
    KeyFingerprint, KeyTerms, ListingGroup, PrecedenceClaim, PropertyValue, SessionId,
};
pub use few_map::FewMap;
pub use health::{
    ApiServer, ApiServerState, ControlPlane, ControlPlaneReason, ControlPlaneVerdict, Health, NodesHealth,
};
pub use join::{InvalidJoinString, JoinString};
pub use name::{ClusterId, Clusterset, InvalidName, ServiceKey};
pub use policy::{Policy, Precedence};
pub use position::{ChainHash, Cursor, Epoch, Revision, UnixMillis};
pub use protocol::{IpFamily, Protocol};
pub use service::{
    Conflict, ConflictReason, Denial, DenialReason, Export, ExportStatus, Metadata, ServiceImport,
    ServicePolicies, ServicePort, ServiceType, SessionAffinity, served_as,
};
pub use signed::Signed;
pub use token::{JoinToken, TokenHash, TokenScope, TokenSecret};
pub use visible::visible;
