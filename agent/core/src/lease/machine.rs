//! Owns: who may take the agent's Lease: its meaning at some moment to an agent that wants it; and the times of
//! leadership. A Lease is over when it was *seen* unmoved for its duration, by the one monotonic time that is passed
//! in; what the cluster's clocks say is only compared with itself.
//! Never: says what its holder may do (`hold`).

use std::time::Duration;

use model::Epoch;

/// Duration of a Lease that does not state one.
pub const DURATION_DEFAULT: Duration = Duration::from_secs(40);
/// Duration of a renewal, as this release's holder states it: another may take the Lease once it has seen no change for
/// so long.
pub const DURATION: Duration = Duration::from_secs(6);
/// Time after the start of its last successful renewal for which the holder may write. With clocks wrong by at most
/// [`PACE_ERROR_PERCENT_MAX`] it ends at least a second before another may write.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(4);
/// Interval at which the holder renews the Lease and others look at it: a release is noticed at most this late.
pub const RETRY_PERIOD: Duration = Duration::from_secs(1);
/// By how much the pace of a monotonic clock may be wrong, in a hundred: 4 s by a slow one are over before 6 s by a
/// fast one, for 4 / 0.9 < 6 / 1.1. Clocks are a thousand times better; a paused virtual machine is not.
pub const PACE_ERROR_PERCENT_MAX: u32 = 10;
/// Longest time without an answer after which a candidate still knows that the holder could renew. The time counts from
/// one answer to the next request: a slow API server blinds nobody, one that was away was away for the holder too.
pub const BLIND_MAX: Duration = Duration::from_secs(3);
/// Shortest time that the holder has to renew after such a time, before it is replaced.
pub const RETURN_WAIT: Duration = Duration::from_secs(2);

/// The content of a Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its holder; empty: nobody.
    pub holder: Box<str>,
    /// Time at which the holder says it renewed it, in microseconds. Only ever compared with itself.
    pub renewed: Option<i64>,
    /// Duration of a renewal.
    pub duration: Duration,
    /// Number of times it has been taken.
    pub transitions: i32,
    /// The highest epoch that this cluster has known.
    pub epoch: Option<Epoch>,
    /// The holder gives it back at a clean end. One of the first release does not, and ends when another one takes it.
    pub given_back: bool,
}

impl Record {
    /// The holder did nothing between this and `other`.
    fn is_unmoved(&self, other: &Self) -> bool {
        (&self.holder, self.renewed, self.transitions) == (&other.holder, other.renewed, other.transitions)
    }
}

/// The next step of a candidate for the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Take it.
    Take {
        /// The number of this hold.
        transitions: i32,
        /// The epoch that must stand in it.
        epoch: Option<Epoch>,
    },
    /// Somebody else has it.
    Wait {
        /// The holder.
        holder: Box<str>,
        /// Time at which it is over if it does not move.
        longest: Duration,
    },
}

/// A candidate for the Lease.
#[derive(Debug, Clone)]
pub struct Candidate {
    holder: Box<str>,
    /// The last record seen, and when it was first seen.
    seen: Option<(Record, Duration)>,
    /// Time at which its last look was answered.
    answered: Option<Duration>,
    /// True once a late answer has let the holder come back first, until the Lease moves. So answers that are late again
    /// and again, or every other time, keep no dead holder in office.
    excused: bool,
    transitions: i32,
    epoch: Option<Epoch>,
}

impl Candidate {
    /// `holder` names the place, not the process: a restarted process at the same place continues at once.
    pub fn new(holder: impl Into<Box<str>>) -> Self {
        Self {
            holder: holder.into(),
            seen: None,
            answered: None,
            excused: false,
            transitions: 0,
            epoch: None,
        }
    }

    /// The name it would hold the Lease under.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// Takes the answer of `now` to a look that was asked for at `asked`, by any clock that only goes forward.
    pub fn look(&mut self, found: Option<Record>, asked: Duration, now: Duration) -> Verdict {
        let before = self.answered.replace(now);
        if let Some(found) = &found {
            self.transitions = self.transitions.max(found.transitions);
            self.epoch = self.epoch.max(found.epoch);
        }
        // Somebody deleted it under its holder, who puts it back, unless the holder is gone too.
        let standing = found.or_else(|| self.seen.as_ref().map(|(seen, _)| seen.clone()));
        let Some(standing) = standing.filter(|standing| self.is_anothers(standing)) else {
            return self.take();
        };
        let since = match &self.seen {
            Some((seen, since)) if seen.is_unmoved(&standing) => *since,
            _ => {
                self.excused = false;
                now
            }
        };
        let blind = before.is_some_and(|before| self.was_blind(before, asked, now));
        let (holder, duration) = (standing.holder.clone(), standing.duration);
        let since = if blind {
            since.max((now + RETURN_WAIT).saturating_sub(duration))
        } else {
            since
        };
        self.seen = Some((standing, since));
        let waited = now.saturating_sub(since);
        match duration.checked_sub(waited) {
            Some(longest) if !longest.is_zero() => Verdict::Wait { holder, longest },
            _ => self.take(),
        }
    }

    /// Returns true when the holder may have had no way to renew until now. A late answer may come from an API server
    /// that hung for everybody: the holder may come back first, once while its Lease does not move.
    fn was_blind(&mut self, before: Duration, asked: Duration, now: Duration) -> bool {
        let unanswered = asked.saturating_sub(before) > BLIND_MAX;
        let is_late = now.saturating_sub(asked) > BLIND_MAX;
        unanswered || (is_late && !std::mem::replace(&mut self.excused, true))
    }

    /// Returns true if another agent holds it. An agent of the first release leaves its name in the Lease after a clean
    /// end, so its record does not count.
    fn is_anothers(&self, record: &Record) -> bool {
        !record.holder.is_empty() && record.holder != self.holder && record.given_back
    }

    fn take(&self) -> Verdict {
        Verdict::Take {
            transitions: self.transitions.saturating_add(1),
            epoch: self.epoch,
        }
    }
}

#[cfg(test)]
mod tests;
