//! ClusterClasses and managed topologies, as values: how they are written, their variables, their rules, their patches and
//! the templates in these, what their objects should be, and what an API server is answered that asks about them.
//! Nothing here knows a cluster, a hub or a clock.

pub mod admission;
pub mod desired;
pub mod model;
pub mod patch;
pub mod template;
mod unicode;
pub mod validation;
pub mod variables;
