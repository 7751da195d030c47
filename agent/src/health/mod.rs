//! The health of the cluster: what its control plane and its nodes look like from inside, and what is reported of it.
//!
//! * [`probes`], [`leases`], [`leader`]: what answers and Leases say over time; [`judge`]: the verdict from them;
//!   [`nodes`]: how many are not ready; [`report`]: what is reported, and [`pace`]: when. All pure, on the agent's monotonic clock.
//! * [`ask`]: the questions; [`observed`]: what is kept of Leases and Nodes; [`watch`]: the loop around all of it.

pub mod ask;
pub mod judge;
pub mod leader;
pub mod leases;
pub mod nodes;
pub mod observed;
pub mod pace;
pub mod probes;
pub mod report;
pub mod watch;
