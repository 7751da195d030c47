//! Generators of facts and messages, as values and as bytes, beside those of the model. For tests only.

pub mod fact;
pub mod message;

pub use model::testing::*;
