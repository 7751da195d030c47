//! The member agent: observes its cluster, reports to the hub, applies what the hub derives.
//!
//! * [`args`]: the command line; [`run`]: the wiring.

pub mod args;
pub mod outbox;
pub mod run;
