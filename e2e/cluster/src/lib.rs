//! Clustersets for tests, measurements and the demo: a hub, agents and clusters as processes on this machine.
//!
//! * [`clusterset`]: a hub, clusters and agents. [`member`]: a member that is no agent, and speaks Sync by itself.
//! * [`real`]: real control planes. [`pretend`]: what Cluster API would do on them.
//! * [`charts`], [`deploy`]: renders the charts, and installs them. [`rights`]: every right of their accounts.
//! * [`cost`]: the processor time that a scenario uses. [`files`]: files that nobody else may read.

pub mod charts;
pub mod clusterset;
pub mod cost;
mod definitions;
pub mod deploy;
pub mod files;
pub mod member;
pub mod pretend;
pub mod real;
pub mod rights;
