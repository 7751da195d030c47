//! Owns: which hub may write the topologies of a management cluster: the one that a Lease there names. It is over when it was
//! seen unmoved for its duration, by the one monotonic time that is passed in; clocks of others are compared with nothing.
//! Never: asks a server.

use std::time::Duration;

/// Duration of a renewal: another hub takes the Lease once it has seen no change for so long.
pub const DURATION: Duration = Duration::from_secs(45);
/// Interval at which the holder renews it, and others look at it.
pub const RENEW_PERIOD: Duration = Duration::from_secs(2);
/// Longest wait for the answer to one renewal.
pub const RENEW_WAIT: Duration = Duration::from_secs(3);
/// Time after the start of its last successful renewal for which the holder may begin writes.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(8);

/// The content of a Lease.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// Its holder; empty: nobody.
    pub holder: String,
    /// Time at which the holder says that it renewed it, microseconds. Only ever compared with itself.
    pub renewed: Option<i64>,
    /// Number of times it has been taken.
    pub transitions: i32,
    /// Duration of a renewal; [`DURATION`] if it does not state one.
    pub duration: Option<Duration>,
}

/// The next step of a candidate for the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Writes its name, with this number of the hold.
    Take(i32),
    /// Waits: another hub, of this name, has it.
    Wait(String),
}

/// A candidate for the Lease, or its holder.
#[derive(Debug, Clone)]
pub struct Candidate {
    log: String,
    holder: String,
    /// True if it has not looked yet.
    is_new: bool,
    /// The last record of another holder, and since when it is unchanged.
    seen: Option<(Record, Duration)>,
}

impl Candidate {
    /// One with the log of this name. No other process has the number; one with a copy of the log has the name.
    pub fn new(log: &str, process: u64) -> Self {
        Self {
            log: log.to_owned(),
            holder: format!("{log}/{process:016x}"),
            is_new: true,
            seen: None,
        }
    }

    /// Its name.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// Looks at the Lease, at this time of a clock that only goes forward.
    pub fn look(&mut self, found: Option<&Record>, now: Duration) -> Verdict {
        let is_first = std::mem::replace(&mut self.is_new, false);
        let Some(found) = found else {
            return Verdict::Take(0);
        };
        if found.holder == self.holder {
            return Verdict::Take(found.transitions);
        }
        let next = found.transitions.saturating_add(1);
        // At a start nobody waits for the process that had this log before. One that still runs, with a copy of the log, sees
        // another name at its next renewal, and ends writing.
        let had_log = found.holder.split('/').next() == Some(self.log.as_str());
        if found.holder.is_empty() || (is_first && had_log) {
            return Verdict::Take(next);
        }
        let since = match &self.seen {
            Some((seen, since)) if seen == found => *since,
            _ => now,
        };
        self.seen = Some((found.clone(), since));
        if now.saturating_sub(since) >= found.duration.unwrap_or(DURATION) {
            return Verdict::Take(next);
        }
        Verdict::Wait(found.holder.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(holder: &str, renewed: i64) -> Record {
        Record {
            holder: holder.to_owned(),
            renewed: Some(renewed),
            transitions: 3,
            duration: None,
        }
    }

    #[test]
    fn a_lease_of_another_hub_is_taken_once_it_stood_still_for_its_duration() {
        let mut second = Candidate::new("b", 1);
        let waits = Verdict::Wait("a".to_owned());
        let second_of = Duration::from_secs;
        assert_eq!(second.look(Some(&record("a", 1)), second_of(0)), waits);
        assert_eq!(second.look(Some(&record("a", 1)), second_of(44)), waits);
        assert_eq!(
            second.look(Some(&record("a", 2)), second_of(46)),
            waits,
            "it was renewed"
        );
        assert_eq!(second.look(Some(&record("a", 2)), second_of(90)), waits);
        assert_eq!(
            second.look(Some(&record("a", 2)), second_of(91)),
            Verdict::Take(4)
        );
    }

    #[test]
    fn ones_own_and_nobodys_is_taken_at_once() {
        let mut hub = Candidate::new("b", 1);
        let own = hub.holder().to_owned();
        assert_eq!(hub.look(None, Duration::ZERO), Verdict::Take(0));
        assert_eq!(hub.look(Some(&record(&own, 1)), Duration::ZERO), Verdict::Take(3));
        assert_eq!(hub.look(Some(&record("", 1)), Duration::ZERO), Verdict::Take(4));
    }

    #[test]
    fn at_its_start_a_hub_takes_over_from_the_process_that_had_its_log_and_never_later() {
        let (mut first, mut second) = (Candidate::new("b", 1), Candidate::new("b", 2));
        assert_eq!(first.look(None, Duration::ZERO), Verdict::Take(0));
        let of_first = record(first.holder(), 1);
        assert_eq!(second.look(Some(&of_first), Duration::ZERO), Verdict::Take(4));
        let of_second = record(second.holder(), 1);
        let waits = Verdict::Wait(second.holder().to_owned());
        assert_eq!(first.look(Some(&of_second), Duration::ZERO), waits);
        let waits = Verdict::Wait(first.holder().to_owned());
        assert_eq!(second.look(Some(&of_first), Duration::ZERO), waits);
        let mut other = Candidate::new("bb", 3);
        assert_eq!(other.look(Some(&of_first), Duration::ZERO), waits);
        let before = record("b", 1);
        assert_eq!(
            Candidate::new("b", 4).look(Some(&before), Duration::ZERO),
            Verdict::Take(4),
            "a name without a process"
        );
    }

    #[test]
    fn a_lease_says_itself_how_long_it_holds() {
        let mut hub = Candidate::new("b", 1);
        let short = Record {
            duration: Some(Duration::from_secs(5)),
            ..record("a", 1)
        };
        assert_eq!(
            hub.look(Some(&short), Duration::ZERO),
            Verdict::Wait("a".to_owned())
        );
        assert_eq!(hub.look(Some(&short), Duration::from_secs(5)), Verdict::Take(4));
    }
}
