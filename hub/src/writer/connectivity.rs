//! Connectivity: how long each member has been silent, and what follows (docs/design.md, section 4).
//! Only transitions become events. Time is an argument; a late tick of the hub's own moves every deadline.

use std::collections::BTreeMap;

use shared::model::{ClusterId, UnixMillis, sync::SourceState};

use super::core::Core;
use crate::fold::{Command, Connectivity};

/// How often deadlines are looked at, in milliseconds.
pub const TICK_MILLIS: u64 = 500;
/// Silence after which a member is suspect, in milliseconds.
pub const SUSPECT_AFTER_MILLIS: u64 = 3_000;
/// Silence after which a member is lost, in milliseconds: with one tick on top it is within 10 s.
pub const LOST_AFTER_MILLIS: u64 = 9_000;
/// A tick that is later than this is the hub's own fault and is given to the members, in milliseconds.
const TICK_LATENESS_MILLIS: u64 = 250;

const _: () = assert!(LOST_AFTER_MILLIS + TICK_MILLIS + TICK_LATENESS_MILLIS <= 10_000);

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

    fn tick(&mut self, now: u64) {
        let late = now.saturating_sub(self.ticked_at + TICK_MILLIS);
        if late > TICK_LATENESS_MILLIS {
            self.started_at += late;
            self.at.values_mut().for_each(|at| *at = (*at + late).min(now));
        }
        self.ticked_at = now;
    }

    fn silence(&self, cluster: &ClusterId, now: u64) -> u64 {
        now.saturating_sub(self.at.get(cluster).copied().unwrap_or(self.started_at))
    }
}

impl Core {
    /// Looks at every member's silence. `heard` has the open sessions' last signs of life.
    pub fn tick(&mut self, clock: UnixMillis, now: u64, heard: impl IntoIterator<Item = (ClusterId, u64)>) {
        self.recorded_at = self.recorded_at.max(clock);
        self.heard.tick(now);
        if self.not_serving.is_some() {
            // Everybody was sent away: their silence says nothing of them.
            return;
        }
        for (cluster, at) in heard {
            self.heard.heard(&cluster, at);
        }
        let members: Vec<(ClusterId, SourceState)> = self
            .state
            .members()
            .iter()
            .map(|(cluster, member)| (cluster.clone(), member.source_state()))
            .collect();
        for (cluster, state) in members {
            let silence = self.heard.silence(&cluster, now);
            if let Some(to) = transition(state, silence) {
                // A transition of a current member is always accepted; others are not asked for.
                let _ = self.decide_and_apply(&Command::Connectivity { cluster, to });
            }
        }
    }
}

fn transition(state: SourceState, silence: u64) -> Option<Connectivity> {
    match state {
        SourceState::Live | SourceState::Suspect if silence >= LOST_AFTER_MILLIS => Some(Connectivity::Lost),
        SourceState::Live if silence >= SUSPECT_AFTER_MILLIS => Some(Connectivity::Suspect),
        SourceState::Suspect | SourceState::Lost if silence < SUSPECT_AFTER_MILLIS => {
            Some(Connectivity::Live)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_leads_from_live_over_suspect_to_lost_and_back() {
        assert_eq!(transition(SourceState::Live, 2_000), None);
        assert_eq!(transition(SourceState::Live, 3_000), Some(Connectivity::Suspect));
        assert_eq!(transition(SourceState::Suspect, 3_000), None);
        assert_eq!(transition(SourceState::Suspect, 9_000), Some(Connectivity::Lost));
        assert_eq!(transition(SourceState::Suspect, 2_999), Some(Connectivity::Live));
        assert_eq!(transition(SourceState::Lost, 2_999), Some(Connectivity::Live));
        assert_eq!(transition(SourceState::Lost, 3_000), None);
        assert_eq!(transition(SourceState::Evicted, 0), None);
    }

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
