//! Tests across crates; never shipped.
//!
//! * `sim`, `real`, [`nodes`]: simulated clusters, real control planes, and clusters with real nodes. `clusterset`: a hub, clusters and agents as processes.
//! * `oracle`: what must be true of a clusterset, from what users declared; `laws`: what must never happen. Both are
//!   written once, pure, and asked by clustersets and by all that verifies.
//! * [`verify`]: what plays the product and judges it. [`load`]: what measures it. [`demo`]: what shows it.
//! * `deploy`, `charts`: what is installed, and what it is rendered from.
//! * `rights`: every right of the charts' accounts; [`permissions`]: that each is needed.
//! * [`cost`]: the processor time that a scenario uses; a leaf as well.
//! * [`advice`]: the commands that messages advise. A leaf, which uses no other room: every room may use it.
//! * [`reference`]: the generated pages of docs/reference.
//! * `member`: a member that is no agent, and speaks Sync by itself. `suite`: how tests are registered and run.

pub mod advice;
pub mod charts;
pub mod clusterset;
pub mod cost;
mod definitions;
pub mod demo;
pub mod deploy;
mod files;
pub mod laws;
pub mod load;
pub mod member;
pub mod nodes;
pub mod oracle;
pub mod permissions;
pub mod pretend;
pub mod real;
pub mod reference;
pub mod rights;
pub mod sim;
pub mod suite;
pub mod verify;
