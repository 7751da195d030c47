//! The Lease as a Kubernetes object and as a record. It decides nothing.

use api::{
    leader_lease::{self, Hold},
    names,
};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube_core::ResourceExt;
use model::{Epoch, KeyFingerprint};

use super::machine::{DURATION, DURATION_DEFAULT, Record};

/// Value of the annotation on a Lease that its holder released.
const GIVEN_BACK: &str = "true";

/// Reads the Lease's record.
pub(super) fn record(lease: &Lease) -> Record {
    let hold = Hold::of(lease);
    let epoch = lease.annotations().get(names::ANNOTATION_EPOCH);
    Record {
        holder: hold.holder.into(),
        renewed: hold.renewed,
        duration: hold.duration.unwrap_or(DURATION_DEFAULT),
        transitions: hold.transitions,
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
    let mut lease = leader_lease::blank(names::AGENT_LEASE);
    let labels = lease.labels_mut();
    labels.insert(names::LABEL_MANAGED_BY.into(), names::AGENT_MANAGER.into());
    lease
}

/// Lets `holder` hold the Lease from now on; an empty one lets it go. The epoch in it never falls. `ended`: the key under
/// which the membership has ended, if it has.
pub(super) fn hold(
    lease: &mut Lease,
    holder: &str,
    transitions: i32,
    (epoch, ended): (Option<Epoch>, Option<KeyFingerprint>),
) {
    leader_lease::hold(lease, holder, transitions, DURATION, Timestamp::now());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_lease_says_who_manages_it() {
        let lease = blank();
        let label = lease.labels().get(names::LABEL_MANAGED_BY);
        assert_eq!(label.map(String::as_str), Some("tributary-agent"));
    }
}
