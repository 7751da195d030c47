//! The writer: one thread per clusterset that owns log and state (docs/design.md, section 5).
//!
//! * `request.rs`: what it is asked and what it answers.
//! * `core.rs`, `admission.rs`, `operate.rs`, `claims.rs`, `conflicts.rs`, `connectivity.rs`, `heard.rs`, `departures.rs`,
//!   `log_time.rs`: its mind, pure.
//! * `segments.rs`: when a segment of the log is full, pure. `disk_room.rs`: whether its disk has room for growth,
//!   pure. `held_back.rs`: the messages to members when it has none, pure. `budgets.rs`, `over_budget.rs`,
//!   `waiting.rs`: the same for what a member may have, pure. `totals.rs`: what all may have together, pure.
//!   `publication.rs`: what changed, as the view has it. `stored.rs`: which facts the log has as differences, pure.
//! * `actor.rs`: takes requests, appends, publishes, answers: in this order, never another. Stepped from outside.
//! * `published.rs`: what questions are answered from, pure. `present.rs`: where they find it; they never reach the writer.
//! * `takeover.rs`: what a hub begins with that takes the lead from another, pure.
//! * `service.rs`: tells people when the clusterset is not served.
//! * `thread.rs`: the thread that steps it. `handle.rs`: how sessions and operators reach it, bounded.

mod actor;
mod admission;
mod brake;
mod budgets;
mod claims;
mod conflicts;
mod connectivity;
mod core;
mod departures;
mod disk_room;
mod event_size;
mod handle;
mod heard;
mod held_back;
mod log_time;
mod operate;
mod over_budget;
mod present;
mod publication;
mod published;
pub mod request;
mod segments;
mod self_preservation;
mod service;
mod stored;
mod takeover;
mod thread;
mod totals;
mod waiting;
mod withdrawals;

pub use self::{
    actor::{Completed, Writer, WriterError, view_of},
    brake::taken_back,
    claims::{LATER_EPOCH_WITNESSES, MINT_INTERVAL_MILLIS},
    connectivity::{LOST_AFTER_MILLIS, SUSPECT_AFTER_MILLIS},
    core::{Batch, Core, Options},
    departures::GRACE_AT_START_MILLIS,
    disk_room::DiskRoom,
    handle::{AdmissionAnswer, Gone, Inbox, Permit, SessionEvent, SessionSink, Work, WriterHandle},
    heard::TICK_MILLIS,
    present::Present,
    publication::publication,
    published::Published,
    request::{
        Admission, AdmitRequest, Certification, CursorCheck, CursorVerdict, Dealt, Describe, Holder,
        HolderAnswer, NotAdmitted, Operated, Pinged, Reply, Request, Token,
    },
    takeover::{Takeover, note_end},
    totals::{STATE_ALARM_PERCENT, Total, fullest},
};
