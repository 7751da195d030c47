//! Sessions of members on gRPC: `serve` is the task around a session's steps, which hub-core has, and `status` makes a
//! gRPC status of how one ends.

mod serve;
mod status;

pub use hub_core::session::*;
pub use serve::SyncService;
