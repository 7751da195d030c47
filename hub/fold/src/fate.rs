//! The fate of a member's endpoints in importing clusters while the member is withdrawn or leaves, or its export is on
//! hold: by the policy, and by the endpoints of the others. Other modules decide which members these are.

use model::{ClusterId, Endpoint, EndpointView, Endpoints, ServiceKey, policy::LossAction};

use super::{DerivedContent, DerivedKey, State, rules::HELD_YIELD_SINCE};

/// The fate of the endpoints of one member behind one service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// They are what was reported.
    Reported,
    /// None of them is ready.
    NotReady,
    /// Nobody is sent them.
    Withdrawn,
}

impl Fate {
    /// The endpoints as importing clusters hold them; `None`: they do not.
    pub(super) fn of(self, endpoints: Endpoints) -> Option<Endpoints> {
        match self {
            Self::Reported => Some(endpoints),
            Self::NotReady => Some(endpoints.values().map(not_ready).collect()),
            Self::Withdrawn => None,
        }
    }
}

fn not_ready(endpoint: Endpoint) -> Endpoint {
    Endpoint {
        ready: Some(false),
        serving: Some(false),
        ..endpoint
    }
}

/// The place of a member's endpoints behind a service: they count as they are (the first), or only where none of an earlier
/// place is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Its cluster is there, exports the service, and stays.
    Counts,
    /// Its cluster is to leave, and answers until then.
    Leaving,
    /// Its cluster took the export back: nobody knows whether there is anything behind it.
    Held,
    /// Its cluster is lost.
    Withdrawn,
}

/// The place of a member's endpoints behind a service.
pub(super) fn place(state: &State, service: &ServiceKey, cluster: &ClusterId) -> Place {
    if state.withdrawn.contains_key(cluster) {
        return Place::Withdrawn;
    }
    if yields_when_held(state, service, cluster) {
        return Place::Held;
    }
    if state.leaving.contains_key(cluster) {
        return Place::Leaving;
    }
    Place::Counts
}

/// Decides about a member's endpoints behind a service. The members of earlier places were derived before.
pub(super) fn fate(state: &State, service: &ServiceKey, cluster: &ClusterId) -> Fate {
    let own = place(state, service, cluster);
    let served_before = |later: Place| {
        let is_before = |other: &ClusterId| place(state, service, other) < later;
        is_served(state, service, is_before)
    };
    let yields = match own {
        Place::Counts => return Fate::Reported,
        Place::Leaving | Place::Held => served_before(own),
        // It may be to leave, or held, besides.
        Place::Withdrawn => {
            (state.leaving.contains_key(cluster) && served_before(Place::Leaving))
                || (yields_when_held(state, service, cluster) && served_before(Place::Held))
        }
    };
    match (own, state.loss().action) {
        _ if yields => Fate::Withdrawn,
        (Place::Counts | Place::Leaving | Place::Held, _) | (_, LossAction::Retain) => Fate::Reported,
        _ if !served_before(Place::Withdrawn) => Fate::Reported,
        (_, LossAction::NotReady) => Fate::NotReady,
        (_, LossAction::Withdraw) => Fate::Withdrawn,
    }
}

fn yields_when_held(state: &State, service: &ServiceKey, cluster: &ClusterId) -> bool {
    state.fold_version >= HELD_YIELD_SINCE && state.holds(cluster, service)
}

/// Returns true if one of these members has a ready endpoint behind a service. If none has, the endpoints of the others
/// stay: an endpoint that may answer is better than none.
pub(super) fn is_served(state: &State, service: &ServiceKey, by: impl Fn(&ClusterId) -> bool) -> bool {
    let of_service = state.derived.from(DerivedKey::Import(service.clone()));
    of_service
        .take_while(|(key, _)| key.service() == Some(service))
        .any(|(_, derived)| match &derived.content {
            DerivedContent::Slice(slice) => {
                by(&slice.key.source_cluster) && slice.endpoints.iter().any(EndpointView::is_ready)
            }
            _ => false,
        })
}
