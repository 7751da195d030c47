//! Facts that members withdraw: on hold, if the member's hold is in force, else remembered for as long as they could
//! cause one, by the times in the log. It derives nothing.

use model::{
    ClusterId, FactKey, ListingGroup, ServiceKey, UnixMillis, fact::MEMBER_FACTS_MAX, policy::Brake,
};

use super::{Member, RecordedFact, State, taken_back::TakenBack};

/// Most withdrawn facts of one member, on hold or remembered. Withdrawals beyond it take effect at once.
const TAKEN_BACK_MAX: usize = MEMBER_FACTS_MAX;

/// A member withdrew a fact that is not among its facts any more; returns whether it is on hold, and counts as before.
pub(super) fn take_back(
    state: &mut State,
    cluster: &ClusterId,
    key: FactKey,
    recorded: RecordedFact,
    at: UnixMillis,
) -> bool {
    let enabled = state.brake().enabled;
    let Some(member) = state.member_mut(cluster) else {
        return false;
    };
    let counts = enabled && member.may_be_held();
    let taken_back = &mut member.taken_back;
    let engaged = taken_back.brake().is_some();
    if !(engaged || counts) || taken_back.facts().len() >= TAKEN_BACK_MAX {
        return false;
    }
    taken_back.add(key, recorded, at);
    note(state, cluster);
    engaged
}

/// An export is reported again: none of its withdrawals is on hold or remembered. Gives the keys of that.
pub(super) fn came_back(state: &mut State, cluster: &ClusterId, service: &ServiceKey) -> Vec<FactKey> {
    let Some(member) = state.member(cluster) else {
        return Vec::new();
    };
    let keys = member.taken_back.keys_of(service);
    if !keys.is_empty() {
        reported(state, cluster, &keys);
    }
    keys
}

/// Facts that are reported are neither held nor remembered.
pub(super) fn reported(state: &mut State, cluster: &ClusterId, keys: &[FactKey]) {
    let Some(member) = state.member_mut(cluster) else {
        return;
    };
    for key in keys {
        member.taken_back.remove(key);
    }
    note(state, cluster);
}

/// Forgets withdrawals that are too old to cause a hold.
pub(super) fn forget(state: &mut State, now: UnixMillis) {
    if state.taking_back.is_empty() {
        return;
    }
    let brake = state.brake();
    let members: Vec<ClusterId> = state.taking_back.keys().cloned().collect();
    for cluster in &members {
        if let Some(member) = state.member_mut(cluster) {
            forget_of(&mut member.taken_back, &brake, now);
        }
        note(state, cluster);
    }
}

/// The same of one member, which is not held.
pub(super) fn forget_of(taken_back: &mut TakenBack, brake: &Brake, now: UnixMillis) {
    if let Some(then) = now.0.checked_sub(brake.within_millis) {
        taken_back.forget_until(UnixMillis(then));
    }
}

/// A new incarnation begins, or the membership ends: the former cluster's withdrawals are neither on hold nor
/// remembered. Returns the services whose exports were on hold and do not count any more.
pub(super) fn forget_all_of(state: &mut State, cluster: &ClusterId) -> Vec<ServiceKey> {
    let Some(member) = state.member_mut(cluster) else {
        return Vec::new();
    };
    let taken_back = std::mem::take(&mut member.taken_back);
    note(state, cluster);
    taken_back.held_exports().cloned().collect()
}

/// Updates the indexes of members on hold, and of others with remembered withdrawals.
pub(super) fn note(state: &mut State, cluster: &ClusterId) {
    let taken_back = state.member(cluster).map(|member| &member.taken_back);
    let held = taken_back.is_some_and(|taken_back| taken_back.brake().is_some());
    let remembers = !held && taken_back.is_some_and(|taken_back| !taken_back.facts().is_empty());
    for (index, is_in) in [(&mut state.held, held), (&mut state.taking_back, remembers)] {
        if is_in {
            index.insert(cluster.clone(), ());
        } else {
            index.remove(cluster);
        }
    }
}

impl Member {
    /// Returns true if the brake may be engaged. Before the first complete listing of an incarnation it may not: until
    /// then the facts are the former cluster's, and their removal is no withdrawal of this one.
    pub(super) fn may_be_held(&self) -> bool {
        self.listings.contains_key(&ListingGroup::Exports)
    }
}

impl State {
    /// Returns true if the counted export of a member for a service is a withdrawn one on hold.
    pub(super) fn holds(&self, cluster: &ClusterId, service: &ServiceKey) -> bool {
        self.held.contains_key(cluster)
            && self
                .member(cluster)
                .is_some_and(|member| member.taken_back.held_since(service).is_some())
    }

    /// The policy on mass withdrawals.
    pub fn brake(&self) -> Brake {
        self.policy
            .as_ref()
            .map(|applied| applied.policy.brake)
            .unwrap_or_default()
    }
}
