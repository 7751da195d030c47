//! The ClusterProfile of a member (KEP-4322): conditions, version, properties.
//! Silence is Unknown, never False, and comes with *lost* only. Times move on status flips and are no content.

use std::sync::Arc;

use model::{ClusterId, FactKey, UnixMillis};

use super::{
    DerivedContent, DerivedKey, Member, State,
    derived::Step,
    health_conditions::{all_nodes_healthy, control_plane_healthy},
    profile_content::{ConditionStatus, ConditionType, Profile, ProfileCondition, Properties},
};

/// Most properties that a message about left-out properties names.
const NAMED_PROPERTIES_MAX: usize = 5;

/// Derives the profile of a current member anew. It takes the properties over from the one before, so that a change
/// costs no more with many of them.
pub(super) fn rederive(state: &mut State, cluster: &ClusterId, step: &mut Step) {
    rederive_with(state, cluster, None, step);
}

/// The same, after the property of this name changed.
pub(super) fn rederive_property(state: &mut State, cluster: &ClusterId, name: &str, step: &mut Step) {
    rederive_with(state, cluster, Some(name), step);
}

fn rederive_with(state: &mut State, cluster: &ClusterId, changed: Option<&str>, step: &mut Step) {
    let Some(member) = state.current_member(cluster) else {
        return;
    };
    let key = DerivedKey::Profile(cluster.clone());
    let at = step.recorded_at;
    let Some(known) = known(state, &key) else {
        let content = DerivedContent::Profile(Arc::new(derive(cluster, member, at)));
        state.derived.set(key, content, step);
        return;
    };
    let mut properties = known.properties.clone();
    let property_changed = changed.is_some_and(|name| {
        let fact = member.facts.get(&FactKey::ClusterProperty(name.into()));
        properties.change(name, fact.and_then(|fact| fact.property()))
    });
    let mut profile = derive_with(cluster, member, properties, at);
    for (condition, known) in profile.conditions.iter_mut().zip(&known.conditions) {
        if condition.status == known.status {
            condition.last_transition = known.last_transition;
        }
    }
    if property_changed || !profile.same_beside_properties(known) {
        let content = DerivedContent::Profile(Arc::new(profile));
        state.derived.set_changed(key, content, step);
    }
}

fn known<'a>(state: &'a State, key: &DerivedKey) -> Option<&'a Profile> {
    match &state.derived.get(key)?.content {
        DerivedContent::Profile(profile) => Some(profile),
        _ => None,
    }
}

/// The profile of a member whose conditions last flipped at `at`.
pub(super) fn derive(cluster: &ClusterId, member: &Member, at: UnixMillis) -> Profile {
    let first = FactKey::ClusterProperty("".into());
    let properties = member.facts.from(first).map_while(|(_, fact)| fact.property());
    derive_with(cluster, member, properties.cloned().collect(), at)
}

fn derive_with(cluster: &ClusterId, member: &Member, properties: Properties, at: UnixMillis) -> Profile {
    let health = member.facts.get(&FactKey::Health).and_then(|fact| fact.health());
    let joined = ProfileCondition {
        condition_type: ConditionType::Joined,
        status: ConditionStatus::True,
        reason: "ClusterRegistered",
        message: joined_message(&properties).into(),
        last_transition: at,
    };
    let mut conditions = vec![control_plane_healthy(member.connectivity, health, at), joined];
    conditions.extend(all_nodes_healthy(member.connectivity, health, at));
    Profile {
        cluster: cluster.clone(),
        kubernetes_version: health
            .map(|health| health.kubernetes_version.clone())
            .unwrap_or_default(),
        conditions,
        properties,
        api_servers: health.and_then(|health| {
            let verdict = health.verdict.as_ref()?;
            let counts = (verdict.api_servers_fresh, verdict.api_servers_expected);
            (counts.1 > 0).then_some(counts)
        }),
    }
}

fn joined_message(properties: &Properties) -> String {
    let (oversize, count) = properties.oversize();
    let mut message = "The cluster is a member of the clusterset.".to_owned();
    if count > 0 {
        message.push_str(" Properties left out because their values are too long for a ClusterProfile: ");
        let named = oversize.take(NAMED_PROPERTIES_MAX);
        let named: Vec<String> = named
            .map(|(name, characters)| format!("{name} ({characters} characters)"))
            .collect();
        message.push_str(&named.join(", "));
        if let Some(more @ 1..) = count.checked_sub(NAMED_PROPERTIES_MAX) {
            message.push_str(&format!(", and {more} more"));
        }
        message.push('.');
    }
    message
}
