//! The member agent between its API server, which is a trait here, and its link to the hub.
//!
//! * [`watch`]: what is kept of each object, and which changed; the agent's own watches feed it.
//! * [`convert`]: Kubernetes objects ↔ plain values. [`observe`]: from what the cluster shows to facts.
//! * [`apply`]: does what is planned, and touches only what is ours.
//! * [`lease`]: which agent works. [`expiry`]: the Leases of source clusters, and what goes by them.

pub mod apply;
pub mod convert;
pub mod expiry;
pub mod lease;
pub mod observe;
pub mod watch;

pub(crate) use agent_core::{outbox, plan};
