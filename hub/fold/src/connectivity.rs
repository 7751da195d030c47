//! Live, suspect, lost: only transitions are events, and they change nothing but the member's state and its profile; what
//! becomes of one that stays lost is the business of `lost`. The timers are elsewhere.

use model::{ClusterId, Fact};

use super::{Connectivity, Draft, Rejection, State, derived::Step, lost, membership, profile};

/// A transition, if it is one. Silence only deepens: a lost member does not become suspect.
pub(super) fn decide(state: &State, cluster: &ClusterId, to: Connectivity) -> Result<Vec<Draft>, Rejection> {
    let from = membership::current(state, cluster)?.connectivity;
    let fact = match (from, to) {
        (Connectivity::Live, Connectivity::Live)
        | (Connectivity::Suspect, Connectivity::Suspect)
        | (Connectivity::Lost, Connectivity::Suspect | Connectivity::Lost) => return Ok(Vec::new()),
        (_, Connectivity::Live) => Fact::MemberLive,
        (_, Connectivity::Suspect) => Fact::MemberSuspect,
        (_, Connectivity::Lost) => Fact::MemberLost,
    };
    Ok(vec![Draft::decided(cluster, fact)])
}

pub(super) fn changed(state: &mut State, cluster: &ClusterId, to: Connectivity, step: &mut Step) {
    let Some(member) = state.member_mut(cluster) else {
        return;
    };
    if member.connectivity == to {
        return;
    }
    member.connectivity = to;
    member.since = step.recorded_at;
    if to == Connectivity::Live {
        lost::set_withdrawn(state, cluster, false, step);
    }
    profile::rederive(state, cluster, step);
}
