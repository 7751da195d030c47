//! Managed topologies in a management cluster: what is seen of them beside Cluster API, what is written where nobody else
//! keeps them, what an API server is answered that asks, and how a Cluster becomes a member and leaves.
//!
//! * [`watch`], [`observe`]: Clusters and classes as they are. [`shadow`]: compared with what they should be.
//! * [`mirror`]: all objects of topologies, as watches show them. [`own`]: keeps them. [`webhook`]: admits them. [`enrol`]: has them join and leave. [`answers`]: explains one.
//!
//! It knows no session, no service and no state of a clusterset but members; [`enrol::Decides`] has its decisions recorded.

pub mod answers;
pub mod enrol;
mod explains;
pub mod mirror;
pub mod observe;
pub mod own;
pub mod shadow;
pub mod watch;
pub mod webhook;

pub use clusterclass::{admission, desired, model, patch, template, validation, variables};
pub use explains::{ExplainsTopologies, NotExplained, ObjectExplained, TopologyExplained};
use topology_reader as live;
