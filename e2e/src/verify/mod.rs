//! What plays the product and judges it by its laws.
//!
//! * `swarm`: the pure rooms, in worlds that one seed decides. `netsim`: the programs, on a simulated network.
//! * `topology`: our plans beside upstream's manager. `templates`: our templates beside Go's engine. `crash`: real processes, killed and paused. `planted`: bugs that these must see.
//! * `mutants`: every small change of the pure rooms, which unit tests must see.
//! * `seeds`: which seeds a run plays; `shorten`: how what broke is made short.

pub mod args;
pub mod crash;
pub mod mutants;
pub mod netsim;
pub mod planted;
pub mod seeds;
pub mod shorten;
pub mod swarm;
pub mod templates;
pub mod topology;
pub(crate) mod variants;
