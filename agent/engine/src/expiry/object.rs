//! Owns: the Lease of a source cluster as a Kubernetes object: how it is called, whose it is, what it says.
//! Never: decides anything.

use std::time::Duration;

use api::names::{
    AGENT_MANAGER, ANNOTATION_ON_EXPIRY, LABEL_MANAGED_BY, LABEL_SOURCE_CLUSTER, SOURCE_LEASE_PREFIX,
};
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube_core::{ObjectMeta, ResourceExt};
use model::{ClusterId, policy::LossAction};

use super::judge::{SourceLease, Stamp};

/// The name of a source's Lease.
pub(super) fn name(cluster: &ClusterId) -> String {
    format!("{SOURCE_LEASE_PREFIX}{cluster}")
}

/// Selector of the Leases of sources.
pub(super) fn selector() -> String {
    format!("{LABEL_MANAGED_BY}={AGENT_MANAGER},{LABEL_SOURCE_CLUSTER}")
}

/// The source whose Lease it is; absent when it is none that an agent made.
pub(super) fn source(lease: &Lease) -> Option<ClusterId> {
    let label = |key: &str| lease.labels().get(key).map(String::as_str);
    let cluster = ClusterId::new(label(LABEL_SOURCE_CLUSTER)?).ok()?;
    let named = lease.metadata.name.as_deref() == Some(name(&cluster).as_str());
    let labelled = label(LABEL_MANAGED_BY) == Some(AGENT_MANAGER);
    let made = lease
        .managed_fields()
        .iter()
        .any(|entry| entry.manager.as_deref() == Some(AGENT_MANAGER));
    (named && labelled && made).then_some(cluster)
}

/// Reads a Lease.
pub(super) fn read(lease: &Lease) -> SourceLease {
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
    let action = lease.annotations().get(ANNOTATION_ON_EXPIRY);
    SourceLease {
        stamp: stamp(lease),
        duration: Duration::from_secs(
            seconds
                .and_then(|seconds| u64::try_from(seconds).ok())
                .unwrap_or(0),
        ),
        on_expiry: action.and_then(|action| action.parse().ok()),
    }
}

/// Its version.
pub(super) fn stamp(lease: &Lease) -> Stamp {
    Stamp {
        uid: lease.uid().unwrap_or_default().into(),
        version: lease.resource_version().unwrap_or_default().into(),
    }
}

/// One that nobody has renewed.
pub(super) fn blank(cluster: &ClusterId) -> Lease {
    let labels = [
        (LABEL_MANAGED_BY, AGENT_MANAGER),
        (LABEL_SOURCE_CLUSTER, cluster.as_str()),
    ];
    Lease {
        metadata: ObjectMeta {
            name: Some(name(cluster)),
            labels: Some(labels.map(|(key, value)| (key.into(), value.into())).into()),
            ..ObjectMeta::default()
        },
        spec: None,
    }
}

/// Lets `holder` renew it.
pub(super) fn renew(lease: &mut Lease, holder: &str, duration: Duration, action: LossAction) {
    let now = MicroTime(Timestamp::now());
    let before = lease.spec.take();
    let goes_on = before
        .as_ref()
        .is_some_and(|before| before.holder_identity.as_deref() == Some(holder));
    let transitions = match &before {
        None => 0,
        Some(before) => before
            .lease_transitions
            .unwrap_or(0)
            .saturating_add(i32::from(!goes_on)),
    };
    let acquired = before.and_then(|before| before.acquire_time);
    lease.spec = Some(LeaseSpec {
        acquire_time: acquired.filter(|_| goes_on).or_else(|| Some(now.clone())),
        renew_time: Some(now),
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: i32::try_from(duration.as_secs()).ok(),
        lease_transitions: Some(transitions),
        ..LeaseSpec::default()
    });
    lease.metadata.managed_fields = None;
    let annotations = lease.annotations_mut();
    annotations.insert(ANNOTATION_ON_EXPIRY.into(), action.to_string());
}
