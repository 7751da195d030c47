//! ClusterProperties and the control plane's health: kept as facts, shown in the member's profile.

use model::{ClusterId, EncodedFact, FactKey};

use super::{RecordedFact, State, derived::Step, profile};

pub(super) fn upserted(state: &mut State, cluster: &ClusterId, fact: &EncodedFact, step: &mut Step) {
    let recorded = fact.fact.key().zip(RecordedFact::new(fact, step.revision));
    let (Some(member), Some((key, recorded))) = (state.member_mut(cluster), recorded) else {
        return;
    };
    member.facts.insert(key.clone(), recorded);
    match key {
        FactKey::ClusterProperty(name) => profile::rederive_property(state, cluster, &name, step),
        _ => profile::rederive(state, cluster, step),
    }
}

pub(super) fn removed(state: &mut State, cluster: &ClusterId, name: &str, step: &mut Step) {
    let Some(member) = state.member_mut(cluster) else {
        return;
    };
    if member
        .facts
        .remove(&FactKey::ClusterProperty(name.into()))
        .is_some()
    {
        profile::rederive_property(state, cluster, name, step);
    }
}
