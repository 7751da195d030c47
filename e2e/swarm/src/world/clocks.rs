//! Wall clocks of a world: the hub's, which may be wrong until the next rest, and those of agents, which may stay so.

use super::{What, World};
use crate::time::wall;

impl World {
    /// A wall clock is set. False: it is something else.
    pub(super) fn happen_to_clocks(&mut self, what: &What) -> bool {
        match what {
            What::HubClock(off) => self.set_hub_clock(i64::from(*off)),
            What::AgentClock(site, off) => {
                let count = self.sites.len();
                self.sites[site % count].clock_off = i64::from(*off);
                self.seen.count("clock of agents set");
            }
            _ => return false,
        }
        true
    }

    fn set_hub_clock(&mut self, off: i64) {
        let before = std::mem::replace(&mut self.hub_clock_off, off);
        let word = match off.cmp(&before) {
            std::cmp::Ordering::Greater => "clock of the hub set forward",
            std::cmp::Ordering::Less => "clock of the hub set back",
            std::cmp::Ordering::Equal => return,
        };
        self.seen.count(word);
    }

    /// Somebody sets the hub's clock right.
    pub(crate) fn set_clock_right(&mut self) {
        self.set_hub_clock(0);
    }

    /// The wall clock of the hub.
    pub(super) fn hub_wall(&self) -> model::UnixMillis {
        wall(self.now, self.hub_skew + self.hub_clock_off)
    }
}
