//! What hub and agent share.
//!
//! * [`model`]: the domain's pure vocabulary.
//!
//! Nothing here decides a conflict, writes a log or talks to a cluster.

pub mod model;
