//! Owns: which identity Leases are left over from processes that are gone: those that were seen unmoved for an hour and
//! are over by their own word. Time is an argument, by one monotonic clock.
//! Never: deletes one, or says who lives: a Lease that is not moved is no proof that anybody died.

use std::{collections::BTreeMap, time::Duration};

/// So long a Lease of a process was seen to stand still, at least, before it goes: people see who was there.
pub(super) const COLLECT_AFTER: Duration = Duration::from_secs(60 * 60);

/// An identity Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    /// Its resourceVersion, or anything that differs in every version.
    pub(super) version: Box<str>,
    /// True if it is over by its own times and the observer's clock. A Lease without times counts from its creation.
    pub(super) is_over: bool,
}

/// An observer of the identity Leases of others.
#[derive(Debug, Clone, Default)]
pub(super) struct Collector(BTreeMap<Box<str>, (Box<str>, Duration)>);

impl Collector {
    /// The names of those to delete, of all that were found `now`; never `own`.
    pub(super) fn look(
        &mut self,
        found: &BTreeMap<Box<str>, Identity>,
        own: &str,
        now: Duration,
    ) -> Vec<Box<str>> {
        let before = std::mem::take(&mut self.0);
        let mut left_over = Vec::new();
        for (name, lease) in found.iter().filter(|(name, _)| ***name != *own) {
            let since = match before.get(name) {
                Some((version, since)) if *version == lease.version => *since,
                _ => now,
            };
            let unmoved = now.saturating_sub(since) >= COLLECT_AFTER;
            if unmoved && lease.is_over {
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

    fn found(version: &str, is_over: bool) -> BTreeMap<Box<str>, Identity> {
        let lease = Identity {
            version: version.into(),
            is_over,
        };
        [("other".into(), lease)].into()
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn one_that_was_seen_unmoved_for_an_hour_and_says_so_goes() {
        let mut collector = Collector::default();
        assert!(collector.look(&found("1", true), "own", at(0)).is_empty());
        assert!(collector.look(&found("1", true), "own", at(3_599)).is_empty());
        assert_eq!(
            collector.look(&found("1", true), "own", at(3_600)),
            ["other".into()]
        );
    }

    /// Clocks of the processes may be hours apart, in either direction.
    #[test]
    fn one_that_moves_or_is_not_over_by_its_own_word_stays() {
        let mut collector = Collector::default();
        for hour in 0..9_u64 {
            let moving = found(&hour.to_string(), true);
            assert!(collector.look(&moving, "own", at(hour * 3_600)).is_empty());
        }
        let mut collector = Collector::default();
        for hour in 0..9 {
            let found = found("1", false);
            assert!(collector.look(&found, "own", at(hour * 3_600)).is_empty());
        }
    }

    #[test]
    fn its_own_never_goes_and_one_that_came_again_counts_anew() {
        let mut collector = Collector::default();
        for hour in 0..3 {
            assert!(
                collector
                    .look(&found("1", true), "other", at(hour * 3_600))
                    .is_empty()
            );
        }
        let mut collector = Collector::default();
        collector.look(&found("1", true), "own", at(0));
        collector.look(&BTreeMap::new(), "own", at(1_800));
        assert!(collector.look(&found("1", true), "own", at(3_600)).is_empty());
    }
}
