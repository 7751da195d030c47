//! Owns: what a member's cluster says of itself while it is one (KEP-2149): the ClusterProperties
//! `cluster.clusterset.k8s.io` and `clusterset.k8s.io`, as the certificate has them.
//! Never: tells the hub anything of them, or takes one away but `clusterset.k8s.io`, once a hub said that the membership has
//! ended: what else is left is cleared by who takes the cluster out.
//!
//! * [`decide`]: pure: what one of them is and what follows; `object`: it as Kubernetes has it;
//! * [`agree`]: a contradicting property of another writer stops the start, and makes a running agent unready;
//! * [`ended`]: pure: whether a hub's word ends this cluster's membership;
//! * [`keep`]: the leader makes them and restores them, and removes what is not true any more.

pub mod agree;
pub mod decide;
pub mod ended;
pub mod keep;
mod object;

pub use decide::Membership;
