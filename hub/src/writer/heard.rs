//! How long each member has been silent. Time is an argument; a late tick of the hub's own moves every deadline.

use std::collections::BTreeMap;

use shared::model::ClusterId;

/// How often deadlines are looked at, in milliseconds.
pub const TICK_MILLIS: u64 = 500;
/// A tick that is later than this is the hub's own fault and is given to the members, in milliseconds.
pub(super) const TICK_LATENESS_MILLIS: u64 = 250;

/// When each member was last heard, in monotonic milliseconds.
#[derive(Debug)]
pub(super) struct Heard {
    started_at: u64,
    ticked_at: u64,
    at: BTreeMap<ClusterId, u64>,
}

impl Heard {
    /// A hub that starts gives every member a fresh grace period.
    pub(super) fn new(now: u64) -> Self {
        Self {
            started_at: now,
            ticked_at: now,
            at: BTreeMap::new(),
        }
    }

    /// A sign of life.
    pub(super) fn heard(&mut self, cluster: &ClusterId, at: u64) {
        match self.at.get_mut(cluster) {
            Some(known) => *known = at.max(*known),
            None => {
                self.at.insert(cluster.clone(), at);
            }
        }
    }

    /// Its session ended.
    pub(super) fn left(&mut self, cluster: &ClusterId, heard_at: u64) {
        self.heard(cluster, heard_at);
    }

    /// It is no member any more.
    pub(super) fn forget(&mut self, cluster: &ClusterId) {
        self.at.remove(cluster);
    }

    /// Deadlines are looked at.
    pub(super) fn tick(&mut self, now: u64) {
        let late = now.saturating_sub(self.ticked_at + TICK_MILLIS);
        if late > TICK_LATENESS_MILLIS {
            self.started_at += late;
            self.at.values_mut().for_each(|at| *at = (*at + late).min(now));
        }
        self.ticked_at = now;
    }

    /// How long it has been silent.
    pub(super) fn silence(&self, cluster: &ClusterId, now: u64) -> u64 {
        now.saturating_sub(self.at.get(cluster).copied().unwrap_or(self.started_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sign_of_life_counts_whoever_brings_it() {
        let east = ClusterId::new("east").unwrap();
        let mut heard = Heard::new(0);
        heard.heard(&east, 5_000);
        heard.left(&east, 6_000);
        heard.heard(&east, 4_000);
        assert_eq!(heard.silence(&east, 7_000), 1_000);
        heard.forget(&east);
        assert_eq!(heard.silence(&east, 7_000), 7_000, "since the hub started");
    }

    #[test]
    fn a_tick_that_is_a_little_late_moves_no_deadline() {
        let east = ClusterId::new("east").unwrap();
        let mut heard = Heard::new(0);
        heard.heard(&east, 400);
        let now = TICK_MILLIS + TICK_LATENESS_MILLIS;
        heard.tick(now);
        assert_eq!(heard.silence(&east, now), now - 400);
    }

    #[test]
    fn a_hub_that_was_stopped_does_not_blame_the_members() {
        let east = ClusterId::new("east").unwrap();
        let mut heard = Heard::new(0);
        heard.heard(&east, 400);
        heard.tick(500);
        heard.tick(60_000);
        assert_eq!(
            heard.silence(&east, 60_000),
            100 + TICK_MILLIS,
            "as before, and one tick"
        );
        assert_eq!(
            heard.silence(&ClusterId::new("west").unwrap(), 60_000),
            2 * TICK_MILLIS
        );
        heard.tick(60_500);
        assert!(heard.silence(&east, 60_500) > heard.silence(&east, 60_000));
    }
}
