//! Owns: ClusterClasses and managed topologies: how they are written, their variables, their rules, their patches and the
//! templates in these, what their objects should be; what a hub sees of them beside Cluster API, and what it answers to an API
//! server that asks.
//! Never: is used by the rest of the hub, but for two things: the command line calls it, and who keeps ClusterProfiles takes
//! over what was observed. Nothing of it reaches the state or the log.

pub mod admission;
pub mod command;
pub mod desired;
mod live;
pub mod model;
pub mod observe;
pub mod own;
pub mod patch;
pub mod shadow;
pub mod template;
mod unicode;
pub mod validation;
pub mod variables;
pub mod watch;
pub mod webhook;
