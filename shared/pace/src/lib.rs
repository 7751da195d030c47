//! The waits between attempts, the randomness and the monotonic time of a process. A simulation sets the last two.

mod backoff;
mod chance;
mod monotonic;

pub use backoff::Backoff;
pub use chance::{random, seed_thread};
pub use monotonic::{Monotonic, monotonic};
