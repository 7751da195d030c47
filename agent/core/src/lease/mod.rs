//! The agent's Lease, decided: `machine` says who may take it, `hold` what its holder may do until when.

pub mod hold;
pub mod machine;
