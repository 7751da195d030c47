//! The hub: one event log per clusterset, folded into state, resolved, and pushed back to every member.
//!
//! * [`args`]: the command line; [`program`]: what it runs; [`run`]: the wiring.
//! * [`certs`]: certificates for hubs, members and operators.
//! * [`session`] → [`writer`] { decide → apply, by the rules of [`fold`] → [`log`] } → [`view`] → [`push`].
//! * [`bounds`]: the bounds that are settings.
//! * [`doors`]: what one identity may have open; [`descriptors`]: how many files and sockets the process may have.
//! * [`inspect`]: what people and tools read. [`membership`]: operators' decisions about members.
//! * [`doctor`]: what is wrong at the hub's place.
//! * [`maintain`]: what is done to the log of a hub that is stopped.
//! * [`profile`]: ClusterProfiles in the hub's own Kubernetes cluster.
//! * [`topology`]: ClusterClasses; a room of its own.
//! * [`hub`] puts them together; [`lead`] says what ends when another writes the log; [`recall`] reads events back whole;
//!   [`replay`] rebuilds the state at start; [`wire`] encodes snapshots.

pub mod args;
pub mod descriptors;
pub mod doctor;
pub mod doors;
pub mod hub;
pub mod inspect;
pub mod lead;
pub mod maintain;
pub mod membership;
pub mod profile;
pub mod program;
pub mod run;
pub mod session;

pub use ::certs;
pub use ::fold;
pub use event_log as log;
pub use hub_core::{arrival, bounds, clock, effects, metrics, push, recall, replay, snapshot, view, writer};
pub use topology_controller as topology;
