//! Owns: ClusterClasses and managed topologies: how they are written, their variables, their rules, their patches and the
//! templates in these, and what their objects should be.
//! Never: is used by the rest of the hub; only the command line calls it.

pub mod command;
pub mod desired;
mod live;
pub mod model;
pub mod patch;
pub mod template;
mod unicode;
pub mod validation;
pub mod variables;
