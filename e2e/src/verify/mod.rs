//! What plays the product and judges it by its laws.
//!
//! * `oracle`: what must be true of a clusterset, from what users declared; `laws`: what must never happen. Both are
//!   written once, pure, and asked by all that follow.
//! * `swarm`: the pure rooms, in worlds that one seed decides. `netsim`: the programs, on a simulated network.
//! * `crash`: real processes, killed and paused. `planted`: bugs that these must see.
//! * `mutants`: every small change of the pure rooms, which unit tests must see.

pub mod args;
pub mod crash;
pub mod laws;
pub mod mutants;
pub mod netsim;
pub mod oracle;
pub mod planted;
pub mod swarm;
mod variants;
