//! The laws that every ring judges by, and how many objects each of them guarded: a law that guarded nothing has
//! not been tested. Pure: what is judged is given to them.
//!
//! * [`Standing`]: what stood stays. [`Guarded`]: how much was guarded. [`Verdict`]: what that makes of many seeds.
//!   [`requests`]: what agents may ask of an API server. What a cluster must hold is the oracle's.

mod guarded;
pub mod requests;
mod standing;
mod verdict;

pub use self::{
    guarded::{Guarded, Law},
    standing::Standing,
    verdict::{ManySeeds, Verdict},
};
