//! Owns: whether somebody renews the Lease of a leader in kube-system (controller manager, scheduler).
//! Never: takes a leader that cannot be read, or was never seen to move, for lost: clusters of providers have none.

use std::time::Duration;

/// So long after its last renewal, as far as it was read, a leader is lost: its Lease holds 15 s.
pub const LOST_AFTER: Duration = Duration::from_secs(60);

/// A leader's Lease, as it was seen over time.
#[derive(Debug, Clone, Default)]
pub struct Leader {
    /// Its resourceVersion.
    version: Option<Box<str>>,
    /// Time at which it was seen to change.
    moved: Option<Duration>,
    /// Time at which it was last read.
    read: Duration,
}

impl Leader {
    /// Takes the Lease's resourceVersion, as it was read; `None`: there is none, or it may not be read.
    pub fn take(&mut self, now: Duration, version: Option<&str>) {
        let Some(version) = version else {
            *self = Self::default();
            return;
        };
        self.read = now;
        match &self.version {
            Some(known) if **known == *version => {}
            Some(_) => self.moved = Some(now),
            None => {}
        }
        self.version = Some(version.into());
    }

    /// Returns true if it moved once, and was read without a change for too long.
    pub fn is_lost(&self) -> bool {
        self.moved
            .is_some_and(|at| self.read.saturating_sub(at) > LOST_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_leader_that_moved_and_stands_still_for_a_minute_is_lost() {
        let mut leader = Leader::default();
        leader.take(at(0), Some("1"));
        leader.take(at(10), Some("2"));
        leader.take(at(70), Some("2"));
        assert!(!leader.is_lost());
        leader.take(at(71), Some("2"));
        assert!(leader.is_lost());
        leader.take(at(80), Some("3"));
        assert!(!leader.is_lost());
    }

    #[test]
    fn one_that_never_moved_or_is_not_there_or_cannot_be_read_is_not_observed() {
        let mut leader = Leader::default();
        leader.take(at(0), Some("1"));
        leader.take(at(900), Some("1"));
        assert!(!leader.is_lost(), "it stood still before anybody looked");
        leader.take(at(910), Some("2"));
        assert!(!leader.is_lost(), "nobody read it since");
        leader.take(at(1_000), None);
        leader.take(at(2_000), Some("2"));
        assert!(!leader.is_lost(), "it is another one");
    }
}
