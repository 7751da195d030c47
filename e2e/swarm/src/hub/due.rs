//! Owns: the law on what ends after a time: memberships of members that are to leave, and holds. An own count of these
//! times by the monotonic clock, from what is in the writer's state before and after each of its works.
//! Never: reads the wall clock, but to know that it was set.

use std::collections::{BTreeMap, BTreeSet};

use fold::State;
use hub_core::{
    clock::Moment,
    writer::{GRACE_AT_START_MILLIS, TICK_MILLIS},
};
use model::{ClusterId, UnixMillis};

use oracle::laws::Law;

/// The time until a member leaves.
#[derive(Debug, Clone, Copy)]
struct Departure {
    /// The log's time of its end, which distinguishes it from others.
    until: UnixMillis,
    /// It does not leave before.
    not_before: u64,
    /// It leaves at the first tick from then on; nobody knows when, if another process began to count.
    at_last: Option<u64>,
    /// The wall clock was set since.
    jumped: bool,
}

/// The time of a hold.
#[derive(Debug, Clone, Copy)]
struct Hold {
    /// The log's time of its begin, which distinguishes it from others.
    since: UnixMillis,
    /// When it began, or when this process took it up.
    at: u64,
    /// Another process began to count.
    taken_up: bool,
    /// The first tick that saw it.
    ticked: Option<u64>,
    /// The wall clock was set since.
    jumped: bool,
}

/// The times that run in one process.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// Decisions, by member and the log's time of its end: when they were, and after how many milliseconds it is to leave.
    ordered: BTreeMap<(ClusterId, UnixMillis), (u64, u64)>,
    departures: BTreeMap<ClusterId, Departure>,
    holds: BTreeMap<ClusterId, Hold>,
    ticked_at: u64,
    /// By how much the wall clock is ahead of the monotonic one.
    wall_ahead: u64,
    guarded: u64,
}

/// The members on hold before a tick with exports on hold, and for how long the policy holds them.
#[derive(Debug)]
pub(super) struct Before {
    held: BTreeSet<ClusterId>,
    longest: Option<u64>,
}

impl Before {
    pub(super) fn of(state: &State) -> Self {
        let brake = state.brake();
        let with_exports = |cluster: &ClusterId| {
            let member = state.current_member(cluster);
            member.is_some_and(|member| member.taken_back().held_exports().next().is_some())
        };
        let held = holds(state).map(|(cluster, _)| cluster);
        Self {
            held: held.filter(with_exports).collect(),
            longest: brake.longest_millis.filter(|_| brake.enabled),
        }
    }
}

impl Due {
    /// The times that a process takes up which starts on this state.
    pub(super) fn of(state: &State, at: Moment) -> Self {
        let now = at.now();
        let departures = departures(state).map(|(cluster, until)| {
            let taken_up = Departure {
                until,
                not_before: now + GRACE_AT_START_MILLIS,
                at_last: None,
                jumped: false,
            };
            (cluster, taken_up)
        });
        let holds = holds(state).map(|(cluster, since)| {
            let taken_up = Hold {
                since,
                at: now,
                taken_up: true,
                ticked: None,
                jumped: false,
            };
            (cluster, taken_up)
        });
        Self {
            departures: departures.collect(),
            holds: holds.collect(),
            ticked_at: now,
            wall_ahead: ahead(at),
            ..Self::default()
        }
    }

    /// An operator has a member leave after so many milliseconds.
    pub(super) fn ordered(&mut self, cluster: &ClusterId, after_millis: u64, at: Moment) {
        let until = UnixMillis(at.wall.0 + after_millis);
        self.ordered
            .insert((cluster.clone(), until), (at.now(), after_millis));
    }

    /// Number of times that ended after the wall clock was set, since the last question.
    pub(super) fn take_guarded(&mut self) -> u64 {
        std::mem::take(&mut self.guarded)
    }

    /// The writer took something: a tick, with what was before it, while it served, or anything else.
    pub(super) fn looked(&mut self, timed: Option<&Before>, state: &State, at: Moment) -> Result<(), String> {
        let ticked = timed.map_or(Ok(()), |before| self.ticked(before, state, at));
        self.took(state, at);
        ticked
    }

    /// Times begin, or are over by a decision.
    fn took(&mut self, state: &State, at: Moment) {
        self.clock_was_set(at);
        let now = at.now();
        let known = std::mem::take(&mut self.departures);
        for (cluster, until) in departures(state) {
            let order = self.ordered.get(&(cluster.clone(), until)).copied();
            let (ordered_at, after) = order.unwrap_or((now, 0));
            let new = Departure {
                until,
                not_before: ordered_at + after,
                at_last: order.map(|_| now + after),
                jumped: false,
            };
            let same = known.get(&cluster).filter(|known| known.until == until);
            self.departures.insert(cluster, same.copied().unwrap_or(new));
        }
        let known = std::mem::take(&mut self.holds);
        for (cluster, since) in holds(state) {
            let new = Hold {
                since,
                at: now,
                taken_up: false,
                ticked: None,
                jumped: false,
            };
            let same = known.get(&cluster).filter(|known| known.since == since);
            self.holds.insert(cluster, same.copied().unwrap_or(new));
        }
    }

    fn clock_was_set(&mut self, at: Moment) {
        if std::mem::replace(&mut self.wall_ahead, ahead(at)) != ahead(at) {
            (self.departures.values_mut()).for_each(|departure| departure.jumped = true);
            self.holds.values_mut().for_each(|hold| hold.jumped = true);
        }
    }

    /// **What ends after a time ends then, whatever the wall clock shows**: the writer serves, has looked at the time, and
    /// has this state now.
    fn ticked(&mut self, before: &Before, after: &State, at: Moment) -> Result<(), String> {
        self.clock_was_set(at);
        let now = at.now();
        let late = now.saturating_sub(self.ticked_at + TICK_MILLIS);
        self.ticked_at = now;
        for departure in self.departures.values_mut() {
            departure.at_last = departure.at_last.map(|last| last + late);
        }
        let departed = self.departures_ended(after, now);
        let released = before
            .longest
            .map_or(Ok(()), |longest| self.holds_ended((before, longest), after, now));
        departed.and(released).map_err(|why| Law::Due.broken(why))
    }

    fn departures_ended(&mut self, after: &State, now: u64) -> Result<(), String> {
        for (cluster, departure) in &self.departures {
            let is_member = after.current_member(cluster).is_some();
            if !is_member && now < departure.not_before {
                let left = departure.not_before - now;
                return Err(format!("{cluster} left, and was to have {left} ms more"));
            }
            if is_member && departure.at_last.is_some_and(|last| last <= now) {
                return Err(format!("{cluster} was to leave by now"));
            }
            self.guarded += u64::from(!is_member && departure.jumped);
        }
        Ok(())
    }

    fn holds_ended(
        &mut self,
        (before, longest): (&Before, u64),
        after: &State,
        now: u64,
    ) -> Result<(), String> {
        let still: BTreeSet<ClusterId> = holds(after).map(|(cluster, _)| cluster).collect();
        let looked_at =
            |cluster: &ClusterId| before.held.contains(cluster) && after.current_member(cluster).is_some();
        for (cluster, hold) in self.holds.iter_mut().filter(|(cluster, _)| looked_at(cluster)) {
            let ticked = *hold.ticked.get_or_insert(now);
            let is_held = still.contains(cluster);
            let least = if hold.taken_up {
                GRACE_AT_START_MILLIS
            } else {
                longest
            };
            if !is_held && now < hold.at + least {
                let left = hold.at + least - now;
                return Err(format!(
                    "{cluster} is on hold no more, and was to be for {left} ms"
                ));
            }
            if is_held && !hold.taken_up && ticked + longest <= now {
                return Err(format!("{cluster} was to be on hold for {longest} ms at most"));
            }
            self.guarded += u64::from(!is_held && hold.jumped);
        }
        Ok(())
    }
}

fn ahead(at: Moment) -> u64 {
    at.wall.0.saturating_sub(at.now())
}

fn departures(state: &State) -> impl Iterator<Item = (ClusterId, UnixMillis)> + '_ {
    let leaving = state.leaving();
    leaving.map(|(cluster, leaving)| (cluster.clone(), leaving.until))
}

fn holds(state: &State) -> impl Iterator<Item = (ClusterId, UnixMillis)> + '_ {
    state.members().iter().filter_map(|(cluster, member)| {
        let brake = member.taken_back().brake()?;
        Some((cluster.clone(), brake.since))
    })
}
