//! The swarm: hub and agents as pure machines, their clusters and the network between them, in one synchronous
//! loop that one seed decides. Messages are encoded and decoded for real; nothing waits, nothing runs beside it.
//!
//! * [`script`]: what happens in a world ([`happening`]), drawn from its seed: edits, faults, rests. Steps stand for
//!   themselves, so that a script stays one when steps are left out ([`shrink`]).
//! * `world`: whose turn it is; `rest`: how it ends; `site` with `agent` and `follower`: one cluster and its agents; `hub`: the hub;
//!   `network`: what lies between them.
//! * `hostile`: a member that means no good, and strangers in the names of others.
//! * `still`: what may go by the Lease of a source. `held`: what may not go though a member took it back.
//! * `judge`: what every cluster must hold, from the clusters' own objects and nothing else; `laws` with `refusals` and
//!   `imports`, `taken`: what must never happen.
//! * [`run`]: many worlds; [`histogram`]: what happened in them.
//!
//! Not here: sockets, TLS, timers, the sled store. `cargo test` and `cargo crash` have those.

mod agent;
pub mod args;
mod clocks;
mod draw;
mod failing;
mod follower;
mod goodbye;
pub mod happening;
mod held;
pub mod histogram;
mod hostile;
mod hostilities;
mod hub;
mod imports;
mod judge;
mod laws;
mod leaving;
mod lost;
mod many_lost;
mod network;
mod order;
mod refusals;
mod reserved;
mod rest;
pub mod run;
pub mod script;
pub mod shrink;
mod site;
mod still;
mod story;
mod taken;
mod time;
#[cfg(test)]
mod two_exporters;
mod world;

pub use world::{Failure, WorldResult, play};
