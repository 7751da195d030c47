//! EndpointSlice facts. A slice touches its own derived slice and nothing else: the import is only read. The export's
//! status names endpoints that are left out. A slice whose Service its cluster does not export is kept, and derives
//! nothing. A slice that is withdrawn with an export on hold is on hold too.

use std::sync::Arc;

use model::{ClusterId, EncodedFact, EndpointSlice, FactKey, SliceKey};

use super::{
    DerivedKey, RecordedFact, State,
    derived::Step,
    exports, fate,
    gate::{AddressGate, Gate},
    lost, remembered, slice,
};

pub(super) fn upserted(
    state: &mut State,
    cluster: &ClusterId,
    endpoint_slice: &Arc<EndpointSlice>,
    fact: &EncodedFact,
    step: &mut Step,
) {
    let gate = Gate::of(state);
    let gate = gate.addresses(cluster);
    let recorded = RecordedFact::new(fact, step.revision);
    let (Some(member), Some(recorded)) = (state.member_mut(cluster), recorded) else {
        return;
    };
    let key = FactKey::EndpointSlice(endpoint_slice.key.clone());
    member.facts.replace(key.clone(), recorded);
    remembered::reported(state, cluster, &[key]);
    let service = &endpoint_slice.key.service;
    let passes = (&gate, fate::fate(state, service, cluster));
    let member = state.current_member(cluster);
    let export = member.and_then(|member| member.counted_export(service));
    let export = export.map(|(_, export)| export.clone());
    let exported = export.as_ref().map(|export| &*export.ports).unwrap_or_default();
    slice::rederive_one(
        &mut state.derived,
        (cluster, exported),
        endpoint_slice,
        passes,
        step,
    );
    lost::settle(state, &endpoint_slice.key.service, step);
    let leaves_out = leaves_out(&gate, endpoint_slice);
    exports::rejudge_addresses(state, &endpoint_slice.key.service, cluster, leaves_out, step);
}

fn leaves_out(gate: &AddressGate<'_>, slice: &EndpointSlice) -> bool {
    slice.endpoints.iter().any(|endpoint| gate.leaves_out(endpoint))
}

pub(super) fn removed(state: &mut State, cluster: &ClusterId, key: &SliceKey, step: &mut Step) {
    let Some(member) = state.member_mut(cluster) else {
        return;
    };
    let fact_key = FactKey::EndpointSlice(key.clone());
    let Some(removed) = member.facts.remove(&fact_key) else {
        return;
    };
    // It goes with its export, and shares its fate; a slice whose export is still reported is gone.
    let with_its_export = member.export(&key.service).is_none() && member.taken_back.has_export(&key.service);
    if with_its_export && remembered::take_back(state, cluster, fact_key, removed, step.recorded_at) {
        return;
    }
    let derived = DerivedKey::slice(&key.service, cluster, &key.name);
    state.derived.remove(&derived, step);
    lost::settle(state, &key.service, step);
    exports::rejudge_addresses(state, &key.service, cluster, false, step);
}
