//! The hub's own edge to protobuf. What members and hub say to each other is converted in `shared::wire`.
//!
//! * [`snapshot`]: rows of a snapshot, as the log stores them.

pub mod snapshot;
