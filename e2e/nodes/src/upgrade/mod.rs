//! Owns: another version of the programs under requests that go on: from an earlier commit to this one in both orders,
//! and between two of our images by charts and back.
//! Never: judges by anything but who answered.

mod orders;
mod previous;
mod rollback;
mod steps;

pub(super) use self::{
    orders::{Order, upgrade},
    rollback::rollback,
};

/// Requests that outlast every step; they end with the last one.
pub(super) const REQUESTS: u32 = 100_000;
