//! What hub and agent share.
//!
//! * [`api`]: the Kubernetes kinds that Tributary brings along.
//! * [`model`]: the domain's pure vocabulary.
//!
//! Nothing here decides a conflict, writes a log or talks to a cluster.

pub mod api;
pub mod model;
