//! Decisions of the member agent, as synchronous functions on values.
//!
//! * [`outbox`]: what this cluster reports and the hub has not acknowledged.
//! * [`plan`]: what the hub desires × what the cluster holds → what to do.

pub mod outbox;
pub mod plan;
