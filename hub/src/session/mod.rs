//! Sessions of members: the protocol as a pure machine, and the stream around it.

pub mod machine;
mod metrics;
mod serve;

pub use metrics::SyncMetrics;
pub use serve::SyncService;
