//! Tests across crates: simulated and real clusters, scenarios, the demo, crashes and the load generator; never
//! shipped.

pub mod crash;
mod definitions;
pub mod demo;
pub mod deploy;
mod files;
pub mod load;
pub mod planted;
pub mod real;
pub mod shell;
pub mod sim;
pub mod suite;
pub mod swarm;
pub mod world;
