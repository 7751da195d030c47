//! One watch per kind for the whole process: each feeds a store of the engine, which observe and apply read.

mod follow;

pub use agent_engine::watch::*;
pub use follow::{follow, follow_all, follow_labelled};
