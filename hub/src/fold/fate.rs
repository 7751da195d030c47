//! What of a member's endpoints behind a service importing clusters hold, while the member is withdrawn or is to leave: by
//! the policy, and by what the others have.
//! Who is that is decided elsewhere.

use shared::model::{ClusterId, Endpoint, EndpointView, Endpoints, ServiceKey, policy::LossAction};

use super::{DerivedContent, DerivedKey, State};

/// What becomes of the endpoints of one member behind one service.
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

/// What becomes of a member's endpoints behind a service. What the members that count have of it was derived before, and for
/// withdrawn ones what those have that are to leave.
pub(super) fn fate(state: &State, service: &ServiceKey, cluster: &ClusterId) -> Fate {
    if state.leaving.contains_key(cluster) && is_served(state, service, |other| state.counts(other)) {
        return Fate::Withdrawn;
    }
    if !state.withdrawn.contains_key(cluster) {
        return Fate::Reported;
    }
    let is_there = |other: &ClusterId| !state.withdrawn.contains_key(other);
    match state.loss().action {
        LossAction::Retain => Fate::Reported,
        _ if !is_served(state, service, is_there) => Fate::Reported,
        LossAction::NotReady => Fate::NotReady,
        LossAction::Withdraw => Fate::Withdrawn,
    }
}

/// Whether one of these members has a ready endpoint behind a service. Where none has, those of the others stay: what may
/// answer is better than nothing.
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
