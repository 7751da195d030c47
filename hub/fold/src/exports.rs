//! ServiceExport facts, and what follows from one: the import, every exporter's status, and the slices of
//! clusters whose eligible ports changed.

use std::{collections::BTreeSet, sync::Arc};

use model::{ClusterId, EncodedFact, Export, ExportStatus, FactKey, ServiceImport, ServiceKey};

use super::{
    DerivedContent, DerivedKey, RecordedFact, State, conflict,
    derived::Step,
    gate::Gate,
    import, lost,
    precedence::{self, Candidate},
    remembered, slice, status,
};

pub(super) fn upserted(
    state: &mut State,
    cluster: &ClusterId,
    export: &Arc<Export>,
    fact: &EncodedFact,
    step: &mut Step,
) {
    let recorded = RecordedFact::new(fact, step.revision);
    let (Some(member), Some(recorded)) = (state.member_mut(cluster), recorded) else {
        return;
    };
    let key = FactKey::Export(export.service.clone());
    let before = member.facts.replace(key, recorded);
    let before = before.as_ref().and_then(RecordedFact::export);
    let same_ports = before.is_some_and(|before| before.ports == export.ports);
    // Its withdrawn slices do not count any more: it has slices of its own again, or none.
    let came_back = remembered::came_back(state, cluster, &export.service);
    for key in &came_back {
        if let FactKey::EndpointSlice(slice) = key {
            let derived = DerivedKey::slice(&slice.service, cluster, &slice.name);
            state.derived.remove(&derived, step);
        }
    }
    if !came_back.is_empty() {
        slice::rederive_all(state, &export.service, cluster, step);
    }
    count(state, cluster, &export.service);
    settle_contest(state, &export.service);
    rederive(state, &export.service, step);
    if !same_ports {
        // The name of a port in its slices may have changed.
        slice::rederive_all(state, &export.service, cluster, step);
        lost::settle(state, &export.service, step);
    }
}

/// Counts a cluster among the exporters of a service.
pub(super) fn count(state: &mut State, cluster: &ClusterId, service: &ServiceKey) {
    if state.exporters(service).any(|known| known == cluster) {
        return;
    }
    match state.exporters.get_mut(service) {
        Some(exporters) => drop(exporters.insert(cluster.clone(), ())),
        None => {
            let alone = [(cluster.clone(), ())].into_iter().collect();
            state.exporters.insert(service.clone(), alone);
        }
    }
}

pub(super) fn removed(state: &mut State, cluster: &ClusterId, service: &ServiceKey, step: &mut Step) {
    let Some(member) = state.member_mut(cluster) else {
        return;
    };
    let key = FactKey::Export(service.clone());
    let Some(removed) = member.facts.remove(&key) else {
        return;
    };
    if remembered::take_back(state, cluster, key, removed, step.recorded_at) {
        // It keeps its place, and its endpoints yield to those of others.
        lost::settle(state, service, step);
    } else {
        withdraw(state, cluster, service, step);
    }
}

/// Takes a cluster from the exporters of a service, its export being gone and not held.
pub(super) fn withdraw(state: &mut State, cluster: &ClusterId, service: &ServiceKey, step: &mut Step) {
    if let Some(exporters) = state.exporters.get_mut(service) {
        exporters.remove(cluster);
        if exporters.is_empty() {
            state.exporters.remove(service);
        }
    }
    settle_contest(state, service);
    rederive(state, service, step);
    // A refused export has a status nevertheless, and no part in the import.
    let status = DerivedKey::ExportStatus(cluster.clone(), service.clone());
    state.derived.remove(&status, step);
}

/// A dispute is over when the first export is gone.
fn settle_contest(state: &mut State, service: &ServiceKey) {
    let Some(contest) = state.contests.get(service) else {
        return;
    };
    let standing = &contest.standing;
    let member = state.current_member(&standing.cluster);
    let export = member.and_then(|member| member.counted_export(service));
    if export.is_none_or(|(_, export)| export.uid != standing.uid) {
        state.contests.remove(service);
    }
}

/// Derives everything of a service anew; only real differences become changes.
pub(super) fn rederive(state: &mut State, service: &ServiceKey, step: &mut Step) {
    let gate = Gate::of(state);
    rederive_by(state, service, &gate, false, step);
}

/// Derives again everything that follows from exports and slices: other rules or another policy are in force.
pub(super) fn rederive_all(state: &mut State, step: &mut Step) {
    let gate = Gate::of(state);
    let services: Vec<ServiceKey> = state.exporters.keys().cloned().collect();
    for service in &services {
        rederive_by(state, service, &gate, true, step);
        let count = |cluster: &&ClusterId| state.counts(cluster, service);
        let exporters: Vec<ClusterId> = state.exporters(service).filter(count).cloned().collect();
        for cluster in &exporters {
            slice::rederive_all(state, service, cluster, step);
        }
        lost::settle(state, service, step);
    }
}

/// `judge_addresses`: the earlier findings about addresses are not valid any more.
fn rederive_by(state: &mut State, service: &ServiceKey, gate: &Gate, judge_addresses: bool, step: &mut Step) {
    let import_key = DerivedKey::Import(service.clone());
    let before = match state.derived.get(&import_key).map(|derived| &derived.content) {
        Some(DerivedContent::Import(import)) => Some(import.clone()),
        _ => None,
    };
    let (candidates, refused) = precedence::judged(state, service, gate);
    let after = import::derive(service, &candidates, gate.rules()).map(Arc::new);
    let conflicts: Arc<[_]> = conflict::conflicts(&candidates, after.as_deref(), gate.rules()).into();
    // Slices only come with a judgement of their own: where nothing was left out, nothing is after one of them went.
    let nothing_is_left_out =
        |known: &ExportStatus| !judge_addresses && known.denial.is_none() && known.left_out.is_empty();
    let left_out = |candidate: &Candidate<'_>| {
        let known = state.export_status(candidate.cluster, service);
        match known.filter(|known| nothing_is_left_out(known)) {
            Some(known) => known.left_out.clone(),
            None => left_out_of(state, service, candidate.cluster, gate),
        }
    };
    let statuses = status::derive(&candidates, &conflicts, left_out, &refused);

    match &after {
        Some(import) => {
            let content = DerivedContent::Import(import.clone());
            state.derived.set(import_key, content, step);
        }
        None => state.derived.remove(&import_key, step),
    }
    for (cluster, status) in statuses {
        set_status(state, cluster, status, step);
    }
    rederive_clusters(state, service, before.as_deref(), after.as_deref(), step);
}

fn set_status(state: &mut State, cluster: ClusterId, status: ExportStatus, step: &mut Step) {
    let key = DerivedKey::ExportStatus(cluster, status.service.clone());
    let content = DerivedContent::ExportStatus(Arc::new(status));
    state.derived.set(key, content, step);
}

fn left_out_of(state: &State, service: &ServiceKey, cluster: &ClusterId, gate: &Gate) -> Arc<str> {
    let member = state.current_member(cluster).into_iter();
    let slices = member.flat_map(|member| member.counted_slices_of(service));
    gate.addresses(cluster).words(slices.map(|(_, slice)| slice))
}

/// Finds again the endpoints of one export that are left out, after one of its slices changed. `leaves_out`: it has
/// such now. If there is none and was none, nothing is counted: the status has the earlier number.
pub(super) fn rejudge_addresses(
    state: &mut State,
    service: &ServiceKey,
    cluster: &ClusterId,
    leaves_out: bool,
    step: &mut Step,
) {
    let known = state.export_status(cluster, service);
    let concerned = |known: &ExportStatus| leaves_out || !known.left_out.is_empty();
    let Some(known) = known.filter(|known| known.denial.is_none() && concerned(known)) else {
        return;
    };
    let left_out = left_out_of(state, service, cluster, &Gate::of(state));
    let status = ExportStatus {
        left_out,
        ..(**known).clone()
    };
    set_status(state, cluster.clone(), status, step);
}

/// Slices and statuses of clusters that stopped exporting go; slices are derived again if the ports changed that their
/// cluster may serve.
fn rederive_clusters(
    state: &mut State,
    service: &ServiceKey,
    before: Option<&ServiceImport>,
    after: Option<&ServiceImport>,
    step: &mut Step,
) {
    let clusters = |import: Option<&ServiceImport>| -> BTreeSet<ClusterId> {
        import
            .into_iter()
            .flat_map(|i| i.clusters.keys().cloned())
            .collect()
    };
    let (exported, exports) = (clusters(before), clusters(after));
    for cluster in exported.difference(&exports) {
        let status = DerivedKey::ExportStatus(cluster.clone(), service.clone());
        let still_exports = state.exporters(service).any(|exporter| exporter == cluster);
        if !still_exports {
            state.derived.remove(&status, step);
        }
        state.derived.remove_slices(service, cluster, step);
    }
    for cluster in &exports {
        if !slice::same_filter(before, after, cluster) && state.counts(cluster, service) {
            slice::rederive_all(state, service, cluster, step);
        }
    }
    lost::settle(state, service, step);
}
