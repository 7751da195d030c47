//! The common part of the doctors of hub and agent: findings for people and for programs.
//!
//! * [`report`]: the checks, their words and the exit code; pure. [`json`]: the same for programs.
//! * [`own`]: the files of this process's own certificate; [`hub`]: a hub as somebody who dials it sees it; both pure.
//! * [`rights`]: what an account needs to be allowed; pure.
//! * [`look`] and [`ask`]: look at hubs and files, and ask an API server, each step within a time.
//! * [`redact`]: takes keys and tokens out of texts; pure. [`bundle`]: what a maintainer is given, within bounds.
//!
//! A doctor looks and says. It changes nothing, and sends nothing anywhere but to the hub and the cluster that it was
//! named.

pub mod ask;
pub mod bundle;
pub mod hub;
pub mod json;
pub mod look;
pub mod own;
pub mod redact;
pub mod report;
pub mod rights;

pub use json::Output;
pub use report::{Check, Report, Verdict};
