//! The writer: one thread per clusterset that owns log and state (docs/design.md, section 5).
//!
//! * `core.rs`, `admission.rs`, `claims.rs`, `connectivity.rs`: its mind, pure.
//! * `thread.rs`: drains requests, appends, publishes, answers: in this order, never another.
//! * `handle.rs`: how sessions and inspection reach it, bounded.

mod admission;
mod claims;
mod conflicts;
mod connectivity;
mod core;
mod handle;
mod thread;

pub use self::{
    admission::{AdmitRequest, CursorCheck, Holder},
    claims::{LATER_EPOCH_WITNESSES, MINT_INTERVAL_MILLIS},
    connectivity::{LOST_AFTER_MILLIS, SUSPECT_AFTER_MILLIS, TICK_MILLIS},
    core::{Batch, Core, Describe, NotAdmitted, Operated, Options, Reply, Request, Token, publication},
    handle::{Gone, Room, SessionEvent, SessionSink, WriterHandle},
    thread::{Writer, WriterError, view_of},
};
