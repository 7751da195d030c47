//! ServiceExport → what a plan sees of it, and its conditions as they are applied.

use api::{
    convert::{ExportProblem, NamespaceDenyList, export_from},
    names::MULTICLUSTER_API_VERSION,
};
use jiff::Timestamp;
use model::{ServiceKey, ServicePort};
use serde_json::{Value, json};

use super::condition::{Transitions, conditions_json};
use crate::{
    plan::{InvalidReason, Validity, content::Condition, view::FoundExport},
    watch::{Kept, KeptExport, KeptService},
};

/// The export, judged together with its Service (absent only when it is known that there is none), and the
/// Service's ports if it is valid.
pub(crate) fn judged_export(
    export: &KeptExport,
    service: Option<&KeptService>,
    deny: &NamespaceDenyList,
) -> (FoundExport, Option<Vec<ServicePort>>) {
    let object = export.exported();
    let judged = export_from(object, service.map(KeptService::exported), deny);
    let (validity, metadata_left_out, ports) = match judged {
        Ok(exported) => (
            Validity::Valid,
            exported.metadata_left_out,
            Some(exported.export.ports),
        ),
        Err(problem) => (invalid(&problem), String::new(), None),
    };
    let found = FoundExport {
        uid: export.head().uid.clone(),
        generation: object.metadata.generation.unwrap_or_default(),
        deleting: export.head().deleting,
        validity,
        metadata_left_out: metadata_left_out.into(),
        conditions: export.conditions().to_vec(),
    };
    (found, ports)
}

fn invalid(problem: &ExportProblem) -> Validity {
    let reason = match problem {
        ExportProblem::NoService(_) => InvalidReason::NoService,
        ExportProblem::InvalidServiceType(_) => InvalidReason::InvalidServiceType,
        ExportProblem::InvalidExport(_) => InvalidReason::InvalidExport,
        ExportProblem::NamespaceReserved(_) | ExportProblem::NamespaceDenied(_) => {
            InvalidReason::NamespaceDenied
        }
    };
    Validity::Invalid {
        reason,
        message: problem.to_string().into(),
    }
}

/// The conditions as they are applied over those that are there.
pub(crate) fn export_status_json(
    key: &ServiceKey,
    uid: &str,
    conditions: &[Condition],
    before: Option<&Transitions>,
    now: Timestamp,
) -> Value {
    json!({
        "apiVersion": MULTICLUSTER_API_VERSION, "kind": "ServiceExport",
        "metadata": {"namespace": &*key.namespace, "name": &*key.name, "uid": uid},
        "status": {"conditions": conditions_json(conditions, before, now)},
    })
}
