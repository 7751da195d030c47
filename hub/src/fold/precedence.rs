//! Who is older: the one order that decides every disagreement.

use std::sync::Arc;

use shared::model::{ClusterId, Export, Revision, ServiceKey};

use super::State;

/// One cluster's export of a service.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) cluster: &'a ClusterId,
    pub(super) revision: Revision,
    pub(super) export: &'a Arc<Export>,
}

/// All exports of a service by precedence: creationTimestamp as the API server states it, then cluster id.
pub(super) fn candidates<'a>(state: &'a State, service: &ServiceKey) -> Vec<Candidate<'a>> {
    let exports = state.exporters(service).filter_map(|cluster| {
        let (revision, export) = state.current_member(cluster)?.export(service)?;
        Some(Candidate {
            cluster,
            revision,
            export,
        })
    });
    let mut candidates: Vec<Candidate<'a>> = exports.collect();
    candidates.sort_by_key(|candidate| (candidate.export.created_at, candidate.cluster));
    candidates
}
