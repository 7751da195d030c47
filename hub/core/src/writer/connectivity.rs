//! Connectivity: what follows from how long each member has been silent (docs/design.md, section 4).
//! Only transitions become events. Time is an argument.

use model::{ClusterId, UnixMillis, sync::SourceState};

use super::{
    core::Core,
    heard::{TICK_LATENESS_MILLIS, TICK_MILLIS},
};
use fold::{Command, Connectivity, Departure};

/// Silence after which a member is suspect, in milliseconds.
pub const SUSPECT_AFTER_MILLIS: u64 = 3_000;
/// Silence after which a member is lost, in milliseconds: with one tick on top it is within 10 s.
pub const LOST_AFTER_MILLIS: u64 = 9_000;

const _: () = assert!(LOST_AFTER_MILLIS + TICK_MILLIS + TICK_LATENESS_MILLIS <= 10_000);

impl Core {
    /// Looks at every member's silence. `heard` has the open sessions' last signs of life.
    pub fn tick(&mut self, clock: UnixMillis, now: u64, heard: impl IntoIterator<Item = (ClusterId, u64)>) {
        self.clock = clock;
        self.heard.tick(now);
        self.now = self.now.max(now);
        self.ask_for_what_waits(now);
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
        self.withdraw_who_stays_lost(now);
        self.release_spent_brakes(now);
        self.end_who_is_to_leave(now);
    }

    /// Ends the memberships whose time is over.
    fn end_who_is_to_leave(&mut self, now: u64) {
        let leaving = self.state.leaving();
        let leaving = leaving.map(|(cluster, leaving)| (cluster, leaving.until));
        let over = self.departures.look(leaving, self.clock, now);
        if over.is_empty() {
            return;
        }
        for cluster in over {
            let departure = Departure::Due;
            // It is to leave, and so it is a member.
            let _ = self.decide_and_apply(&Command::Depart { cluster, departure });
        }
        self.drop_former_members();
        self.review_service();
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
}
