//! Owns: how people write what all members of a clusterset together may have recorded, as flags.
//! Never: counts anything.

use clap::Args;

use crate::{bounds::StateBounds, log::limits::size};

/// The flags that bound what all members together may have recorded.
#[derive(Debug, Clone, Copy, Args)]
pub struct StateArgs {
    /// Largest number of ServiceExports of all members of a clusterset together
    #[arg(long, env = "TRIBUTARY_STATE_EXPORTS", value_name = "COUNT", default_value_t = StateBounds::default().exports)]
    pub state_exports: u64,
    /// Largest number of EndpointSlices of all members of a clusterset together
    #[arg(long, env = "TRIBUTARY_STATE_ENDPOINT_SLICES", value_name = "COUNT",
        default_value_t = StateBounds::default().endpoint_slices)]
    pub state_endpoint_slices: u64,
    /// Memory for the members' reports and everything derived from them, by the hub's estimate: a number, with kB, MB
    /// or GB (of 1000) or KiB, MiB or GiB (of 1024). Several clustersets share it evenly. The hub needs 384 MiB besides
    #[arg(long, env = "TRIBUTARY_STATE_MEMORY", value_name = "SIZE", default_value = "640MiB", value_parser = size)]
    pub state_memory: u64,
}

impl StateArgs {
    /// Returns the bounds for each of so many clustersets.
    pub fn bounds(&self, sets: usize) -> StateBounds {
        StateBounds {
            exports: self.state_exports,
            endpoint_slices: self.state_endpoint_slices,
            memory: self.state_memory / u64::try_from(sets.max(1)).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        state: StateArgs,
    }

    #[test]
    fn the_defaults_are_those_of_the_bounds_and_clustersets_share_the_memory() {
        let args = Line::parse_from(["hub"]).state;
        assert_eq!(args.bounds(1), StateBounds::default());
        let of_four = args.bounds(4);
        assert_eq!(of_four.memory, StateBounds::default().memory / 4);
        assert_eq!(of_four.exports, StateBounds::default().exports);
    }
}
