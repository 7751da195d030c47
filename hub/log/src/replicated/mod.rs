//! The log that several hubs share: an engine commits, each hub's disk is a replica, one hub at a time may append.
//!
//! * `node.rs`: a hub's part: the machine's outputs carried out over the replica, the fold and the engine. It has no thread
//!   and no clock.
//! * `calls.rs`: the calls that wait for it, bounded. `term.rs`: one term, as a [`crate::Log`].
//! * `types.rs`: the words that it and its owner share. `thread.rs`: the thread that runs a part. `stepped.rs`: one that
//!   a simulation runs.

mod calls;
mod node;
#[cfg(any(test, feature = "simulated"))]
mod stepped;
mod term;
mod thread;
mod types;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::hubs;

pub use node::Part;
#[cfg(any(test, feature = "simulated"))]
pub use stepped::Stepped;
pub use thread::{Clock, Running};
pub use types::{Fold, Happened, Lead, NewReplica, Refold};
