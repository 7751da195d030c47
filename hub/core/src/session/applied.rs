//! Progress of a member's cluster, as its session knows: the changes sent and when they were recorded, and the member's
//! reports. Pure: it believes nothing about anybody else, and only figures come from it.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use model::{Revision, ServiceKey, sync::Applied};

use crate::push::ToldChanges;

/// Most told positions that wait for the member's word; beyond, the newest two are one.
pub const CHANGES_WAITING_MAX: usize = 64;

/// The progress, in monotonic milliseconds of the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Everything up to here is applied, but for parked services; `None`: it has not said.
    pub revision: Option<Revision>,
    /// Time from the record of the last change that concerned it to its report that it is applied.
    pub took_millis: Option<u64>,
    /// Time at which the oldest change was recorded that it was told of and does not say to have applied.
    pub waits_since: Option<u64>,
    /// Services that it cannot bring to what was sent.
    pub parked: u32,
    /// Since when the first of them is.
    pub parked_since: Option<u64>,
}

/// One session's knowledge.
#[derive(Debug, Default)]
pub struct Following {
    waiting: VecDeque<ToldChanges>,
    standing: Standing,
    parked: Arc<BTreeSet<ServiceKey>>,
}

impl Following {
    /// The member was told a position after changes.
    pub fn told(&mut self, changes: ToldChanges) {
        let is_full = self.waiting.len() >= CHANGES_WAITING_MAX;
        match self.waiting.back_mut().filter(|_| is_full) {
            Some(newest) => newest.revision = changes.revision,
            None => self.waiting.push_back(changes),
        }
        self.wait();
    }

    /// The member reports its position; returns how long each change took, in milliseconds. The position was told to
    /// it, which the caller has checked.
    pub fn heard(&mut self, applied: &Applied, now: u64) -> Vec<u64> {
        let mut took = Vec::new();
        if let Some(cursor) = applied.cursor {
            self.standing.revision = Some(cursor.revision);
            let stands = |changes: &mut ToldChanges| changes.revision <= cursor.revision;
            while let Some(changes) = self.waiting.pop_front_if(stands) {
                took.push(now.saturating_sub(changes.recorded_at));
            }
        }
        self.standing.took_millis = took.last().copied().or(self.standing.took_millis);
        self.standing.parked = applied.parked;
        if *self.parked != applied.parked_services {
            self.parked = Arc::new(applied.parked_services.clone());
        }
        let parked_since = now.saturating_sub(applied.oldest_parked_age_millis);
        self.standing.parked_since = (applied.parked > 0).then_some(parked_since);
        self.wait();
        took
    }

    fn wait(&mut self) {
        self.standing.waits_since = self.waiting.front().map(|changes| changes.recorded_at);
    }

    /// The services that it named as parked.
    pub fn parked(&self) -> &Arc<BTreeSet<ServiceKey>> {
        &self.parked
    }

    /// The progress now.
    pub fn standing(&self) -> Standing {
        self.standing
    }
}

#[cfg(test)]
mod tests {
    use model::Cursor;

    use super::*;

    fn told(revision: u64, recorded_at: u64) -> ToldChanges {
        ToldChanges {
            revision: Revision(revision),
            recorded_at,
        }
    }

    fn up_to(revision: u64) -> Applied {
        let cursor = Cursor {
            revision: Revision(revision),
            ..Cursor::default()
        };
        Applied {
            cursor: Some(cursor),
            ..Applied::default()
        }
    }

    #[test]
    fn a_change_took_from_its_recording_until_the_member_said_that_it_stands() {
        let mut following = Following::default();
        following.told(told(5, 1_000));
        following.told(told(7, 1_200));
        following.told(told(9, 1_300));
        assert_eq!(following.standing().waits_since, Some(1_000));
        assert!(following.heard(&up_to(4), 1_400).is_empty());
        assert_eq!(following.heard(&up_to(8), 1_500), [500, 300]);
        let standing = following.standing();
        assert_eq!(
            (standing.revision, standing.took_millis, standing.waits_since),
            (Some(Revision(8)), Some(300), Some(1_300))
        );
        assert!(following.heard(&Applied::default(), 1_600).is_empty());
        assert_eq!(
            following.standing(),
            standing,
            "a word without a position takes none back"
        );
        assert_eq!(following.heard(&up_to(9), 1_700), [400]);
        assert_eq!(following.standing().waits_since, None);
    }

    #[test]
    fn a_member_that_says_nothing_costs_a_bounded_number_and_its_oldest_is_kept() {
        let mut following = Following::default();
        for revision in 1..=10 * CHANGES_WAITING_MAX as u64 {
            following.told(told(revision, revision));
        }
        assert_eq!(following.waiting.len(), CHANGES_WAITING_MAX);
        assert_eq!(following.standing().waits_since, Some(1));
        let all = 10 * CHANGES_WAITING_MAX as u64;
        let before_last = following.heard(&up_to(all - 1), all);
        assert_eq!(
            before_last.len(),
            CHANGES_WAITING_MAX - 1,
            "the newest hold the last"
        );
        assert_eq!(
            following.heard(&up_to(all), all),
            [all - CHANGES_WAITING_MAX as u64]
        );
    }

    #[test]
    fn an_age_becomes_a_time_of_the_hubs_clock() {
        let mut following = Following::default();
        let parked = Applied {
            parked: 2,
            oldest_parked_age_millis: 700,
            ..Applied::default()
        };
        following.heard(&parked, 1_000);
        assert_eq!(following.standing().parked_since, Some(300));
        following.heard(&parked, 500);
        assert_eq!(following.standing().parked_since, Some(0), "older than the hub");
        following.heard(&Applied::default(), 2_000);
        assert_eq!(following.standing().parked_since, None);
    }
}
