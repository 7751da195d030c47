//! The client of a clusterset: the program `tributary`, also called `kubectl-tributary`.
//!
//! * [`command`]: the command line; [`program`]: runs it, and chooses the exit code.
//! * [`context`]: the file that remembers hubs and certificates.
//! * [`setup`]: makes a clusterset, adds clusters to it, and removes both.
//!
//! The client asks the hub and prints the answer. The hub takes every decision.

pub mod command;
pub mod context;
pub mod program;
pub mod setup;
