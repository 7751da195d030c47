//! The common parts of hub and agent.
//!
//! * [`api`]: the Kubernetes kinds that Tributary brings along, and the Lease that each process keeps of itself.
//! * [`api_client`]: the way to a cluster's API.
//! * [`columns`]: rows of text as columns.
//! * [`difference`]: what changed between two versions of an encoded object.
//! * [`doctor`]: the checks of doctors, and their wording.
//! * [`model`]: the domain's pure vocabulary.
//! * [`identity`]: who a certificate says somebody is.
//! * [`tls`]: mutual TLS that reloads, acceptor and connector.
//! * [`process`]: what every process needs around its work: logs, readiness, admin port, shutdown.
//! * `testing`: generators of model values, for tests only (feature `testing`).
//! * [`wire`]: the model and protobuf, converted into each other.
//!
//! Nothing here decides a conflict, writes a log or knows what to ask of a cluster.

pub mod api_client;
pub mod doctor;
pub mod identity;
pub mod process;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tls;

pub use ::api;
pub use model::{self, columns};
pub use wire::{self, difference};
