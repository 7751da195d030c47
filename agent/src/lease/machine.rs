//! Who may work in a cluster: what the agent's Lease, as it is seen at some moment, means to an agent that wants it
//! and to one that holds it. It knows no clock of the cluster's: a Lease is over when it was *seen* unmoved for its
//! duration, by the one time that is passed in.

use std::time::Duration;

use shared::model::Epoch;

/// How long a renewal holds if the Lease does not say.
pub const DURATION_DEFAULT: Duration = Duration::from_secs(40);

/// A Lease as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty: nobody.
    pub holder: Box<str>,
    /// When the holder says it renewed it, in microseconds. Only ever compared with itself.
    pub renewed: Option<i64>,
    /// How long a renewal holds.
    pub duration: Duration,
    /// How often it has been taken.
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

/// What there is to do for one who wants the Lease.
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
        /// Who.
        holder: Box<str>,
        /// When it is over if it does not move.
        longest: Duration,
    },
}

/// One who wants the Lease.
#[derive(Debug, Clone)]
pub struct Candidate {
    holder: Box<str>,
    /// What was seen, and when it was first seen like that.
    seen: Option<(Record, Duration)>,
    transitions: i32,
    epoch: Option<Epoch>,
}

impl Candidate {
    /// `holder` names the place, not the process: whoever comes again at the same place goes on at once.
    pub fn new(holder: impl Into<Box<str>>) -> Self {
        Self {
            holder: holder.into(),
            seen: None,
            transitions: 0,
            epoch: None,
        }
    }

    /// The name it would hold the Lease under.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// Looks at the Lease as it is `now`, by any clock that only goes forward.
    pub fn look(&mut self, found: Option<Record>, now: Duration) -> Verdict {
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
            _ => now,
        };
        let (holder, duration) = (standing.holder.clone(), standing.duration);
        self.seen = Some((standing, since));
        let waited = now.saturating_sub(since);
        match duration.checked_sub(waited) {
            Some(longest) if !longest.is_zero() => Verdict::Wait { holder, longest },
            _ => self.take(),
        }
    }

    /// Who waited for an agent of the first release would wait after every clean end of one.
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

/// What the Lease says to the one who took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is held as it was taken.
    Held,
    /// It was deleted or emptied by somebody: it is to be put back.
    Gone,
    /// Somebody else took it, under this name; it may be a newer start at the same place.
    Lost(Box<str>),
}

/// How the hold number `transitions` of `holder` stands.
pub fn standing(holder: &str, transitions: i32, found: Option<&Record>) -> Standing {
    match found {
        None => Standing::Gone,
        Some(found) if found.holder.is_empty() && found.transitions <= transitions => Standing::Gone,
        Some(found) if *found.holder == *holder && found.transitions == transitions => Standing::Held,
        Some(found) => Standing::Lost(found.holder.clone()),
    }
}

#[cfg(test)]
mod tests;
