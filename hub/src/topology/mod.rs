//! Owns: ClusterClasses and managed topologies. So far their templates.
//! Never: is used by the rest of the hub; only the command line calls it.

pub mod command;
pub mod template;
mod unicode;
