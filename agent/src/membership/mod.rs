//! Owns: what a member's cluster says of itself while it is one (KEP-2149): the ClusterProperties
//! `cluster.clusterset.k8s.io` and `clusterset.k8s.io`, as the certificate has them.
//! Never: tells the hub anything of them, or takes one away: a cluster that leaves is cleared by who takes it out.
//!
//! * [`decide`]: pure: what one of them is and what follows; `object`: it as Kubernetes has it;
//! * [`agree`]: one of somebody else's that says another thing stops the start, and makes a running agent unready;
//! * [`keep`]: the leader makes them and restores them.

pub mod agree;
pub mod decide;
pub mod keep;
mod object;

pub use decide::Membership;
