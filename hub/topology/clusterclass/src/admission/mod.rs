//! Owns: the answer to an API server that asks whether a ClusterClass or a Cluster may be created, changed or deleted.
//! Never: fills in a default, or asks anybody: what else must be known is named ([`Review::needs`]) and given.
//!
//! * `review.rs`: what is asked, and what passes as it is. `judge.rs`: which findings refuse, and which only warn.
//!   `verdict.rs`: the answer.

mod judge;
mod review;
#[cfg(test)]
mod tests;
mod verdict;

pub use self::{
    judge::Beside,
    review::{Needs, Review},
    verdict::{Outcome, Verdict},
};
