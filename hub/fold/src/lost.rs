//! The fate of the endpoints of a member that stays lost: by policy they are withdrawn, marked not ready, or kept. Its
//! exports keep their place nevertheless. Facts, policy and the recorded decision determine it, nothing else. Another
//! module decides when a member is withdrawn, since that takes a clock.

use model::{ClusterId, Fact, ServiceKey, policy::Loss};

use super::{
    Connectivity, Draft, Rejection, State,
    derived::Step,
    fate::{self, Place},
    slice,
};

/// A lost member is withdrawn, if it is not yet.
pub(super) fn withdraw(state: &State, cluster: &ClusterId) -> Result<Vec<Draft>, Rejection> {
    let member = state
        .current_member(cluster)
        .ok_or_else(|| Rejection::NotAMember {
            cluster: cluster.clone(),
        })?;
    let withdraws = member.connectivity == Connectivity::Lost && !member.withdrawn;
    Ok(Vec::from_iter(
        withdraws.then(|| Draft::decided(cluster, Fact::MemberWithdrawn)),
    ))
}

/// Nothing more is withdrawn, while so many are lost; or members are withdrawn again.
pub(super) fn self_preserve(state: &State, lost: Option<u32>) -> Vec<Draft> {
    let fact = match (state.self_preservation, lost) {
        (None, Some(lost)) => Fact::SelfPreservationEntered {
            lost,
            members: u32::try_from(state.current_member_count()).unwrap_or(u32::MAX),
        },
        (Some(_), None) => Fact::SelfPreservationLeft { operator: "".into() },
        _ => return Vec::new(),
    };
    vec![Draft::of_the_log(fact)]
}

/// An operator lets members be withdrawn again; nothing, if they are.
pub(super) fn release_self_preservation(state: &State, operator: &str) -> Vec<Draft> {
    let left = || Fact::SelfPreservationLeft {
        operator: operator.into(),
    };
    Vec::from_iter(state.self_preservation.map(|_| Draft::of_the_log(left())))
}

/// A member is withdrawn, or counts again.
pub(super) fn set_withdrawn(state: &mut State, cluster: &ClusterId, withdrawn: bool, step: &mut Step) {
    let Some(member) = state
        .member_mut(cluster)
        .filter(|member| member.withdrawn != withdrawn)
    else {
        return;
    };
    member.withdrawn = withdrawn;
    let services: Vec<ServiceKey> = member.counted_services().cloned().collect();
    if withdrawn {
        state.withdrawn.insert(cluster.clone(), ());
    } else {
        state.withdrawn.remove(cluster);
    }
    for service in &services {
        if !withdrawn {
            slice::rederive_all(state, service, cluster, step);
        }
        settle(state, service, step);
    }
}

/// The membership of a cluster ends: it is neither withdrawn nor to leave any more.
pub(super) fn ended(state: &mut State, cluster: &ClusterId) {
    if let Some(member) = state.member_mut(cluster) {
        member.withdrawn = false;
        member.leaving = None;
    }
    state.withdrawn.remove(cluster);
    state.leaving.remove(cluster);
}

/// Derives again the slices of a service's clusters whose endpoints do not count as they are, place by place: whether
/// they are sent depends on the places before.
pub(super) fn settle(state: &mut State, service: &ServiceKey, step: &mut Step) {
    if state.withdrawn.is_empty() && state.leaving.is_empty() && state.held.is_empty() {
        return;
    }
    let exporters = state.exporters(service);
    let places = exporters.map(|cluster| (fate::place(state, service, cluster), cluster.clone()));
    let mut aside: Vec<(Place, ClusterId)> = places.filter(|(place, _)| *place != Place::Counts).collect();
    aside.sort();
    for (_, cluster) in &aside {
        slice::rederive_all(state, service, cluster, step);
    }
}

impl State {
    /// The policy on lost members.
    pub fn loss(&self) -> Loss {
        self.policy
            .as_ref()
            .map(|applied| applied.policy.loss)
            .unwrap_or_default()
    }

    /// Since when nothing is withdrawn because too many members are lost at once; `None`: it is.
    pub fn self_preservation(&self) -> Option<model::UnixMillis> {
        self.self_preservation
    }

    /// Number of members.
    pub fn current_member_count(&self) -> usize {
        self.members.values().filter(|member| member.is_current()).count()
    }
}
