//! Tests of the inspection services against a writer that runs, on a log in memory.

mod access;
mod history;
mod present;
pub(crate) mod world;
