//! The Tributary hub.
//!
//! * [`fold`]: the pure core: decisions, state, everything derived.
//! * [`log`]: the durable event log.

pub mod fold;
pub mod log;
