//! The ServiceImport of a service: every property of the oldest export, ports merged from all.

use model::{ServiceImport, ServiceKey};

use super::{ports, precedence::Candidate, rules::InForce};

/// The import that candidates in order of precedence give; none without an export.
pub(super) fn derive(
    service: &ServiceKey,
    candidates: &[Candidate<'_>],
    rules: InForce,
) -> Option<ServiceImport> {
    let oldest = candidates.first()?.export;
    let exports = candidates.iter().map(|candidate| &*candidate.export.ports);
    let merged = ports::merge(exports, rules);
    let clusters = candidates.iter().map(|candidate| {
        let eligible = ports::eligible(&merged, &candidate.export.ports, rules);
        (candidate.cluster.clone(), eligible)
    });
    Some(ServiceImport {
        service: service.clone(),
        service_type: oldest.service_type,
        policies: oldest.policies.clone(),
        ip_families: oldest.ip_families.clone(),
        labels: oldest.labels.clone(),
        annotations: oldest.annotations.clone(),
        clusters: clusters.collect(),
        ports: merged,
    })
}
