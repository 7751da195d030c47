//! The hub's core: one writer decides, records and publishes; members get what they lack; a start replays the log.
//!
//! * [`writer`]: what is asked → decided by the fold → recorded → [`view`] → [`push`].
//! * [`session`]: one member's session, and how it ends; the task and the gRPC stream around it are the hub's.
//! * [`arrival`]: in which clusters exports arrived.
//! * [`bounds`]: the bounds that are settings. [`clock`]: time, as a value that a simulation can set.
//! * [`following`]: the state of a hub that follows another.
//! * [`replay`]: the state at start. [`recall`]: events read back whole. [`snapshot`]: its rows as bytes.
//! * [`effects`]: what a decision of an operator does, in sentences. [`metrics`]: what the writer and the log count.

pub mod arrival;
pub mod bounds;
pub mod clock;
pub mod effects;
pub mod following;
pub mod metrics;
pub mod push;
pub mod recall;
pub mod replay;
pub mod session;
pub mod snapshot;
pub mod view;
pub mod writer;
