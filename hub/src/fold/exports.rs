//! ServiceExport facts, and what follows from one: the import, every exporter's status, and the slices of
//! clusters whose eligible ports changed.

use std::{collections::BTreeSet, sync::Arc};

use shared::model::{ClusterId, EncodedFact, Export, FactKey, ServiceImport, ServiceKey};

use super::{
    DerivedContent, DerivedKey, RecordedFact, State, conflict, derived::Step, import, precedence, slice,
    status,
};

pub(super) fn upserted(
    state: &mut State,
    cluster: &ClusterId,
    export: &Arc<Export>,
    fact: &EncodedFact,
    step: &mut Step,
) {
    let Some(member) = state.members.get_mut(cluster) else {
        return;
    };
    let key = FactKey::Export(export.service.clone());
    member.facts.insert(key, RecordedFact::new(fact, step.revision));
    let exporters = state.exporters.entry(export.service.clone()).or_default();
    exporters.insert(cluster.clone());
    rederive(state, &export.service, step);
}

pub(super) fn removed(state: &mut State, cluster: &ClusterId, service: &ServiceKey, step: &mut Step) {
    let Some(member) = state.members.get_mut(cluster) else {
        return;
    };
    if member.facts.remove(&FactKey::Export(service.clone())).is_some() {
        withdraw(state, cluster, service, step);
    }
}

/// Takes a cluster from the exporters of a service, its export fact being gone.
pub(super) fn withdraw(state: &mut State, cluster: &ClusterId, service: &ServiceKey, step: &mut Step) {
    if let Some(exporters) = state.exporters.get_mut(service) {
        exporters.remove(cluster);
        if exporters.is_empty() {
            state.exporters.remove(service);
        }
    }
    rederive(state, service, step);
}

/// Derives everything of a service anew; only real differences become changes.
pub(super) fn rederive(state: &mut State, service: &ServiceKey, step: &mut Step) {
    let import_key = DerivedKey::Import(service.clone());
    let before = match state.derived.get(&import_key).map(|derived| &derived.content) {
        Some(DerivedContent::Import(import)) => Some(import.clone()),
        _ => None,
    };
    let candidates = precedence::candidates(state, service);
    let after = import::derive(service, &candidates).map(Arc::new);
    let conflicts: Arc<[_]> = conflict::conflicts(&candidates, after.as_deref()).into();
    let statuses = status::derive(&candidates, &conflicts);

    match &after {
        Some(import) => {
            let content = DerivedContent::Import(import.clone());
            state.derived.set(import_key, content, step);
        }
        None => state.derived.remove(&import_key, step),
    }
    for (cluster, status) in statuses {
        let key = DerivedKey::ExportStatus(cluster, service.clone());
        let content = DerivedContent::ExportStatus(Arc::new(status));
        state.derived.set(key, content, step);
    }
    rederive_clusters(state, service, before.as_deref(), after.as_deref(), step);
}

/// Slices and statuses of clusters that stopped exporting go; slices are derived anew where the ports that
/// their cluster may serve changed.
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
        state.derived.remove(&status, step);
        state.derived.remove_slices(service, cluster, step);
    }
    for cluster in &exports {
        if !slice::same_filter(before, after, cluster) {
            slice::rederive_all(state, service, cluster, step);
        }
    }
}
