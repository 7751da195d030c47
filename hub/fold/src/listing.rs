//! A complete listing: what a member did not name any more is gone.
//! Whether a listing counts as *listed* in this process's life is volatile and not known here.

use std::collections::BTreeSet;

use model::{ClusterId, Fact, FactKey, ListingGroup, SessionId};

use super::{Draft, DraftFact, Rejection, State, derived::Step, membership};

/// A removal for each fact of the group that was not seen, then the completion. The completion is recorded
/// when something was removed or it is the incarnation's first: reconnects do not grow the log.
pub(super) fn complete(
    state: &State,
    cluster: &ClusterId,
    (session, member_sequence): (SessionId, u64),
    group: ListingGroup,
    seen: &BTreeSet<FactKey>,
) -> Result<Vec<Draft>, Rejection> {
    let member = membership::current(state, cluster)?;
    let of_group = member.facts.keys().filter(|key| key.group() == group);
    let unseen = of_group.filter(|key| !seen.contains(key));
    let mut facts: Vec<Fact> = unseen.filter_map(removal).collect();
    if !facts.is_empty() || !member.listings.contains_key(&group) {
        facts.push(Fact::ListingCompleted(group));
    }
    let draft = |fact| Draft {
        cluster: Some(cluster.clone()),
        session,
        member_sequence,
        fact: DraftFact::Decided(fact),
    };
    Ok(facts.into_iter().map(draft).collect())
}

/// The fact that ends what `key` names. A health does not end: it is unknown or replaced.
fn removal(key: &FactKey) -> Option<Fact> {
    match key {
        FactKey::Export(service) => Some(Fact::ExportRemoved(service.clone())),
        FactKey::EndpointSlice(slice) => Some(Fact::EndpointSliceRemoved(slice.clone())),
        FactKey::ClusterProperty(name) => Some(Fact::ClusterPropertyRemoved(name.clone())),
        FactKey::Health => None,
    }
}

pub(super) fn completed(state: &mut State, cluster: &ClusterId, group: ListingGroup, step: &Step) {
    if let Some(member) = state.member_mut(cluster) {
        member.listings.insert(group, step.revision);
    }
}
