//! Owns: which Leases of source clusters have expired for this agent: those that it saw unmoved, look by look, for
//! their whole time, by one monotonic clock. Times in a Lease are only compared with themselves.
//! Never: asks an API server, renews anything, or removes what came from a source.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use model::{ClusterId, policy::LossAction};

/// Longest time between the answer to one look and the next look, in usual waits between two looks. After a longer gap
/// an agent does not know whether anybody could have renewed a Lease, and waits again.
const BLIND_LOOKS: u32 = 3;

/// The version of a Lease: any write to a Lease changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Its uid.
    pub uid: Box<str>,
    /// Its resourceVersion.
    pub version: Box<str>,
}

/// The Lease of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLease {
    /// Its version.
    pub stamp: Stamp,
    /// Duration that it states.
    pub duration: Duration,
    /// Action on the source's slices; absent if the Lease states none, or an unknown one.
    pub on_expiry: Option<LossAction>,
}

/// A Lease that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    /// Action on the source's slices: never [`LossAction::Retain`].
    pub action: LossAction,
    /// As it was seen all the time.
    pub stamp: Stamp,
}

#[derive(Debug, Clone)]
struct Seen {
    stamp: Stamp,
    /// Time at which it was first seen like that, by one who has looked ever since.
    since: Duration,
    /// It stays so until it moves.
    over: bool,
    /// Half of its time has passed, in which it should have been renewed.
    late: bool,
}

/// One look at the Leases. Times are by any clock that only goes forward.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Time at which the Leases were asked for.
    pub asked: Duration,
    /// Time at which they were there.
    pub answered: Duration,
    /// True if this agent itself wrote a Lease since the look before: if it could not write, nobody could renew the
    /// Leases of sources.
    pub could_write: bool,
}

/// An observer of the Leases.
#[derive(Debug, Clone)]
pub struct Judge {
    duration_least: Duration,
    blind_after: Duration,
    answered: Option<Duration>,
    seen: BTreeMap<ClusterId, Seen>,
}

impl Judge {
    /// It waits for `duration_least` at least, whatever a Lease says, and means to look every `look_every`.
    pub fn new(duration_least: Duration, look_every: Duration) -> Self {
        Self {
            duration_least,
            blind_after: look_every * BLIND_LOOKS,
            answered: None,
            seen: BTreeMap::new(),
        }
    }

    /// Time at which the last look was answered.
    pub fn answered(&self) -> Option<Duration> {
        self.answered
    }

    /// The sources whose Leases were not over at the last look, and had not moved for half of their time or longer: a
    /// renewal is due twice in a Lease's time.
    pub fn late(&self) -> impl Iterator<Item = &ClusterId> {
        let late = self.seen.iter().filter(|(_, seen)| seen.late);
        late.map(|(cluster, _)| cluster)
    }

    /// Takes all Leases as a look found them, and says which are over. Lease of a source in `kept` never counts: this
    /// agent itself would renew it, though the API server may refuse that.
    pub fn look(
        &mut self,
        found: &BTreeMap<ClusterId, SourceLease>,
        kept: &BTreeSet<ClusterId>,
        look: Look,
    ) -> BTreeMap<ClusterId, Over> {
        let now = look.answered;
        let before = self.answered.replace(now);
        let unanswered = before.is_some_and(|before| look.asked.saturating_sub(before) > self.blind_after);
        let blind = unanswered || !look.could_write;
        let mut before = std::mem::take(&mut self.seen);
        let mut over = BTreeMap::new();
        for (cluster, lease) in found {
            let unmoved = |seen: &Seen| seen.stamp == lease.stamp && !kept.contains(cluster);
            let mut seen = match before.remove(cluster).filter(unmoved) {
                Some(seen) if seen.over || !blind => seen,
                _ => Seen {
                    stamp: lease.stamp.clone(),
                    since: now,
                    over: false,
                    late: false,
                },
            };
            let whole_time = lease.duration.max(self.duration_least);
            let unmoved_for = now.saturating_sub(seen.since);
            seen.over |= unmoved_for >= whole_time;
            let action = lease.on_expiry.filter(|action| *action != LossAction::Retain);
            seen.late = action.is_some() && !seen.over && unmoved_for >= whole_time / 2;
            if let (true, Some(action)) = (seen.over, action) {
                let stamp = lease.stamp.clone();
                over.insert(cluster.clone(), Over { action, stamp });
            }
            self.seen.insert(cluster.clone(), seen);
        }
        over
    }
}

#[cfg(test)]
mod tests;
