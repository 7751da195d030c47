//! Converts inspected state to messages. One way only, and the only file here that knows both sides. Made to be read by
//! people: hexadecimal hashes, times as times, numbers of endpoints instead of endpoints.

use proto::v1;
use shared::{
    model::{Arrival, ClusterId, KeyFingerprint},
    wire::{self, view},
};

use super::query::{SeenExport, SeenImport, SeenMember};
use crate::{
    fold::{
        AdmittedKey, ExplainedCandidate, Explanation, KeyHolder, Leaving, Profile, ProfileCondition,
        PropertyDecision, RefusedExport, RevokedKey, State, Withheld,
    },
    session::{Report, applied::Standing},
};
use topology_controller::{ObjectExplained, TopologyExplained};

pub(super) fn member(seen: SeenMember, report: Option<Report>, now: u64) -> v1::MemberState {
    let (agent_version, standing) = match report {
        Some(report) => (report.agent_version.into(), report.standing),
        None => (String::new(), None),
    };
    v1::MemberState {
        cluster: seen.cluster.to_string(),
        incarnation: seen.incarnation.0,
        state: view::source_state(seen.state).into(),
        listed: seen.listed,
        connected: seen.connected,
        cluster_fingerprint: seen.cluster_fingerprint.into(),
        key_fingerprints: seen.keys.iter().map(|(key, _)| key.to_string()).collect(),
        keys: keys(seen.keys, seen.contested_keys),
        exports: count(seen.exports),
        endpoint_slices: count(seen.endpoint_slices),
        state_since: Some(view::timestamp(seen.since)),
        agent_version,
        applied: standing.map(|standing| applied(standing, now)),
        withdrawn: seen.withdrawn,
        leaving: seen.leaving.as_ref().map(leaving),
        brake_since: seen.brake_since.map(view::timestamp),
        held_exports: count(seen.held_exports),
        health: seen.health.iter().map(condition).collect(),
        api_servers: seen.api_servers.iter().map(view::api_server).collect(),
    }
}

fn leaving(leaving: &Leaving) -> v1::Leaving {
    v1::Leaving {
        operator: leaving.operator.to_string(),
        since: Some(view::timestamp(leaving.since)),
        until: Some(view::timestamp(leaving.until)),
        evicts: leaving.evicts,
    }
}

/// The policy on lost members in this state.
pub(super) fn loss(state: &State) -> v1::LossSettings {
    let loss = state.loss();
    let members = state.current_member_count() as u64;
    v1::LossSettings {
        action: loss.action.to_string(),
        after_millis: loss.after_millis,
        self_preservation_lost: u32::try_from(loss.too_many(members)).unwrap_or(u32::MAX),
        self_preservation_millis: loss.self_preservation_millis,
        self_preservation_since: state.self_preservation().map(view::timestamp),
    }
}

/// The policy on mass withdrawals.
pub(super) fn brake(state: &State) -> v1::BrakeSettings {
    let brake = state.brake();
    v1::BrakeSettings {
        enabled: brake.enabled,
        exports: brake.exports,
        percent: brake.percent.into(),
        within_millis: brake.within_millis,
        longest_millis: brake.longest_millis,
    }
}

fn keys(admitted: Vec<(KeyFingerprint, AdmittedKey)>, contested: Vec<KeyFingerprint>) -> Vec<v1::MemberKey> {
    let admitted = admitted.into_iter().map(|(key, known)| v1::MemberKey {
        fingerprint: key.to_string(),
        issuer: known.terms.issuer.map(String::from).unwrap_or_default(),
        not_after: known.terms.not_after.map(view::timestamp),
        accepted: wire::acceptance_to_proto(known.terms.accepted).into(),
        accepted_at: known.terms.accepted.map(|_| view::timestamp(known.accepted_at)),
        contested: false,
    });
    let contested = contested.into_iter().map(|key| v1::MemberKey {
        fingerprint: key.to_string(),
        contested: true,
        ..Default::default()
    });
    admitted.chain(contested).collect()
}

pub(super) fn revoked_key(key: KeyFingerprint, revoked: RevokedKey) -> v1::RevokedKey {
    let mut shown = v1::RevokedKey {
        fingerprint: key.to_string(),
        revoked_at: Some(view::timestamp(revoked.at)),
        ..Default::default()
    };
    match revoked.holder {
        KeyHolder::Member(cluster) => shown.cluster = cluster.to_string(),
        KeyHolder::Operator(name) => shown.operator = name.into(),
        KeyHolder::Reader(name) => shown.reader = name.into(),
    }
    shown
}

fn applied(standing: Standing, now: u64) -> v1::MemberApplied {
    let passed = |since: u64| now.saturating_sub(since);
    v1::MemberApplied {
        revision: standing.revision.map(|revision| revision.0),
        took_millis: standing.took_millis,
        waits_millis: standing.waits_since.map(passed),
        parked: standing.parked,
        oldest_parked_millis: standing.parked_since.map(passed),
    }
}

pub(super) fn export(seen: SeenExport, arrival: Option<&Arrival>) -> v1::RecordedExport {
    let conflicts = seen.status.iter().flat_map(|status| &status.conflicts);
    let denial = seen.status.as_ref().and_then(|status| status.denial.as_ref());
    let left_out = seen.status.as_ref().map(|status| status.left_out.to_string());
    v1::RecordedExport {
        cluster: seen.cluster.to_string(),
        revision: seen.revision.0,
        export: Some(view::export(&seen.export)),
        endpoint_slices: count(seen.endpoint_slices),
        endpoints: count(seen.endpoints),
        conflicts: conflicts.map(view::conflict).collect(),
        denial_reason: denial
            .map(|denial| denial.reason.as_str().to_owned())
            .unwrap_or_default(),
        denial_message: denial
            .map(|denial| denial.message.to_string())
            .unwrap_or_default(),
        left_out: left_out.unwrap_or_default(),
        held_since: seen.held_since.map(view::timestamp),
        arrival: arrival.map(wire::arrival::arrival_to_proto),
    }
}

pub(super) fn import(seen: SeenImport) -> v1::RecordedImport {
    v1::RecordedImport {
        revision: seen.revision.0,
        import: Some(view::service_import(&seen.import)),
        endpoint_slices: count(seen.endpoint_slices),
        endpoints: count(seen.endpoints),
    }
}

pub(super) fn profile(shown: &Profile) -> v1::Profile {
    v1::Profile {
        cluster: shown.cluster.to_string(),
        kubernetes_version: shown.kubernetes_version.clone().into(),
        conditions: shown.conditions.iter().map(condition).collect(),
        properties: shown
            .properties
            .iter()
            .map(|property| view::cluster_property(property))
            .collect(),
    }
}

fn condition(shown: &ProfileCondition) -> v1::ProfileCondition {
    v1::ProfileCondition {
        r#type: shown.condition_type.as_str().to_owned(),
        status: shown.status.as_str().to_owned(),
        reason: shown.reason.to_owned(),
        message: shown.message.to_string(),
        last_transition_time: Some(view::timestamp(shown.last_transition)),
    }
}

pub(super) fn explanation(
    epoch: String,
    shown: Explanation,
    imported: Option<SeenImport>,
    withheld: Withheld,
) -> v1::ExplainResponse {
    let summary = [shown.summary, withheld.summary()];
    v1::ExplainResponse {
        epoch,
        revision: shown.revision.0,
        summary: summary.join(" ").trim_end().to_owned(),
        withheld_left_out: count(withheld.more),
        withheld: withheld.named.into_iter().map(withheld_import).collect(),
        import: imported.map(import),
        candidates: shown.candidates.into_iter().map(candidate).collect(),
        decisions: shown.decisions.into_iter().map(decision).collect(),
        conflicts: shown.conflicts.iter().map(view::conflict).collect(),
        refused: shown.refused.into_iter().map(refused_export).collect(),
        precedence: shown.precedence.map(|(_, said)| said).unwrap_or_default(),
        ..Default::default()
    }
}

fn withheld_import((cluster, message): (ClusterId, String)) -> v1::WithheldImport {
    v1::WithheldImport {
        cluster: cluster.to_string(),
        message,
    }
}

fn refused_export(shown: RefusedExport) -> v1::RefusedExport {
    v1::RefusedExport {
        cluster: shown.cluster.to_string(),
        revision: shown.revision.0,
        reason: shown.denial.reason.as_str().to_owned(),
        message: shown.denial.message.to_string(),
    }
}

/// Most objects, variables and findings of a topology that one answer shows, each.
const TOPOLOGY_SHOWN_MAX: usize = 1_000;

/// The parts of a topology.
pub(super) fn topology(cluster: &str, explained: TopologyExplained) -> v1::ExplainResponse {
    let summary = match &explained {
        TopologyExplained { findings, .. } if !findings.is_empty() => {
            format!("Something is wrong in Cluster {cluster} or its class: nothing is planned for it.")
        }
        TopologyExplained { class, version, .. } => {
            format!("Cluster {cluster} is of ClusterClass {class}, and wants {version}.")
        }
    };
    let beyond = |count: usize| count.saturating_sub(TOPOLOGY_SHOWN_MAX);
    let left_out = beyond(explained.variables.len())
        + beyond(explained.objects.len())
        + beyond(explained.findings.len());
    let variables = explained.variables.into_iter().take(TOPOLOGY_SHOWN_MAX);
    let objects = explained.objects.into_iter().take(TOPOLOGY_SHOWN_MAX);
    let topology = v1::TopologyExplanation {
        cluster_class: explained.class,
        version: explained.version,
        upgrade: explained.upgrade,
        variables: variables
            .map(|(name, value)| v1::TopologyVariable {
                name,
                published: value.is_some(),
                value: value.unwrap_or_default(),
            })
            .collect(),
        objects: objects.map(topology_object).collect(),
        findings: explained.findings.into_iter().take(TOPOLOGY_SHOWN_MAX).collect(),
        left_out: count(left_out),
    };
    v1::ExplainResponse {
        summary,
        topology: Some(topology),
        ..Default::default()
    }
}

fn topology_object(object: ObjectExplained) -> v1::TopologyObject {
    let patches = object.patches.into_iter().take(TOPOLOGY_SHOWN_MAX);
    v1::TopologyObject {
        place: object.place,
        kind: object.kind,
        name: object.name,
        action: object.action.to_owned(),
        patches: patches
            .map(|(name, definition, changed)| v1::TopologyPatch {
                name,
                definition: count(definition),
                changed,
            })
            .collect(),
    }
}

fn candidate(shown: ExplainedCandidate) -> v1::Candidate {
    let slices = shown.slices.into_iter().map(|slice| v1::CandidateSlice {
        name: slice.name.into(),
        revision: slice.revision.0,
        endpoints: slice.endpoints,
        ready_endpoints: slice.ready_endpoints,
    });
    v1::Candidate {
        cluster: shown.cluster.to_string(),
        precedence: shown.precedence,
        state: view::source_state(shown.state).into(),
        revision: shown.revision.0,
        created_at: Some(view::timestamp(shown.created_at)),
        export: Some(view::export(&shown.export)),
        slices: slices.collect(),
        held_since: shown.held_since.map(view::timestamp),
        leaving_until: shown.leaving_until.map(view::timestamp),
    }
}

fn decision(shown: PropertyDecision) -> v1::PropertyDecision {
    let losers = shown.losers.into_iter().map(|loser| v1::LosingValue {
        cluster: loser.cluster.to_string(),
        value: loser.value,
        revision: loser.revision.0,
    });
    v1::PropertyDecision {
        property: shown.property.to_owned(),
        value: shown.value,
        winner: shown.winner.to_string(),
        revision: shown.revision.0,
        losers: losers.collect(),
    }
}

pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
