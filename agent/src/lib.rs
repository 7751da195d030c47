//! The member agent: observes its cluster, reports to the hub, applies what the hub derives.
//!
//! * [`args`]: the command line; [`program`]: what it runs; [`run`]: sockets and flags around [`agent`], which wires the
//!   rooms; [`adopt`], [`corefile`], [`leave`], [`doctor`] and [`probe`]: commands of their own;
//! * [`watch`]: one watch per kind, shared by all that read;
//! * [`membership`]: what a member's cluster says of itself; [`convert`]: Kubernetes objects ↔ plain values;
//! * [`observe`] → [`outbox`] → [`link`]: the cluster's facts on their way to the hub; [`health`]: how its control plane and
//!   nodes do; [`lease`]: which agent works;
//! * [`join`]: how a cluster becomes a member; [`renewal`]: how it gets its next certificate;
//! * [`plan`]: pure: what the hub desires × what the cluster holds → what to do;
//! * [`apply`]: does it, and touches only what is ours; [`expiry`]: the Leases of source clusters, and what goes by them.

pub mod adopt;
pub mod agent;
pub mod args;
pub mod corefile;
pub mod definition;
pub mod doctor;
pub mod health;
pub mod join;
pub mod leave;
pub mod link;
pub mod membership;
pub mod observe;
pub mod probe;
pub mod program;
pub mod renewal;
pub mod run;
pub mod watch;

pub use agent_core::{outbox, plan};
pub use agent_engine::{apply, convert, expiry, lease};
