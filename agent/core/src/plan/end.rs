//! What it means for a service that nothing is left to do: whether what the hub sent of it stands.
//! Never looks at what was tried; only at what is known, wanted and found.

use model::ServiceKey;

use super::{Desired, NamespaceState, Plan, ServiceView, progress::End};

/// How work on `service` ends of which `plan` leaves nothing to do. From kinds that were not listed nothing was planned;
/// exports matter only if the hub has a word on one.
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

/// An import of another type stands and may not go yet, for one of its sources has not listed: of what was sent only
/// what fits beside it is there. Or a Lease expired, and what came from its source is kept away.
fn is_withheld(desired: &Desired, view: &ServiceView, service: &ServiceKey) -> bool {
    let wanted = desired.import(service).map(|wanted| wanted.value.service_type);
    let found = view.import.ours().map(|ours| ours.content.content.service_type);
    let another_type = wanted.is_some() && found.is_some_and(|found| found.is_some() && found != wanted);
    another_type || has_expired(desired, service)
}
