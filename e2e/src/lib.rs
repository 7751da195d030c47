//! Tests across crates: simulated and real clusters, scenarios, the demo and the load generator; never shipped.

pub mod real;
pub mod suite;
