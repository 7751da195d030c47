//! Why an import looks as it does, or why there is none: candidates, winners, losers, recorded revisions.
//! It reads the state and uses the very comparisons that derivation uses; nothing is decided here.

use std::{collections::BTreeSet, sync::Arc};

use model::{
    ClusterId, Conflict, ConflictReason, Denial, Export, ExportStatus, PrecedenceClaim, Revision,
    ServiceImport, ServiceKey, UnixMillis, sync::SourceState, visible,
};

use super::{
    Contest, DerivedContent, DerivedKey, MemberStatus, State, conflict, gate::Gate, precedence,
    rules::InForce,
};
use precedence::{Candidate, Refused};

/// Most clusters whose refused or held exports a summary names.
const NAMED_CLUSTERS_MAX: usize = 5;

/// Why an import looks as it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The service asked for.
    pub service: ServiceKey,
    /// The state's revision.
    pub revision: Revision,
    /// One sentence: what is imported, or why nothing is.
    pub summary: String,
    /// The import and the revision that last changed it.
    pub import: Option<(Revision, Arc<ServiceImport>)>,
    /// Oldest first.
    pub candidates: Vec<ExplainedCandidate>,
    /// One for each property of the import; none without an import.
    pub decisions: Vec<PropertyDecision>,
    /// In the order of reasons.
    pub conflicts: Vec<Conflict>,
    /// Exports that were reported and are not taken, by cluster.
    pub refused: Vec<RefusedExport>,
    /// The last dispute over the first place, as a person would say it, and its revision.
    pub precedence: Option<(Revision, String)>,
    /// Without an import: revision of the event that removed it, as far as that is remembered.
    pub ended: Option<Revision>,
}

/// One cluster's export of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedCandidate {
    /// The cluster.
    pub cluster: ClusterId,
    /// 1 for the oldest.
    pub precedence: u32,
    /// Connectivity of the cluster.
    pub state: SourceState,
    /// Revision of the event that recorded the export.
    pub revision: Revision,
    /// creationTimestamp of the ServiceExport.
    pub created_at: UnixMillis,
    /// The export.
    pub export: Arc<Export>,
    /// Its slices by name.
    pub slices: Vec<CandidateSlice>,
    /// Time of its withdrawal, if it is on hold.
    pub held_since: Option<UnixMillis>,
    /// Time at which its membership ends, if it is to leave.
    pub leaving_until: Option<UnixMillis>,
}

/// An export that was reported and is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedExport {
    /// The cluster.
    pub cluster: ClusterId,
    /// Revision of the event that recorded it.
    pub revision: Revision,
    /// Why.
    pub denial: Denial,
}

/// One slice behind a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateSlice {
    /// Its name in its cluster.
    pub name: Box<str>,
    /// Revision of the event that recorded it.
    pub revision: Revision,
    /// Number of its endpoints.
    pub endpoints: u32,
    /// Number of them that take new connections.
    pub ready_endpoints: u32,
    /// False when none of its ports is eligible: importing clusters do not have it.
    pub imported: bool,
}

/// The decision about one property of the import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertyDecision {
    /// The field, as Kubernetes names it.
    pub property: &'static str,
    /// The winning value, as a person would write it.
    pub value: String,
    /// The cluster with the oldest export.
    pub winner: ClusterId,
    /// Revision of the event that recorded its export.
    pub revision: Revision,
    /// The clusters that disagree, by precedence.
    pub losers: Vec<LosingValue>,
}

/// A value that a cluster wanted and did not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LosingValue {
    /// The cluster.
    pub cluster: ClusterId,
    /// Its value.
    pub value: String,
    /// Revision of the event that recorded its export.
    pub revision: Revision,
}

impl Explanation {
    /// The revisions that it names, each once: of the import, of the exports, of what ended it, of the dispute over the
    /// first place, of exports that are not taken, of the slices.
    pub fn recorded(&self) -> Vec<Revision> {
        let import = self.import.iter().map(|(revision, _)| *revision);
        let exports = self.candidates.iter().map(|candidate| candidate.revision);
        let slices = self.candidates.iter().flat_map(|candidate| &candidate.slices);
        let dispute = self.precedence.iter().map(|(revision, _)| *revision);
        let refused = self.refused.iter().map(|refused| refused.revision);
        let all = exports
            .chain(import)
            .chain(self.ended)
            .chain(dispute)
            .chain(refused);
        let mut named = BTreeSet::new();
        let mut recorded: Vec<Revision> = all.chain(slices.map(|slice| slice.revision)).collect();
        recorded.retain(|revision| named.insert(*revision));
        recorded
    }
}

impl State {
    /// Why the import of `service` looks as it does, or why there is none.
    pub fn explain(&self, service: &ServiceKey) -> Explanation {
        let gate = Gate::of(self);
        let (candidates, refused) = precedence::judged(self, service, &gate);
        let refused: Vec<RefusedExport> = refused.into_iter().map(refused_export).collect();
        let import = match self.derived(&DerivedKey::Import(service.clone())) {
            Some(derived) => match &derived.content {
                DerivedContent::Import(import) => Some((derived.revision, import.clone())),
                _ => None,
            },
            None => None,
        };
        let imported = import.as_ref().map(|(_, import)| &**import);
        let conflicts = conflict::conflicts(&candidates, imported, gate.rules());
        Explanation {
            service: service.clone(),
            revision: self.revision(),
            summary: match (&import, candidates.first()) {
                (Some((_, import)), Some(oldest)) => {
                    let imported =
                        imported_summary(service, import, oldest, candidates.len(), conflicts.len());
                    imported + &held_summary(self, &candidates) + &leaving_summary(self, &candidates)
                }
                _ if !refused.is_empty() => refused_summary(service, &refused),
                _ => nothing_summary(self, service),
            },
            decisions: match &import {
                Some((_, import)) => decisions(&candidates, import, gate.rules()),
                None => Vec::new(),
            },
            ended: self.tombstone(&DerivedKey::Import(service.clone())),
            candidates: (1..)
                .zip(&candidates)
                .map(|(place, c)| explained(self, c, place))
                .collect(),
            precedence: self
                .contest(service)
                .map(|contest| (contest.revision, dispute(&candidates, contest))),
            refused,
            import,
            conflicts,
        }
    }

    /// The recorded status of one cluster's export.
    pub fn export_status(&self, cluster: &ClusterId, service: &ServiceKey) -> Option<&Arc<ExportStatus>> {
        let key = DerivedKey::ExportStatus(cluster.clone(), service.clone());
        match &self.derived(&key)?.content {
            DerivedContent::ExportStatus(status) => Some(status),
            _ => None,
        }
    }
}

fn refused_export(refused: Refused<'_>) -> RefusedExport {
    RefusedExport {
        cluster: refused.cluster.clone(),
        revision: refused.revision,
        denial: refused.denial,
    }
}

/// Says which exports became older than others, and which comes first now.
fn dispute(candidates: &[Candidate<'_>], contest: &Contest) -> String {
    let Contest {
        standing, challenger, ..
    } = contest;
    let stands = |claim: &PrecedenceClaim| {
        let first = candidates.first();
        first.is_some_and(|first| *first.cluster == claim.cluster && first.export.uid == claim.uid)
    };
    let came = format!(
        "{} reported an export that it states to be older than the one of {} that stood first (created {} against {}, \
         Unix milliseconds)",
        challenger.cluster, standing.cluster, challenger.created_at.0, standing.created_at.0
    );
    let now = if stands(standing) && candidates.first().is_some_and(|first| first.held) {
        format!(
            "{} keeps the first place until an operator lets it go",
            standing.cluster
        )
    } else if stands(challenger) {
        format!("{} took the first place by it", challenger.cluster)
    } else {
        "neither is decisive now".to_owned()
    };
    format!("{came}: {now}.")
}

fn refused_summary(service: &ServiceKey, refused: &[RefusedExport]) -> String {
    let named = refused.iter().take(NAMED_CLUSTERS_MAX);
    let named = named.map(|refused| format!("{} ({})", refused.cluster, refused.denial.reason.as_str()));
    let mut text = named.collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = refused.len().checked_sub(NAMED_CLUSTERS_MAX) {
        text.push_str(&format!(" and {more} more"));
    }
    format!("{service} is not imported: none of its exports is taken: {text}.")
}

fn explained(state: &State, candidate: &Candidate<'_>, precedence: u32) -> ExplainedCandidate {
    let member = state.member(candidate.cluster);
    let service = &candidate.export.service;
    let slices = member
        .into_iter()
        .flat_map(|member| member.counted_slices_of(service));
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let slices = slices.map(|(revision, slice)| CandidateSlice {
        name: (*slice.key.name).into(),
        revision,
        endpoints: count(slice.endpoints.len()),
        ready_endpoints: count(
            slice
                .endpoints
                .iter()
                .filter(|endpoint| endpoint.is_ready())
                .count(),
        ),
        imported: state
            .derived(&DerivedKey::slice(service, candidate.cluster, &slice.key.name))
            .is_some(),
    });
    ExplainedCandidate {
        cluster: candidate.cluster.clone(),
        precedence,
        state: member.map_or(SourceState::Left, |member| member.source_state()),
        revision: candidate.revision,
        created_at: candidate.export.created_at,
        export: candidate.export.clone(),
        slices: slices.collect(),
        held_since: held_since(state, candidate),
        leaving_until: leaving_until(state, candidate),
    }
}

/// Time at which an export that is on hold was withdrawn.
fn held_since(state: &State, candidate: &Candidate<'_>) -> Option<UnixMillis> {
    let member = state.member(candidate.cluster)?;
    member.taken_back().held_since(&candidate.export.service)
}

/// Time at which the member of an export leaves, if it is to.
fn leaving_until(state: &State, candidate: &Candidate<'_>) -> Option<UnixMillis> {
    Some(state.current_member(candidate.cluster)?.leaving()?.until)
}

/// A sentence on the members that are to leave; empty: none is.
fn leaving_summary(state: &State, candidates: &[Candidate<'_>]) -> String {
    let leaving = candidates.iter().map(|candidate| candidate.cluster);
    let leaving: Vec<&str> = leaving
        .filter(|cluster| state.leaving.contains_key(*cluster))
        .map(ClusterId::as_str)
        .collect();
    let named = leaving
        .iter()
        .take(NAMED_CLUSTERS_MAX)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match (leaving.len(), leaving.len().saturating_sub(NAMED_CLUSTERS_MAX)) {
        (0, _) => String::new(),
        (1, _) => format!(" {named} is to leave: its endpoints count only where no other has ready ones."),
        (_, 0) => format!(" {named} are to leave: their endpoints count only where no other has ready ones."),
        (_, more) => format!(
            " {named} and {more} more are to leave: their endpoints count only where no other has ready ones."
        ),
    }
}

/// A sentence on the exports on hold; empty: there are none.
fn held_summary(state: &State, candidates: &[Candidate<'_>]) -> String {
    let held = candidates
        .iter()
        .filter(|candidate| held_since(state, candidate).is_some());
    let held: Vec<&str> = held.map(|candidate| candidate.cluster.as_str()).collect();
    let named = held
        .iter()
        .take(NAMED_CLUSTERS_MAX)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match (held.len(), held.len().saturating_sub(NAMED_CLUSTERS_MAX)) {
        (0, _) => String::new(),
        (1, _) => format!(" {named} took its export back with most of its others, and it is held."),
        (_, 0) => format!(" {named} took their exports back with most of their others, and they are held."),
        (_, more) => {
            format!(
                " {named} and {more} more took their exports back with most of their others, and they are held."
            )
        }
    }
}

fn decisions(candidates: &[Candidate<'_>], import: &ServiceImport, rules: InForce) -> Vec<PropertyDecision> {
    let Some((oldest, others)) = candidates.split_first() else {
        return Vec::new();
    };
    let decision = |reason: ConflictReason| {
        let losers = others
            .iter()
            .filter(|other| !conflict::agree(reason, oldest.export, other.export, rules));
        PropertyDecision {
            property: property(reason),
            value: match reason {
                ConflictReason::Port => conflict::ports_in_words(&import.ports),
                _ => visible(&conflict::value(reason, oldest.export)),
            },
            winner: oldest.cluster.clone(),
            revision: oldest.revision,
            losers: losers
                .map(|loser| LosingValue {
                    cluster: loser.cluster.clone(),
                    value: visible(&conflict::value(reason, loser.export)),
                    revision: loser.revision,
                })
                .collect(),
        }
    };
    ConflictReason::ALL.into_iter().map(decision).collect()
}

/// The field of ServiceImport or ServiceExport that a reason is about.
fn property(reason: ConflictReason) -> &'static str {
    match reason {
        ConflictReason::Port => "ports",
        ConflictReason::Type => "type",
        ConflictReason::SessionAffinity => "sessionAffinity",
        ConflictReason::SessionAffinityConfig => "sessionAffinityConfig",
        ConflictReason::Labels => "exportedLabels",
        ConflictReason::Annotations => "exportedAnnotations",
        ConflictReason::InternalTrafficPolicy => "internalTrafficPolicy",
        ConflictReason::TrafficDistribution => "trafficDistribution",
        ConflictReason::IpFamily => "ipFamilies",
    }
}

fn imported_summary(
    service: &ServiceKey,
    import: &ServiceImport,
    oldest: &Candidate<'_>,
    exporters: usize,
    conflicts: usize,
) -> String {
    let clusters = match exporters {
        1 => format!("exported by {} alone", oldest.cluster),
        _ if oldest.held => format!(
            "exported by {exporters} clusters, of which {} is held in the first place",
            oldest.cluster
        ),
        _ => format!(
            "exported by {exporters} clusters, of which {} has the oldest export",
            oldest.cluster
        ),
    };
    let conflicts = match conflicts {
        0 => "no conflict".to_owned(),
        1 => "1 conflict".to_owned(),
        more => format!("{more} conflicts"),
    };
    format!(
        "{service} is imported as {} with ports {}: {clusters} (recorded at revision {}); {conflicts}.",
        conflict::value(ConflictReason::Type, oldest.export),
        conflict::ports_in_words(&import.ports),
        oldest.revision,
    )
}

/// Why nothing is imported: never exported, withdrawn, its exporter gone, or only slices without an export.
fn nothing_summary(state: &State, service: &ServiceKey) -> String {
    let removed = state.tombstone(&DerivedKey::Import(service.clone()));
    let gone = removed.and_then(|revision| {
        let mut members = state.members().iter();
        members.find(|(_, member)| member.ended() == Some(revision))
    });
    let slices = state
        .members()
        .iter()
        .filter(|(_, m)| m.slices_of(service).next().is_some());
    let with_slices: Vec<&str> = slices.map(|(cluster, _)| cluster.as_str()).collect();
    let why = match (removed, gone) {
        (Some(revision), Some((cluster, member))) => {
            let how = match member.status() {
                MemberStatus::Evicted => "was evicted",
                _ => "left the clusterset",
            };
            format!("its last exporter {cluster} {how} (revision {revision})")
        }
        (Some(revision), None) => format!("its last export was removed (revision {revision})"),
        (None, _) => "no member exports it, as far as the hub remembers".to_owned(),
    };
    let waiting = if with_slices.is_empty() {
        String::new()
    } else {
        format!(
            " {} reported slices of it, which wait for a ServiceExport.",
            with_slices.join(", ")
        )
    };
    format!("{service} is not imported: {why}.{waiting}")
}
