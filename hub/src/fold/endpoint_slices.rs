//! EndpointSlice facts. A slice touches its own derived slice and nothing else: the import is only read.
//! A slice whose Service its cluster does not export is kept, and derives nothing.

use std::sync::Arc;

use shared::model::{ClusterId, EncodedFact, EndpointSlice, FactKey, SliceKey};

use super::{DerivedKey, RecordedFact, State, derived::Step, slice};

pub(super) fn upserted(
    state: &mut State,
    cluster: &ClusterId,
    endpoint_slice: &Arc<EndpointSlice>,
    fact: &EncodedFact,
    step: &mut Step,
) {
    let Some(member) = state.members.get_mut(cluster) else {
        return;
    };
    let key = FactKey::EndpointSlice(endpoint_slice.key.clone());
    member.facts.insert(key, RecordedFact::new(fact, step.revision));
    slice::rederive_one(&mut state.derived, cluster, endpoint_slice, step);
}

pub(super) fn removed(state: &mut State, cluster: &ClusterId, key: &SliceKey, step: &mut Step) {
    let Some(member) = state.members.get_mut(cluster) else {
        return;
    };
    if member
        .facts
        .remove(&FactKey::EndpointSlice(key.clone()))
        .is_some()
    {
        let derived = DerivedKey::slice(&key.service, cluster, &key.name);
        state.derived.remove(&derived, step);
    }
}
