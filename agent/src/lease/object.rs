//! The Lease as a Kubernetes object and as a record. It decides nothing.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{ResourceExt, api::ObjectMeta};
use shared::{
    api::names,
    model::{Epoch, KeyFingerprint},
};

use super::machine::{DURATION, DURATION_DEFAULT, Record};

/// Value of the annotation on a Lease that its holder released.
const GIVEN_BACK: &str = "true";

/// Reads the Lease's record.
pub(super) fn record(lease: &Lease) -> Record {
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec
        .lease_duration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok());
    let epoch = lease.annotations().get(names::ANNOTATION_EPOCH);
    Record {
        holder: spec.holder_identity.unwrap_or_default().into(),
        renewed: spec.renew_time.map(|time| time.0.as_microsecond()),
        duration: seconds.map_or(DURATION_DEFAULT, Duration::from_secs),
        transitions: spec.lease_transitions.unwrap_or(0),
        epoch: epoch.and_then(|epoch| epoch.parse().ok()),
        given_back: lease
            .annotations()
            .get(names::ANNOTATION_GIVEN_BACK)
            .is_some_and(|says| says == GIVEN_BACK),
    }
}

/// The key under which the cluster's membership has ended.
pub(super) fn ended(lease: &Lease) -> Option<KeyFingerprint> {
    let ended = lease.annotations().get(names::ANNOTATION_ENDED_KEY);
    ended.and_then(|key| key.parse().ok())
}

/// Returns true if an operator confirms that the imports on hold may go.
pub(super) fn accepts_withdrawals(lease: &Lease) -> bool {
    let annotations = lease.annotations();
    annotations.contains_key(names::ANNOTATION_ACCEPT_WITHDRAWALS)
}

/// One that nobody has held.
pub(super) fn blank() -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some(names::AGENT_LEASE.into()),
            ..ObjectMeta::default()
        },
        spec: None,
    }
}

/// Lets `holder` hold the Lease from now on; an empty one lets it go. The epoch in it never falls. `ended`: the key under
/// which the membership has ended, if it has.
pub(super) fn hold(
    lease: &mut Lease,
    holder: &str,
    transitions: i32,
    (epoch, ended): (Option<Epoch>, Option<KeyFingerprint>),
) {
    let now = MicroTime(Timestamp::now());
    let before = lease.spec.take().unwrap_or_default();
    let goes_on = before.lease_transitions == Some(transitions);
    lease.spec = Some(LeaseSpec {
        acquire_time: before
            .acquire_time
            .filter(|_| goes_on)
            .or_else(|| Some(now.clone())),
        renew_time: Some(now),
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
        lease_transitions: Some(transitions),
        ..LeaseSpec::default()
    });
    let annotations = lease.annotations_mut();
    annotations.insert(names::ANNOTATION_GIVEN_BACK.into(), GIVEN_BACK.into());
    annotations.remove(names::ANNOTATION_ACCEPT_WITHDRAWALS); // whoever writes it has heeded it
    if let Some(epoch) = epoch {
        annotations.insert(names::ANNOTATION_EPOCH.into(), epoch.to_string());
    }
    match ended {
        Some(key) => drop(annotations.insert(names::ANNOTATION_ENDED_KEY.into(), key.to_string())),
        None => drop(annotations.remove(names::ANNOTATION_ENDED_KEY)),
    }
}
