//! The task that observes, around the engine's observer.

mod run;

pub use agent_engine::observe::*;
pub use run::{Observing, known};
