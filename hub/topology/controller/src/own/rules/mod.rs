//! Owns: the decisions about topologies that the hub keeps itself: whether another controller does, whose turn it is,
//! the requests of a plan, the records, and the reports about a Cluster.
//! Never: a clock, a server, a log.
//!
//! [`seen`] is what objects say of each Cluster, [`rival`] whether another controller is there, [`waves`] whose turn it is,
//! [`said`] what its owner said of its machines, [`writer`] which hub may write, [`steps`] the requests, [`event`] what is recorded, [`ledger`] what follows from that, and
//! [`condition`] and [`told`] what is said. [`handover`] is about Clusters that go from one controller to the other.

pub mod condition;
pub mod event;
pub mod handover;
pub mod ledger;
pub mod rival;
pub mod said;
pub mod seen;
pub mod steps;
pub mod told;
pub mod waves;
pub mod writer;
