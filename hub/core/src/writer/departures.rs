//! Owns: when the time of members that are to leave is over, by the clock of this process: the log says until when by
//! the hub's wall clock, and what is left of that is counted by the monotonic one. A late tick moves it, and a hub that
//! starts ends nobody's membership before an operator could say a word. The same for the time of holds: a hub that
//! starts adds the time before, by the log and the wall clock.
//! Never: says what follows when a member leaves; that is the fold's.

use std::collections::BTreeMap;

use model::{ClusterId, UnixMillis};

use super::heard::{TICK_LATENESS_MILLIS, TICK_MILLIS};
use fold::{LEAVING_LONGEST_MILLIS, State};

/// A hub that starts gives a member whose time is nearly or long over so much more, in milliseconds: who wanted it to stay
/// could not say so while there was no hub.
pub const GRACE_AT_START_MILLIS: u64 = 60_000;

/// Time at which each leaving member leaves, in monotonic milliseconds.
#[derive(Debug)]
pub(super) struct Departures {
    /// Beside the recorded time, which distinguishes a later decision from an earlier one.
    due: BTreeMap<ClusterId, (UnixMillis, u64)>,
    /// Departures that another process had recorded, until they are looked at.
    at_start: BTreeMap<ClusterId, UnixMillis>,
    ticked_at: u64,
}

impl Departures {
    /// The departures of a hub that starts on this state.
    pub(super) fn of(state: &State, now: u64) -> Self {
        let leaving = state.leaving();
        Self {
            due: BTreeMap::new(),
            at_start: leaving
                .map(|(cluster, leaving)| (cluster.clone(), leaving.until))
                .collect(),
            ticked_at: now,
        }
    }

    /// An operator has a member leave at `until`, so many milliseconds from now: whatever the wall clock shows at the next
    /// tick, it has these.
    pub(super) fn ordered(&mut self, cluster: &ClusterId, until: UnixMillis, after_millis: u64, now: u64) {
        let due = now.saturating_add(after_millis.min(LEAVING_LONGEST_MILLIS));
        self.due.insert(cluster.clone(), (until, due));
    }

    /// Members whose time is over at a tick, out of those that are to leave at these times; `clock` is the wall clock.
    pub(super) fn look<'a>(
        &mut self,
        leaving: impl Iterator<Item = (&'a ClusterId, UnixMillis)>,
        clock: UnixMillis,
        now: u64,
    ) -> Vec<ClusterId> {
        let late = now.saturating_sub(self.ticked_at + TICK_MILLIS);
        let moved = if late > TICK_LATENESS_MILLIS { late } else { 0 };
        self.ticked_at = now;
        let at_start = std::mem::take(&mut self.at_start);
        let at_least = |cluster: &ClusterId, until: UnixMillis| {
            let before = at_start.get(cluster) == Some(&until);
            if before { GRACE_AT_START_MILLIS } else { 0 }
        };
        let known = std::mem::take(&mut self.due);
        for (cluster, until) in leaving {
            let due = match known.get(cluster) {
                Some((same, due)) if *same == until => due.saturating_add(moved),
                _ => {
                    // A clock that was ahead at the decision, and is not now, delays it no longer than allowed.
                    let left = until.0.saturating_sub(clock.0).min(LEAVING_LONGEST_MILLIS);
                    now.saturating_add(left.max(at_least(cluster, until)))
                }
            };
            self.due.insert(cluster.clone(), (until, due));
        }
        let over = self.due.iter().filter(|(_, (_, due))| *due <= now);
        over.map(|(cluster, _)| cluster.clone()).collect()
    }
}

/// A member on hold.
#[derive(Debug, Clone, Copy)]
struct SeenHold {
    /// The log's time of its begin, which distinguishes one hold from another.
    since: UnixMillis,
    /// For how long it was held before this process saw it, in milliseconds.
    before: u64,
    /// Time at which this process saw it first, in monotonic milliseconds.
    at: u64,
    /// It does not end before then: without a hub, nothing could come back.
    not_before: u64,
}

/// Times for which members have been on hold.
#[derive(Debug, Default)]
pub(super) struct Holds {
    seen: BTreeMap<ClusterId, SeenHold>,
    /// Holds that another process had recorded, until they are looked at.
    at_start: BTreeMap<ClusterId, UnixMillis>,
}

impl Holds {
    /// The holds of a hub that starts on this state.
    pub(super) fn of(state: &State) -> Self {
        Self {
            seen: BTreeMap::new(),
            at_start: held(state).collect(),
        }
    }

    /// Time for which each member on hold has been so, in milliseconds, for those whose hold may end; `clock` is the
    /// wall clock.
    pub(super) fn look(&mut self, state: &State, clock: UnixMillis, now: u64) -> BTreeMap<ClusterId, u64> {
        let at_start = std::mem::take(&mut self.at_start);
        let known = std::mem::take(&mut self.seen);
        for (cluster, since) in held(state) {
            let new = SeenHold {
                since,
                before: 0,
                at: now,
                not_before: now,
            };
            let seen = match known.get(&cluster) {
                Some(seen) if seen.since == since => *seen,
                _ if at_start.get(&cluster) == Some(&since) => SeenHold {
                    // Earlier rules held without an end: such a hold has its whole time from when these took over.
                    before: clock.0.saturating_sub(since.max(state.rules_since()).0),
                    not_before: now.saturating_add(GRACE_AT_START_MILLIS),
                    ..new
                },
                _ => new,
            };
            self.seen.insert(cluster, seen);
        }
        let may_go = self.seen.iter().filter(|(_, seen)| seen.not_before <= now);
        let held_for = may_go.map(|(cluster, seen)| {
            let held_for = seen.before.saturating_add(now.saturating_sub(seen.at));
            (cluster.clone(), held_for)
        });
        held_for.collect()
    }
}

/// The members on hold, each with its begin.
fn held(state: &State) -> impl Iterator<Item = (ClusterId, UnixMillis)> + '_ {
    state.members().iter().filter_map(|(cluster, member)| {
        let brake = member.taken_back().brake()?;
        Some((cluster.clone(), brake.since))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(departures: &mut Departures, until: Option<u64>, clock: u64, now: u64) -> bool {
        let east = ClusterId::new("east").unwrap();
        let leaving = until.map(|until| (&east, UnixMillis(until)));
        !departures
            .look(leaving.into_iter(), UnixMillis(clock), now)
            .is_empty()
    }

    fn departures(at_start: Option<u64>) -> Departures {
        let east = || ClusterId::new("east").unwrap();
        Departures {
            at_start: at_start
                .map(|until| (east(), UnixMillis(until)))
                .into_iter()
                .collect(),
            ..Departures::of(&State::new(), 0)
        }
    }

    #[test]
    fn a_time_is_over_when_what_was_left_of_it_has_passed_whatever_the_wall_clock_does() {
        let mut departures = departures(None);
        assert!(!look(&mut departures, Some(1_001_000), 1_000_000, 500));
        // Set forward by a day, and back again.
        assert!(!look(&mut departures, Some(1_001_000), 87_400_000, 1_000));
        assert!(look(&mut departures, Some(1_001_000), 1_000_000, 1_500));
    }

    #[test]
    fn a_later_word_counts_from_then_and_one_that_is_taken_back_is_forgotten() {
        let mut departures = departures(None);
        assert!(!look(&mut departures, Some(1_001_000), 1_000_000, 500));
        assert!(!look(&mut departures, Some(1_003_000), 1_000_500, 1_000));
        assert!(
            !look(&mut departures, Some(1_003_000), 1_001_000, 1_500),
            "the former time"
        );
        assert!(!look(&mut departures, None, 1_001_500, 2_000));
        assert!(!look(&mut departures, Some(1_003_000), 1_002_000, 2_500), "anew");
        assert!(!look(&mut departures, Some(1_003_000), 1_002_500, 3_000));
        assert!(look(&mut departures, Some(1_003_000), 1_003_000, 3_500));
    }

    #[test]
    fn a_time_that_is_over_when_the_hub_starts_is_so_a_grace_later() {
        let mut departures = departures(Some(1_000_000));
        let over = (1..).map(|tick| tick * TICK_MILLIS);
        let mut over = over.filter(|now| look(&mut departures, Some(1_000_000), 9_000_000 + now, *now));
        assert_eq!(over.next(), Some(TICK_MILLIS + GRACE_AT_START_MILLIS));
    }

    #[test]
    fn a_hub_that_was_late_moves_what_was_left() {
        let mut departures = departures(None);
        assert!(!look(&mut departures, Some(1_010_000), 1_000_000, 500));
        // Stopped for an hour, during which only one tick is its own.
        assert!(!look(&mut departures, Some(1_010_000), 4_600_500, 3_600_500));
        let over = (1..).map(|tick| 3_600_500 + tick * TICK_MILLIS);
        let mut over = over.filter(|now| look(&mut departures, Some(1_010_000), 4_600_500, *now));
        assert_eq!(over.next(), Some(500 + 10_000 + 3_600_000 - TICK_MILLIS));
    }
}
