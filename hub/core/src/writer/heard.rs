//! Failure detector: the silence of each member. Time is an argument; a late tick of the hub's own moves every
//! deadline.

use std::collections::BTreeMap;

use model::ClusterId;

/// Interval of checking deadlines, in milliseconds.
pub const TICK_MILLIS: u64 = 500;
/// A tick that is later than this is the hub's own fault and is given to the members, in milliseconds.
pub(super) const TICK_LATENESS_MILLIS: u64 = 250;

/// After a goodbye of its agent a member is taken to be there for so long, in milliseconds: a rollout, a drain, or a move to
/// another node ends before.
pub(super) const GOODBYE_MILLIS: u64 = 10 * 60 * 1_000;

/// A hub that takes the lead from another gives every member so much more, in milliseconds: all of them connect again at
/// once.
pub(super) const TAKEOVER_GRACE_MILLIS: u64 = 10_000;

/// Time at which each member was last heard, in monotonic milliseconds.
#[derive(Debug)]
pub(super) struct Heard {
    started_at: u64,
    /// Time at which every member was given its full time before withdrawal again.
    time_given_at: u64,
    ticked_at: u64,
    at: BTreeMap<ClusterId, u64>,
    /// Members whose agents said goodbye, and until when that counts.
    away: BTreeMap<ClusterId, u64>,
}

impl Heard {
    /// A hub that starts gives every member a fresh grace period.
    pub(super) fn new(now: u64) -> Self {
        Self {
            started_at: now,
            time_given_at: now,
            ticked_at: now,
            at: BTreeMap::new(),
            away: BTreeMap::new(),
        }
    }

    /// Another hub led until now: members need longer to come than after a restart.
    pub(super) fn takes_over(&mut self, now: u64) {
        self.started_at = now + TAKEOVER_GRACE_MILLIS;
        self.time_given_at = self.started_at;
    }

    /// A sign of life.
    pub(super) fn heard(&mut self, cluster: &ClusterId, at: u64) {
        // The last sign of life of a session counts before its goodbye ends.
        if self
            .away
            .get(cluster)
            .is_some_and(|until| at + GOODBYE_MILLIS > *until)
        {
            self.away.remove(cluster);
        }
        match self.at.get_mut(cluster) {
            Some(known) => *known = at.max(*known),
            None => {
                self.at.insert(cluster.clone(), at);
            }
        }
    }

    /// It has a session: an earlier agent's goodbye does not count any more, even of the same moment.
    pub(super) fn came(&mut self, cluster: &ClusterId, at: u64) {
        self.away.remove(cluster);
        self.heard(cluster, at);
    }

    /// Its session ended.
    pub(super) fn left(&mut self, cluster: &ClusterId, heard_at: u64) {
        self.heard(cluster, heard_at);
    }

    /// Its agent said that it shuts down.
    pub(super) fn said_goodbye(&mut self, cluster: &ClusterId, at: u64) {
        self.heard(cluster, at);
        self.away.insert(cluster.clone(), at + GOODBYE_MILLIS);
    }

    /// It is no member any more.
    pub(super) fn forget(&mut self, cluster: &ClusterId) {
        self.away.remove(cluster);
        self.at.remove(cluster);
    }

    /// Deadlines are looked at.
    pub(super) fn tick(&mut self, now: u64) {
        let late = now.saturating_sub(self.ticked_at + TICK_MILLIS);
        if late > TICK_LATENESS_MILLIS {
            self.started_at += late;
            self.time_given_at = (self.time_given_at + late).min(now);
            self.at.values_mut().for_each(|at| *at = (*at + late).min(now));
            self.away.values_mut().for_each(|until| *until += late);
        }
        self.ticked_at = now;
    }

    /// Too many were silent at one time, and fewer are now: each silent one has its full time until its withdrawal.
    pub(super) fn give_time(&mut self, now: u64) {
        self.time_given_at = now;
    }

    /// The part of the time until its withdrawal that has passed.
    pub(super) fn overdue(&self, cluster: &ClusterId, now: u64) -> u64 {
        let since_given = now.saturating_sub(self.time_given_at);
        self.silence(cluster, now).min(since_given)
    }

    /// Silence of a member; after a goodbye, counted from the end of its grace.
    pub(super) fn silence(&self, cluster: &ClusterId, now: u64) -> u64 {
        let at = self.at.get(cluster).copied().unwrap_or(self.started_at);
        let away = self.away.get(cluster).copied().unwrap_or_default();
        now.saturating_sub(at.max(away))
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
    fn after_a_goodbye_a_member_is_not_silent_for_a_while() {
        let east = ClusterId::new("east").unwrap();
        let mut heard = Heard::new(0);
        heard.said_goodbye(&east, 5_000);
        heard.left(&east, 5_000);
        assert_eq!(heard.silence(&east, 5_000 + GOODBYE_MILLIS), 0);
        assert_eq!(heard.silence(&east, 5_003 + GOODBYE_MILLIS), 3);
        heard.heard(&east, 6_000);
        assert_eq!(heard.silence(&east, 9_000), 3_000, "it is back");
        heard.said_goodbye(&east, 9_000);
        heard.came(&east, 9_000);
        assert_eq!(
            heard.silence(&east, 9_500),
            500,
            "another agent is, in that very moment"
        );
    }

    #[test]
    fn time_that_is_given_counts_until_a_withdrawal_and_changes_no_silence() {
        let east = ClusterId::new("east").unwrap();
        let mut heard = Heard::new(0);
        heard.heard(&east, 500);
        assert_eq!(heard.overdue(&east, 60_000), 59_500);
        heard.give_time(60_000);
        assert_eq!(heard.overdue(&east, 60_300), 300);
        assert_eq!(heard.silence(&east, 60_300), 59_800);
        heard.heard(&east, 61_000);
        assert_eq!(heard.overdue(&east, 61_100), 100);
        let mut late = Heard::new(0);
        late.give_time(100);
        late.tick(60_000);
        assert_eq!(
            late.overdue(&east, 60_000),
            400,
            "the hub's own fault is nobody's"
        );
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
