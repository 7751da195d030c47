//! The conditions of this cluster's own ServiceExports, and the Events about them. Valid is the agent's verdict and
//! needs no hub, but for an export that the hub does not take and says so; Ready and Conflict are the hub's, of the generation that it judged, and stay as they are while it
//! has not spoken.

use std::collections::BTreeMap;

use shared::model::{Conflict, ExportStatus, ServiceKey};

use super::{
    action::{Action, Plan},
    content::{Condition, ConditionStatus, ConditionType},
    desired::Desired,
    view::{FoundExport, LocalConfig, ServiceView, Validity},
};

/// Longest message of a condition, in characters (the API server's bound).
const MESSAGE_CHARACTERS_MAX: usize = 32_768;
/// What joins conflict messages and reasons of one condition.
const REASON_SEPARATOR: &str = ",";
/// Slices that are named in the condition Valid, at most.
const SLICES_NAMED_MAX: usize = 5;
/// Reason of the Event about a slice that stays behind. Ours.
const REASON_SLICE_NOT_EXPORTED: &str = "SliceNotExported";

/// Plans the status of the export, if there is one.
pub(super) fn plan_export(
    desired: &Desired,
    view: &ServiceView,
    config: &LocalConfig,
    service: &ServiceKey,
    plan: &mut Plan,
) {
    let Some(export) = view.export.as_ref().filter(|export| !export.deleting) else {
        return;
    };
    let mut conditions = match &export.validity {
        Validity::Unknown => return,
        Validity::Invalid { reason, message } => invalid(export.generation, reason.as_str(), message),
        Validity::Valid => valid(desired, view, export, config, service),
    };
    if !config.served.export_generation {
        let all = conditions.iter_mut();
        all.for_each(|condition| condition.observed_generation = None);
    }
    if same(&conditions, &export.conditions) {
        return;
    }
    plan.awaits_hub = conditions.iter().any(is_interim);
    if plan.awaits_hub && view.hub_may_answer {
        return;
    }
    let events = events(export, &conditions);
    plan.actions.push(Action::ApplyExportStatus {
        uid: export.uid.clone(),
        conditions,
    });
    plan.actions.extend(events);
}

fn invalid(generation: i64, reason: &str, message: &str) -> Vec<Condition> {
    let generation = Some(generation);
    vec![
        condition(
            ConditionType::Valid,
            ConditionStatus::False,
            reason,
            message,
            generation,
        ),
        condition(
            ConditionType::Ready,
            ConditionStatus::False,
            "Pending",
            "the ServiceExport is not valid: see the condition Valid",
            generation,
        ),
    ]
}

fn valid(
    desired: &Desired,
    view: &ServiceView,
    export: &FoundExport,
    config: &LocalConfig,
    service: &ServiceKey,
) -> Vec<Condition> {
    let judged = judgement(desired, export, service);
    if let Some(status) = judged
        && let Some(denial) = &status.denial
    {
        return invalid(status.generation, denial.reason.as_str(), &denial.message);
    }
    let left_out = judged.map(|status| &*status.left_out).unwrap_or_default();
    let said = [unexported(&view.unexported_slices), left_out.to_owned()];
    let said: Vec<String> = said.into_iter().filter(|words| !words.is_empty()).collect();
    let mut conditions = vec![condition(
        ConditionType::Valid,
        ConditionStatus::True,
        "Valid",
        &said.join(". "),
        Some(export.generation),
    )];
    match judged {
        Some(status) => conditions.extend(judged_conditions(status)),
        None => conditions.extend(unjudged_conditions(desired, view, export, config, service)),
    }
    conditions
}

/// The hub's word on this very export.
fn judgement<'a>(
    desired: &'a Desired,
    export: &FoundExport,
    service: &ServiceKey,
) -> Option<&'a ExportStatus> {
    let judged = desired.export_status(service).map(|status| &*status.value);
    judged.filter(|status| status.uid == export.uid)
}

/// The hub does not take the export, though nothing is wrong with it here: it serves nobody, this cluster included.
pub(super) fn is_denied(desired: &Desired, view: &ServiceView, service: &ServiceKey) -> bool {
    let judged = view
        .export
        .as_ref()
        .and_then(|export| judgement(desired, export, service));
    judged.is_some_and(|status| status.denial.is_some())
}

/// The hub has committed the export.
fn judged_conditions(status: &ExportStatus) -> [Condition; 2] {
    let generation = Some(status.generation);
    let ready = condition(
        ConditionType::Ready,
        ConditionStatus::True,
        "Exported",
        "",
        generation,
    );
    let conflict = match &status.conflicts[..] {
        [] => condition(
            ConditionType::Conflict,
            ConditionStatus::False,
            "NoConflicts",
            "",
            generation,
        ),
        conflicts => condition(
            ConditionType::Conflict,
            ConditionStatus::True,
            &joined_reasons(conflicts),
            &joined_messages(conflicts),
            generation,
        ),
    };
    [ready, conflict]
}

/// The hub has not spoken about this export. What it said before stays until it certainly does not know it.
fn unjudged_conditions(
    desired: &Desired,
    view: &ServiceView,
    export: &FoundExport,
    config: &LocalConfig,
    service: &ServiceKey,
) -> Vec<Condition> {
    let certain = desired.is_complete(&service.namespace) && desired.sources().is_settled(&config.cluster);
    let kept: Vec<Condition> = export
        .conditions
        .iter()
        .filter(|found| found.kind != ConditionType::Valid)
        .cloned()
        .collect();
    let was_ready = kept
        .iter()
        .any(|found| found.kind == ConditionType::Ready && found.status == ConditionStatus::True);
    if was_ready && !certain {
        return kept;
    }
    vec![condition(
        ConditionType::Ready,
        ConditionStatus::Unknown,
        "Pending",
        view.held_back
            .as_deref()
            .unwrap_or("the hub has not committed this export yet"),
        Some(export.generation),
    )]
}

/// The hub's word is about to replace it.
fn is_interim(condition: &Condition) -> bool {
    condition.kind == ConditionType::Ready && condition.status == ConditionStatus::Unknown
}

/// Reasons in their fixed order, without a space: the reason's pattern allows none.
fn joined_reasons(conflicts: &[Conflict]) -> String {
    let mut reasons: Vec<_> = conflicts.iter().map(|conflict| conflict.reason).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let words: Vec<&str> = reasons.iter().map(|reason| reason.as_str()).collect();
    words.join(REASON_SEPARATOR)
}

fn joined_messages(conflicts: &[Conflict]) -> String {
    let mut sorted: Vec<&Conflict> = conflicts.iter().collect();
    sorted.sort();
    let words: Vec<&str> = sorted.iter().map(|conflict| &*conflict.message).collect();
    words.join(" ")
}

/// What is said of slices that stay behind while the export is valid.
fn unexported(slices: &BTreeMap<Box<str>, Box<str>>) -> String {
    if slices.is_empty() {
        return String::new();
    }
    let named = slices.iter().take(SLICES_NAMED_MAX);
    let mut words: Vec<String> = named.map(|(name, why)| format!("{name}: {why}")).collect();
    if slices.len() > SLICES_NAMED_MAX {
        words.push(format!("and {} more", slices.len() - SLICES_NAMED_MAX));
    }
    format!("EndpointSlices that are not exported: {}", words.join("; "))
}

/// Equal but for the order.
fn same(wanted: &[Condition], found: &[Condition]) -> bool {
    wanted.len() == found.len() && wanted.iter().all(|one| found.contains(one))
}

/// What was not wrong before, or was for another reason, is worth an Event.
fn events(export: &FoundExport, conditions: &[Condition]) -> Vec<Action> {
    let stated = |conditions: &[Condition], kind| conditions.iter().find(|one| one.kind == kind).cloned();
    let event = |reason: &str, message: &str| Action::ExportEvent {
        export_uid: export.uid.clone(),
        reason: reason.into(),
        message: message.into(),
    };
    let mut events = Vec::new();
    for (kind, wrong) in [
        (ConditionType::Valid, ConditionStatus::False),
        (ConditionType::Conflict, ConditionStatus::True),
    ] {
        let Some(now) = stated(conditions, kind).filter(|now| now.status == wrong) else {
            continue;
        };
        let before = stated(&export.conditions, kind).filter(|before| before.status == wrong);
        if before.is_none_or(|before| before.reason != now.reason) {
            events.push(event(&now.reason, &now.message));
        }
    }
    let left_behind = |conditions: &[Condition]| {
        let valid = stated(conditions, ConditionType::Valid);
        valid.filter(|valid| valid.status == ConditionStatus::True && !valid.message.is_empty())
    };
    if let Some(now) = left_behind(conditions)
        && left_behind(&export.conditions).is_none_or(|before| before.message != now.message)
    {
        events.push(event(REASON_SLICE_NOT_EXPORTED, &now.message));
    }
    events
}

fn condition(
    kind: ConditionType,
    status: ConditionStatus,
    reason: &str,
    message: &str,
    observed_generation: Option<i64>,
) -> Condition {
    Condition {
        kind,
        status,
        reason: reason.into(),
        message: message
            .chars()
            .take(MESSAGE_CHARACTERS_MAX)
            .collect::<String>()
            .into(),
        observed_generation,
    }
}
