//! Sessions of members: the protocol as a pure machine, and the stream around it.

pub mod machine;
mod metrics;
mod serve;
mod unacknowledged;

pub use metrics::SyncMetrics;
pub use serve::SyncService;
