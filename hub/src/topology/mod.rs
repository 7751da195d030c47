//! Owns: ClusterClasses and managed topologies: how they are written, their variables, their rules, their patches and the
//! templates in these, what their objects should be; what a hub sees of them beside Cluster API, what it answers to an API
//! server that asks, and how what comes from them becomes a member and leaves.
//! Never: is used by the rest of the hub, but for two things: the command line calls it, and who keeps ClusterProfiles takes
//! over what was observed. Nothing of it reaches the state or the log but decisions about members, as an operator's do.

pub mod answers;
pub mod command;
pub mod enrol;
mod live;
pub mod observe;
pub mod own;
pub mod shadow;
pub mod watch;
pub mod webhook;

pub use clusterclass::{admission, desired, model, patch, template, validation, variables};
