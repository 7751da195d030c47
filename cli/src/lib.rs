//! The client of a clusterset: the program `tributary`, also called `kubectl-tributary`.
//!
//! * [`command`]: the command line; [`program`]: runs it, and chooses the exit code.
//! * [`context`]: shows and changes the file that remembers hubs and certificates.
//! * [`show`]: `status`, `get` and `explain`.
//! * [`operate`]: the commands that decide, and those that read the log.
//! * [`doctor`]: finds what is wrong between here and the hub.
//! * [`setup`]: makes a clusterset, adds clusters to it, and removes both.
//! * [`output`]: tables, JSON and YAML.
//!
//! The client asks the hub and prints the answer. The hub takes every decision.

pub mod command;
pub mod context;
pub mod doctor;
pub mod operate;
pub mod output;
pub mod program;
pub mod setup;
pub mod show;
