//! The Leases of source clusters, decided: `judge` says which are over, `upkeep` what the leader does to them.

pub mod judge;
pub mod upkeep;
