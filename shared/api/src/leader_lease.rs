//! Owns: a Lease that says which process leads: the parts that are read of it, and how a holder writes itself into it.
//! Never: decides who may hold it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube_core::ObjectMeta;

/// The present hold of a Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Its holder; empty: nobody.
    pub holder: String,
    /// Time at which the holder says that it renewed it, in microseconds. Only ever compared with itself.
    pub renewed: Option<i64>,
    /// Duration of a renewal, if the Lease states one.
    pub duration: Option<Duration>,
    /// Number of times it has been taken.
    pub transitions: i32,
}

impl Hold {
    /// Reads the hold of a Lease.
    pub fn of(lease: &Lease) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        let seconds = spec.lease_duration_seconds;
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            holder: spec.holder_identity.unwrap_or_default(),
            renewed: spec.renew_time.map(|time| time.0.as_microsecond()),
            duration: seconds.map(Duration::from_secs),
            transitions: spec.lease_transitions.unwrap_or(0),
        }
    }
}

/// A Lease of this name that nobody has held.
pub fn blank(name: &str) -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        spec: None,
    }
}

/// Renews the Lease for `holder`; an empty one releases it. The time at which it was taken stays for as long as the number
/// of the hold does.
pub fn hold(lease: &mut Lease, holder: &str, transitions: i32, duration: Duration, now: Timestamp) {
    let now = MicroTime(now);
    let before = lease.spec.take().unwrap_or_default();
    let goes_on = before.lease_transitions == Some(transitions);
    lease.spec = Some(LeaseSpec {
        acquire_time: before
            .acquire_time
            .filter(|_| goes_on)
            .or_else(|| Some(now.clone())),
        renew_time: Some(now),
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: i32::try_from(duration.as_secs()).ok(),
        lease_transitions: Some(transitions),
        ..LeaseSpec::default()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_reads_back_and_keeps_the_time_at_which_it_was_taken() {
        let acquired = |lease: &Lease| lease.spec.clone().and_then(|spec| spec.acquire_time);
        let at = |second| Timestamp::from_second(second).expect("a time");
        let mut lease = blank("lead");
        hold(&mut lease, "east", 3, Duration::from_secs(6), at(10));
        let read = Hold {
            holder: "east".to_owned(),
            renewed: Some(10_000_000),
            duration: Some(Duration::from_secs(6)),
            transitions: 3,
        };
        assert_eq!(Hold::of(&lease), read);

        hold(&mut lease, "", 3, Duration::from_secs(6), at(20));
        assert_eq!(Hold::of(&lease).holder, "");
        assert_eq!(Hold::of(&lease).renewed, Some(20_000_000));
        assert_eq!(acquired(&lease), Some(MicroTime(at(10))));

        hold(&mut lease, "west", 4, Duration::from_secs(6), at(30));
        assert_eq!(acquired(&lease), Some(MicroTime(at(30))));
    }

    #[test]
    fn a_lease_that_says_nothing_is_nobodys() {
        let read = Hold::of(&blank("lead"));
        assert_eq!((read.holder.as_str(), read.transitions), ("", 0));
        assert_eq!((read.renewed, read.duration), (None, None));
    }
}
