//! Owns: what goes, or turns not ready, because the Lease of its source expired: the second way by which the law of
//! deletion lets something of another cluster go. It needs neither a hub nor a leader, so that any agent may do it.
//! Never: decides which Leases have expired (`crate::expiry`), or creates anything: `plan` does, once they move.

use std::collections::BTreeSet;

use model::{ClusterId, ServiceKey, derived_name::derived_service_name, policy::LossAction};

use super::{
    action::{Action, Plan},
    content::{SliceContent, SliceEndpoint},
    desired::Desired,
    expired::Expired,
    slices::SliceSteps,
    view::{NamespaceState, ServiceView},
};

/// Returns the deletions for `service`: slices first; then import and derived Service, if no other source contributes
/// to them. Leases do not apply to `own`, which the agent watches itself.
pub fn expire(expired: &Expired, view: &ServiceView, own: &ClusterId, service: &ServiceKey) -> Plan {
    let mut plan = Plan::default();
    let known = view.known.imports && view.known.services && view.known.slices;
    if !known || view.namespace != NamespaceState::Active {
        return plan;
    }
    if are_gone(expired, &view.sources(), own) {
        let derived_name = derived_service_name(&service.namespace, &service.name);
        super::remove(view, service, &derived_name, &mut plan);
        return plan;
    }
    let mut steps = SliceSteps::default();
    for (name, slice) in view.our_slices().filter(|(_, slice)| !slice.deleting) {
        let source = slice
            .content
            .source_cluster
            .as_ref()
            .filter(|source| *source != own);
        match source.and_then(|source| expired.get(source)) {
            Some(LossAction::Withdraw) => steps.delete(name, &slice.uid),
            Some(LossAction::NotReady) if !is_not_ready(&slice.content) => {
                steps.writes.push(Action::ApplySlice {
                    name: name.into(),
                    uid: Some(slice.uid.clone()),
                    content: not_ready(&slice.content),
                    revision: None,
                });
            }
            Some(LossAction::NotReady | LossAction::Retain) | None => {}
        }
    }
    steps.append_to(&mut plan);
    plan
}

/// Returns true if everything that exists of `service`, and everything wanted of it, comes from sources whose slices
/// go.
pub(super) fn is_all_gone(
    desired: &Desired,
    view: &ServiceView,
    own: &ClusterId,
    service: &ServiceKey,
) -> bool {
    if desired.expired().is_empty() {
        return false;
    }
    let mut sources = view.sources();
    let wanted = desired.import(service).into_iter();
    sources.extend(wanted.flat_map(|wanted| wanted.value.clusters.keys().cloned()));
    are_gone(desired.expired(), &sources, own)
}

fn are_gone(expired: &Expired, sources: &BTreeSet<ClusterId>, own: &ClusterId) -> bool {
    let is_gone = |source: &ClusterId| source != own && expired.get(source) == Some(&LossAction::Withdraw);
    !sources.is_empty() && sources.iter().all(is_gone)
}

fn is_not_ready(content: &SliceContent) -> bool {
    let not_ready =
        |one: &SliceEndpoint| one.endpoint.ready == Some(false) && one.endpoint.serving == Some(false);
    content.endpoints.iter().all(not_ready)
}

fn not_ready(content: &SliceContent) -> SliceContent {
    let mut endpoints = content.endpoints.to_vec();
    for one in &mut endpoints {
        (one.endpoint.ready, one.endpoint.serving) = (Some(false), Some(false));
    }
    SliceContent {
        endpoints: endpoints.into(),
        ..content.clone()
    }
}
