//! Sessions of members: the protocol as a pure machine, the steps between it, the writer and the view, and the task
//! around them.

mod actor;
pub mod machine;
mod metrics;
mod serve;
mod unacknowledged;

pub use actor::{Answer, Awaited, SessionActor};
pub use metrics::SyncMetrics;
pub use serve::SyncService;
