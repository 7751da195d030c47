//! One event log for several hubs: an engine holds its newest part, and one hub at a time may extend it.
//!
//! * `engine`: what an [`engine::Engine`] must do, and the bytes that it holds.
//! * `machine`: when a hub follows, takes the lead, commits and gives the lead up; it performs no IO.
//! * `testing`: an engine in memory with the faults of real ones, and the contract that every engine passes.
//!
//! Nothing here opens a socket or a file, reads a clock or draws a random number: both are arguments.

pub mod engine;
pub mod machine;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
