//! The conditions of this cluster's own ServiceExports, and the Events about them. Valid is the agent's verdict and
//! needs no hub, but for an export that the hub does not take and says so; Ready and Conflict are the hub's, of the generation that it judged, and stay as they are while it
//! has not spoken.

use std::collections::BTreeMap;

use model::{Conflict, ExportStatus, ServiceKey};

use super::{
    action::{Action, Plan},
    content::{Condition, ConditionStatus, ConditionType},
    desired::Desired,
    view::{FoundExport, LocalConfig, ServiceView, Validity},
};

/// Longest message of a condition, in characters (the API server's bound).
const MESSAGE_CHARACTERS_MAX: usize = 32_768;
/// Separator of conflict messages and of reasons in one condition.
const REASON_SEPARATOR: &str = ",";
/// Slices that are named in the condition Valid, at most.
const SLICES_NAMED_MAX: usize = 5;
/// Reason of Ready while this cluster is no member any more. Ours.
const REASON_MEMBERSHIP_ENDED: &str = "MembershipEnded";
const MEMBERSHIP_ENDED: &str =
    "the membership of this cluster in its clusterset has ended: no other cluster imports this Service";
/// Reason of the Event about a slice that stays behind. Ours.
const REASON_SLICE_NOT_EXPORTED: &str = "SliceNotExported";
/// Reason of the Event about labels and annotations that stay behind. Ours.
const REASON_METADATA_NOT_EXPORTED: &str = "MetadataNotExported";
/// Reason of Arrived when every cluster holds the import. Ours.
const REASON_EVERYWHERE: &str = "InAllClusters";
/// Reason of Arrived when some cluster does not. Ours.
const REASON_NOT_EVERYWHERE: &str = "NotInAllClusters";
/// Joins the sentences of the condition Valid.
const SENTENCE_SEPARATOR: &str = ". ";

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
    let left_behind = left_behind(desired, view, export, service);
    let events = events(export, &conditions, &left_behind);
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
    if desired.is_membership_ended() {
        return ended(view, export);
    }
    let judged = judgement(desired, export, service);
    if let Some(status) = judged
        && let Some(denial) = &status.denial
    {
        return invalid(status.generation, denial.reason.as_str(), &denial.message);
    }
    let said = left_behind(desired, view, export, service);
    let said: Vec<String> = said.into_iter().map(|(_, words)| words).collect();
    let mut conditions = vec![condition(
        ConditionType::Valid,
        ConditionStatus::True,
        "Valid",
        &said.join(SENTENCE_SEPARATOR),
        Some(export.generation),
    )];
    match judged {
        Some(status) => {
            conditions.extend(judged_conditions(status));
            conditions.extend(arrived(desired, export, service, status.generation));
        }
        None => conditions.extend(unjudged_conditions(desired, view, export, config, service)),
    }
    conditions
}

/// The parts of a valid export that reach no import: the reason of an Event, and the words.
fn left_behind(
    desired: &Desired,
    view: &ServiceView,
    export: &FoundExport,
    service: &ServiceKey,
) -> Vec<(&'static str, String)> {
    let judged = judgement(desired, export, service);
    let by_hub = judged.map(|status| &*status.left_out).unwrap_or_default();
    let slices = [unexported(&view.unexported_slices), by_hub.to_owned()];
    let slices = slices.into_iter().map(|words| (REASON_SLICE_NOT_EXPORTED, words));
    let metadata = export.metadata_left_out.as_ref().to_owned();
    let all = slices.chain([(REASON_METADATA_NOT_EXPORTED, metadata)]);
    all.filter(|(_, words)| !words.is_empty()).collect()
}

/// Nothing that a hub ever said of the export holds any more; whether it is valid is the agent's word.
fn ended(view: &ServiceView, export: &FoundExport) -> Vec<Condition> {
    let generation = Some(export.generation);
    let unexported = unexported(&view.unexported_slices);
    vec![
        condition(
            ConditionType::Valid,
            ConditionStatus::True,
            "Valid",
            &unexported,
            generation,
        ),
        condition(
            ConditionType::Ready,
            ConditionStatus::False,
            REASON_MEMBERSHIP_ENDED,
            MEMBERSHIP_ENDED,
            generation,
        ),
    ]
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

/// The condition Arrived. The old one stays until a hub says something, so that a restart of agent or hub writes nothing.
fn arrived(
    desired: &Desired,
    export: &FoundExport,
    service: &ServiceKey,
    generation: i64,
) -> Option<Condition> {
    let Some(arrival) = desired.arrival(service) else {
        let mut found = export.conditions.iter();
        return found.find(|found| found.kind == ConditionType::Arrived).cloned();
    };
    let (status, reason) = if arrival.is_everywhere() {
        (ConditionStatus::True, REASON_EVERYWHERE)
    } else {
        (ConditionStatus::False, REASON_NOT_EVERYWHERE)
    };
    Some(condition(
        ConditionType::Arrived,
        status,
        reason,
        &arrival.words(),
        Some(generation),
    ))
}

/// The hub has not spoken about this export. Its earlier status stays until the hub certainly does not know the export.
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

/// Message about slices that stay although their export is valid.
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

/// A fault that is new, or has another reason, is worth an Event. `left_behind` are the parts of Valid's message.
fn events(export: &FoundExport, conditions: &[Condition], left_behind: &[(&str, String)]) -> Vec<Action> {
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
            events.push(in_one_word(&now).map_or_else(
                || event(&now.reason, &now.message),
                |(reason, message)| event(reason, &message),
            ));
        }
    }
    if let Some(now) = stated(conditions, ConditionType::Valid)
        && now.status == ConditionStatus::True
    {
        let before = stated(&export.conditions, ConditionType::Valid);
        let said = before.filter(|before| before.status == ConditionStatus::True);
        let said = said.map(|before| before.message).unwrap_or_default();
        let news = left_behind.iter().filter(|(_, words)| !said.contains(&**words));
        events.extend(news.map(|(reason, words)| event(reason, words)));
    }
    events
}

/// An Event's reason is one word, the first of several; its message has them all. Absent when there is only one.
fn in_one_word(condition: &Condition) -> Option<(&str, String)> {
    let (first, _) = condition.reason.split_once(REASON_SEPARATOR)?;
    let all = condition.reason.replace(REASON_SEPARATOR, ", ");
    Some((first, format!("{all}: {}", condition.message)))
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
