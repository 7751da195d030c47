//! The hub: one event log per clusterset, folded into state, resolved, and pushed back to every member.
//!
//! * [`args`]: the command line; [`run`]: the wiring.
//! * [`certs`]: certificates for hubs, members and operators.
//! * [`fold`]: the pure core: decisions, state, and everything derived from it.
//! * [`log`]: the event log.
//! * [`wire`]: the edge to protobuf that only the hub has.

pub mod args;
pub mod certs;
pub mod fold;
pub mod log;
pub mod run;
pub mod wire;
