//! What the hub says of each ServiceExport: the same conflicts to all exporters of a service.

use std::sync::Arc;

use shared::model::{ClusterId, Conflict, ExportStatus};

use super::precedence::Candidate;

/// The status of every candidate's export.
pub(super) fn derive(
    candidates: &[Candidate<'_>],
    conflicts: &Arc<[Conflict]>,
) -> Vec<(ClusterId, ExportStatus)> {
    let exporters = u32::try_from(candidates.len()).unwrap_or(u32::MAX);
    let status = |candidate: &Candidate<'_>| ExportStatus {
        service: candidate.export.service.clone(),
        uid: candidate.export.uid.clone(),
        generation: candidate.export.generation,
        conflicts: conflicts.to_vec(),
        exporters,
    };
    candidates
        .iter()
        .map(|candidate| (candidate.cluster.clone(), status(candidate)))
        .collect()
}
