//! The laws that every ring judges by, and how many objects each of them guarded: a law that guarded nothing has
//! not been tested. Pure: what is judged is given to them.
//!
//! * [`Standing`]: what stood stays. [`Guarded`]: how much was guarded. [`Verdict`]: what that makes of many seeds.
//!   The simulated API server has the limits of what agents may ask of it; the oracle has what a cluster must hold.

mod guarded;
mod standing;
mod verdict;

pub use self::{
    guarded::{Guarded, Law},
    standing::Standing,
    verdict::{ManySeeds, Verdict},
};
