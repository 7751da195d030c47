//! The member agent: observes its cluster, reports to the hub, applies what the hub derives.
//!
//! * [`args`]: the command line; [`run`]: the wiring;
//! * [`plan`]: pure: what the hub desires × what the cluster holds → what to do.

pub mod agent;
pub mod args;
pub mod lease;
pub mod link;
pub mod observe;
pub mod outbox;
pub mod plan;
pub mod run;
pub mod watch;
