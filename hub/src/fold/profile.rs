//! The ClusterProfile of a member (KEP-4322): conditions, version, properties.
//! Silence is Unknown, never False, and comes with *lost* only. Times move on status flips and are no content.

use std::sync::Arc;

use shared::model::{ClusterId, ClusterProperty, ControlPlane, FactKey, Health, PropertyValue, UnixMillis};

use super::{
    Connectivity, DerivedContent, DerivedKey, Member, State,
    derived::Step,
    profile_content::{ConditionStatus, ConditionType, Profile, ProfileCondition},
};

/// Most properties that a message about left-out properties names.
const NAMED_PROPERTIES_MAX: usize = 5;

/// Derives the profile of a current member anew.
pub(super) fn rederive(state: &mut State, cluster: &ClusterId, step: &mut Step) {
    let Some(member) = state.current_member(cluster) else {
        return;
    };
    let key = DerivedKey::Profile(cluster.clone());
    let known = match state.derived.get(&key).map(|derived| &derived.content) {
        Some(DerivedContent::Profile(profile)) => Some(&profile.conditions),
        _ => None,
    };
    let mut profile = derive(cluster, member, [step.recorded_at; 2]);
    for (condition, known) in profile.conditions.iter_mut().zip(known.into_iter().flatten()) {
        if condition.status == known.status {
            condition.last_transition = known.last_transition;
        }
    }
    let content = DerivedContent::Profile(Arc::new(profile));
    state.derived.set(key, content, step);
}

/// The profile of a member whose conditions last flipped at `transitions`.
pub(super) fn derive(cluster: &ClusterId, member: &Member, transitions: [UnixMillis; 2]) -> Profile {
    let health = member.facts.get(&FactKey::Health).and_then(|fact| fact.health());
    let first = FactKey::ClusterProperty("".into());
    let properties = member.facts.from(first).map_while(|(_, fact)| fact.property());
    let properties: Vec<Arc<ClusterProperty>> = properties.cloned().collect();
    Profile {
        cluster: cluster.clone(),
        kubernetes_version: health
            .map(|health| health.kubernetes_version.clone())
            .unwrap_or_default(),
        conditions: [
            control_plane_healthy(member.connectivity, health, transitions[0]),
            ProfileCondition {
                condition_type: ConditionType::Joined,
                status: ConditionStatus::True,
                reason: "ClusterRegistered",
                message: joined_message(&properties).into(),
                last_transition: transitions[1],
            },
        ],
        properties,
    }
}

fn control_plane_healthy(
    connectivity: Connectivity,
    health: Option<&Arc<Health>>,
    last_transition: UnixMillis,
) -> ProfileCondition {
    let control_plane = health.map(|health| health.control_plane);
    let (status, reason, message) = match (connectivity, control_plane) {
        (Connectivity::Lost, _) => (
            ConditionStatus::Unknown,
            "AgentLost",
            "The hub hears nothing of this cluster's agent.".to_owned(),
        ),
        (_, None) => (
            ConditionStatus::Unknown,
            "HealthNotReported",
            "The agent has not reported the health of its control plane yet.".to_owned(),
        ),
        (_, Some(ControlPlane::Ready)) => (
            ConditionStatus::True,
            "Healthy",
            "The API server says that it is ready.".to_owned(),
        ),
        (_, Some(ControlPlane::NotReady)) => (
            ConditionStatus::False,
            "APIServerNotReady",
            not_ready_message(health.map(|health| &*health.failed_checks).unwrap_or_default()),
        ),
        (_, Some(ControlPlane::Unreachable)) => (
            ConditionStatus::Unknown,
            "APIServerUnreachable",
            "The agent gets no answer from its API server.".to_owned(),
        ),
    };
    ProfileCondition {
        condition_type: ConditionType::ControlPlaneHealthy,
        status,
        reason,
        message: message.into(),
        last_transition,
    }
}

fn not_ready_message(failed_checks: &[Box<str>]) -> String {
    if failed_checks.is_empty() {
        "The API server says that it is not ready.".to_owned()
    } else {
        format!(
            "The API server says that it is not ready; failed checks: {}.",
            failed_checks.join(", ")
        )
    }
}

fn joined_message(properties: &[Arc<ClusterProperty>]) -> String {
    let oversize = properties.iter().filter_map(|property| match property.value {
        PropertyValue::Oversize { characters, .. } => {
            Some(format!("{} ({characters} characters)", property.name))
        }
        PropertyValue::Text(_) => None,
    });
    let oversize: Vec<String> = oversize.collect();
    let mut message = "The cluster is a member of the clusterset.".to_owned();
    if !oversize.is_empty() {
        message.push_str(" Properties left out because their values are too long for a ClusterProfile: ");
        let named: Vec<&str> = oversize
            .iter()
            .take(NAMED_PROPERTIES_MAX)
            .map(String::as_str)
            .collect();
        message.push_str(&named.join(", "));
        if let Some(more @ 1..) = oversize.len().checked_sub(NAMED_PROPERTIES_MAX) {
            message.push_str(&format!(", and {more} more"));
        }
        message.push('.');
    }
    message
}
