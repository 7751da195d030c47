//! Decides what it means for a service that nothing is left to do: whether its objects match what the hub sent.
//! Considers only what is known, wanted and found, never what was tried.

use model::ServiceKey;

use super::{Desired, NamespaceState, Plan, ServiceView, progress::End};

/// Returns how work on `service` ends if `plan` leaves nothing to do. A plan has no steps for kinds that were not
/// listed; exports matter only if the hub said something about one.
pub fn end(desired: &Desired, view: &ServiceView, service: &ServiceKey, plan: &Plan) -> End {
    let known = view.known;
    let imported = known.imports && known.services && known.slices;
    let exported = known.exports || desired.export_status(service).is_none();
    if !imported || !exported || view.namespace == NamespaceState::Unknown {
        End::Open
    } else if !plan.reports.is_empty() {
        End::Parked
    } else if view.withdrawal_held || is_withheld(desired, view, service) {
        End::Open
    } else {
        End::Stands
    }
}

/// Something of a source whose Lease expired is kept away, or not ready, whatever the hub sent last.
fn has_expired(desired: &Desired, service: &ServiceKey) -> bool {
    let expired = desired.expired();
    !expired.is_empty()
        && desired
            .slices(service)
            .any(|slice| expired.contains_key(&slice.value.key.source_cluster))
}

/// An import of another type exists and may not go yet, because one of its sources has not listed: only the objects
/// that fit beside it are applied. Or a Lease expired, and what came from its source is kept away.
fn is_withheld(desired: &Desired, view: &ServiceView, service: &ServiceKey) -> bool {
    let wanted = desired.import(service).map(|wanted| wanted.value.service_type);
    let found = view.import.ours().map(|ours| ours.content.content.service_type);
    let another_type = wanted.is_some() && found.is_some_and(|found| found.is_some() && found != wanted);
    another_type || has_expired(desired, service)
}
