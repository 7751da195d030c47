//! Conditions ↔ plain values. lastTransitionTime changes only when the status does.

use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::{
    Condition as KubernetesCondition,
    conditions::{STATUS_FALSE, STATUS_TRUE, STATUS_UNKNOWN},
};

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

fn condition_from(condition: &KubernetesCondition) -> Option<Condition> {
    let kinds = [
        ConditionType::Valid,
        ConditionType::Ready,
        ConditionType::Conflict,
    ];
    Some(Condition {
        kind: kinds.into_iter().find(|kind| kind.as_str() == condition.type_)?,
        status: match condition.status.as_str() {
            STATUS_TRUE => ConditionStatus::True,
            STATUS_FALSE => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        },
        reason: condition.reason.as_str().into(),
        message: condition.message.as_str().into(),
        observed_generation: condition.observed_generation,
    })
}

/// Conditions as they are applied over those that are there.
pub(crate) fn conditions_json(
    wanted: &[Condition],
    found: &[KubernetesCondition],
    now: Timestamp,
) -> Vec<Value> {
    let one = |condition: &Condition| {
        let status = status_text(condition.status);
        let before = found
            .iter()
            .find(|found| found.type_ == condition.kind.as_str() && found.status == status);
        let since = before.map_or_else(
            || json!(whole_seconds(now)),
            |found| json!(found.last_transition_time),
        );
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
