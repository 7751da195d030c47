//! The simulated network: the programs of hub and agents, TLS, HTTP/2 and gRPC included, on machines
//! of a simulated network, each with a paused clock, over simulated clusters and a log in memory. A seed decides
//! what users do, what breaks, and how long messages take.
//!
//! * `script`: what happens when; `user`: what users do; `clusterset`: the machines, and how all of it is performed; `copy`: a
//!   cluster restored from a backup of a member's.
//! * `program`, `network`, `credentials`: the programs as software of a machine, their sockets and certificates.
//! * `vigil`: what must hold at every moment, by the oracle; `course`: how time passes; `run`: one seed from its beginning
//!   to its rest; `command`: many seeds, the histogram and the verdict.
//! * `story`: what becomes of members once everything is right, and how it must go; `operator`: who decides about them;
//!   `imported`: what of a member stands in the clusters of others; `logged`: what the hub's log says.
//!
//! It never decides how the programs work: nothing here is called by them.

mod clusterset;
mod command;
mod copy;
mod course;
mod credentials;
mod imported;
mod logged;
mod network;
mod operator;
mod program;
mod run;
mod script;
mod story;
mod trace;
mod user;
mod vigil;

pub use command::{NetsimArgs, run};
pub use run::{SeedResult, simulate};
