//! Owns: which identity Leases are left over from processes that are gone: those that were seen unmoved for an hour and
//! that say so themselves. Time is an argument, by one monotonic clock and, beside it, by the cluster's.
//! Never: deletes one, or says who lives: a Lease that is not moved is no proof that anybody died.

use std::{collections::BTreeMap, time::Duration};

/// So long a Lease of a process stays after its last renewal, at least, for people to see who was there.
pub const COLLECT_AFTER: Duration = Duration::from_secs(60 * 60);

/// An identity Lease as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its resourceVersion, or anything that differs in every version.
    pub version: Box<str>,
    /// Since when it is over by the times in it and the clock of whoever looks; absent when it is not. One that says no
    /// time counts from its creation.
    pub over_since: Option<Duration>,
}

/// One who looks at the identity Leases of others.
#[derive(Debug, Clone, Default)]
pub struct Collector(BTreeMap<Box<str>, (Box<str>, Duration)>);

impl Collector {
    /// The names of those to delete, of all that were found `now`; never `own`.
    pub fn look(&mut self, found: &BTreeMap<Box<str>, Identity>, own: &str, now: Duration) -> Vec<Box<str>> {
        let before = std::mem::take(&mut self.0);
        let mut left_over = Vec::new();
        for (name, lease) in found.iter().filter(|(name, _)| ***name != *own) {
            let since = match before.get(name) {
                Some((version, since)) if *version == lease.version => *since,
                _ => now,
            };
            let unmoved = now.saturating_sub(since) >= COLLECT_AFTER;
            if unmoved && lease.over_since.is_some_and(|over| over >= COLLECT_AFTER) {
                left_over.push(name.clone());
            }
            self.0.insert(name.clone(), (lease.version.clone(), since));
        }
        left_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(version: &str, over: Option<u64>) -> BTreeMap<Box<str>, Identity> {
        let lease = Identity {
            version: version.into(),
            over_since: over.map(Duration::from_secs),
        };
        [("other".into(), lease)].into()
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn one_that_was_seen_unmoved_for_an_hour_and_says_so_goes() {
        let mut collector = Collector::default();
        assert!(collector.look(&found("1", Some(9_000)), "own", at(0)).is_empty());
        assert!(
            collector
                .look(&found("1", Some(9_000)), "own", at(3_599))
                .is_empty()
        );
        assert_eq!(
            collector.look(&found("1", Some(9_000)), "own", at(3_600)),
            ["other".into()]
        );
    }

    /// Clocks of the processes may be hours apart, in either direction.
    #[test]
    fn one_that_moves_or_is_not_over_by_its_own_word_stays() {
        let mut collector = Collector::default();
        for hour in 0..9_u64 {
            let moving = found(&hour.to_string(), Some(90_000));
            assert!(collector.look(&moving, "own", at(hour * 3_600)).is_empty());
        }
        let mut collector = Collector::default();
        for hour in 0..9 {
            for over in [None, Some(3_599)] {
                assert!(
                    collector
                        .look(&found("1", over), "own", at(hour * 3_600))
                        .is_empty()
                );
            }
        }
    }

    #[test]
    fn its_own_never_goes_and_one_that_came_again_counts_anew() {
        let mut collector = Collector::default();
        for hour in 0..3 {
            assert!(
                collector
                    .look(&found("1", Some(9_000)), "other", at(hour * 3_600))
                    .is_empty()
            );
        }
        let mut collector = Collector::default();
        collector.look(&found("1", Some(9_000)), "own", at(0));
        collector.look(&BTreeMap::new(), "own", at(1_800));
        assert!(
            collector
                .look(&found("1", Some(9_000)), "own", at(3_600))
                .is_empty()
        );
    }
}
