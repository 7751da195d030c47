//! The link to the hub: the session machine, and the dialling and streaming around it.

mod dial;
pub mod machine;

pub use dial::{Link, LinkMetrics};
