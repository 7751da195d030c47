//! The conditions of each ServiceExport: exporters of a service whose exports are accepted get the same conflicts, the
//! others the reason of the refusal.

use std::sync::Arc;

use model::{ClusterId, Conflict, ExportStatus};

use super::precedence::{Candidate, Refused};

/// The status of every export. `left_out` says which endpoints of one are left out.
pub(super) fn derive(
    candidates: &[Candidate<'_>],
    conflicts: &Arc<[Conflict]>,
    left_out: impl Fn(&Candidate<'_>) -> Arc<str>,
    refused: &[Refused<'_>],
) -> Vec<(ClusterId, ExportStatus)> {
    let exporters = u32::try_from(candidates.len()).unwrap_or(u32::MAX);
    let taken = candidates.iter().map(|candidate| {
        let status = ExportStatus {
            service: candidate.export.service.clone(),
            uid: candidate.export.uid.clone(),
            generation: candidate.export.generation,
            conflicts: conflicts.to_vec(),
            exporters,
            denial: None,
            left_out: left_out(candidate),
        };
        (candidate.cluster.clone(), status)
    });
    let refused = refused.iter().map(|refused| {
        let status = ExportStatus {
            service: refused.export.service.clone(),
            uid: refused.export.uid.clone(),
            generation: refused.export.generation,
            conflicts: Vec::new(),
            exporters,
            denial: Some(refused.denial.clone()),
            left_out: "".into(),
        };
        (refused.cluster.clone(), status)
    });
    taken.chain(refused).collect()
}
