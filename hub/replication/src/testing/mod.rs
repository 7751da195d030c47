//! An engine in memory with the faults of real ones, and the contract that every engine passes.

mod contents;
mod dice;
mod engine;
pub mod suite;
#[cfg(test)]
mod tests;

pub use dice::Dice;
pub use engine::{Faults, LinkFaults, SimulatedEngine};
