//! Tests of the inspection services against a writer that runs, on a log in memory.

mod access;
mod concern;
mod crowd;
mod epochs;
mod held;
mod history;
pub(crate) mod inspected_hub;
mod pages;
mod present;
mod topologies;
