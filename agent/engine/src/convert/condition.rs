//! Conditions ↔ plain values. lastTransitionTime changes only when the status does.

use api::{
    Condition as KubernetesCondition,
    conditions::{STATUS_FALSE, STATUS_TRUE, STATUS_UNKNOWN, UNKNOWN_TRANSITION},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::owned::{OwnedFields, member_of};
use crate::plan::content::{Condition, ConditionStatus, ConditionType};

/// The conditions that are the agent's.
pub(crate) fn conditions_from(owned: &OwnedFields<'_>, conditions: &[KubernetesCondition]) -> Vec<Condition> {
    let ours = |condition: &&KubernetesCondition| {
        owned.has(&["status", "conditions", &member_of("type", &condition.type_)])
    };
    conditions
        .iter()
        .filter(ours)
        .filter_map(condition_from)
        .collect()
}

/// Times since which conditions have their status, whoever wrote them.
#[derive(Debug, Default)]
pub(crate) struct Transitions(Box<[(ConditionType, ConditionStatus, Time)]>);

impl Transitions {
    /// The ones of these conditions whose types the agent writes.
    pub(crate) fn of(conditions: &[KubernetesCondition]) -> Self {
        let one = |condition: &KubernetesCondition| {
            let since = condition.last_transition_time.clone();
            if since == UNKNOWN_TRANSITION {
                return None; // nobody knows since when: since now
            }
            Some((
                type_from(&condition.type_)?,
                status_from(&condition.status),
                since,
            ))
        };
        Self(conditions.iter().filter_map(one).collect())
    }

    fn since(&self, kind: ConditionType, status: ConditionStatus) -> Option<&Time> {
        let same = |(one, its, _): &&(ConditionType, ConditionStatus, Time)| *one == kind && *its == status;
        self.0.iter().find(same).map(|(_, _, since)| since)
    }
}

fn type_from(text: &str) -> Option<ConditionType> {
    let kinds = [
        ConditionType::Valid,
        ConditionType::Ready,
        ConditionType::Conflict,
        ConditionType::Arrived,
    ];
    kinds.into_iter().find(|kind| kind.as_str() == text)
}

fn status_from(text: &str) -> ConditionStatus {
    match text {
        STATUS_TRUE => ConditionStatus::True,
        STATUS_FALSE => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    }
}

fn condition_from(condition: &KubernetesCondition) -> Option<Condition> {
    Some(Condition {
        kind: type_from(&condition.type_)?,
        status: status_from(&condition.status),
        reason: condition.reason.as_str().into(),
        message: condition.message.as_str().into(),
        observed_generation: condition.observed_generation,
    })
}

/// Conditions as they are applied over those that are there.
pub(crate) fn conditions_json(
    wanted: &[Condition],
    found: Option<&Transitions>,
    now: Timestamp,
) -> Vec<Value> {
    let one = |condition: &Condition| {
        let status = status_text(condition.status);
        let before = found.and_then(|found| found.since(condition.kind, condition.status));
        let since = before.map_or_else(|| json!(whole_seconds(now)), |since| json!(since));
        let mut json = json!({
            "type": condition.kind.as_str(), "status": status, "reason": &*condition.reason,
            "message": &*condition.message, "lastTransitionTime": since,
        });
        if let Some(generation) = condition.observed_generation {
            json["observedGeneration"] = json!(generation);
        }
        json
    };
    wanted.iter().map(one).collect()
}

fn status_text(status: ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => STATUS_TRUE,
        ConditionStatus::False => STATUS_FALSE,
        ConditionStatus::Unknown => STATUS_UNKNOWN,
    }
}

/// The API server keeps whole seconds.
fn whole_seconds(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}
