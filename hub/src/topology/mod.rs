//! Owns: ClusterClasses and managed topologies. So far their patches, and the templates in these.
//! Never: is used by the rest of the hub; only the command line calls it.

pub mod command;
pub mod patch;
pub mod template;
mod unicode;
