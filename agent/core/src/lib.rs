//! Decisions of the member agent, as synchronous functions on values.
//!
//! * [`outbox`]: what this cluster reports and the hub has not acknowledged. [`link`]: the session with the hub.
//! * [`plan`]: what the hub desires × what the cluster holds → what to do.
//! * [`lease`]: which agent leads. [`expiry`]: which sources are over, and whose Leases the leader renews.

pub mod expiry;
pub mod lease;
pub mod link;
pub mod outbox;
pub mod plan;
