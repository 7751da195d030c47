//! ServiceExport → what a plan sees of it, and its conditions as they are applied.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};
use shared::{
    api::{
        ServiceExport,
        convert::{ExportProblem, NamespaceDenyList, export_from},
        names::MULTICLUSTER_API_VERSION,
    },
    model::{ServiceKey, ServicePort},
};

use super::{
    condition::{conditions_from, conditions_json},
    owned::OwnedFields,
};
use crate::plan::{InvalidReason, Validity, content::Condition, view::FoundExport};

/// The export, judged together with its Service (absent only when it is known that there is none), and the
/// Service's ports if it is valid.
pub(crate) fn judged_export(
    object: &ServiceExport,
    service: Option<&Service>,
    deny: &NamespaceDenyList,
) -> (FoundExport, Option<Vec<ServicePort>>) {
    let judged = export_from(object, service, deny);
    let (validity, ports) = match judged {
        Ok(export) => (Validity::Valid, Some(export.ports)),
        Err(problem) => (invalid(&problem), None),
    };
    let owned = OwnedFields::of_status(object);
    let status = object.status.as_ref();
    let conditions = status.map(|status| &status.conditions[..]).unwrap_or_default();
    let found = FoundExport {
        uid: object.metadata.uid.as_deref().unwrap_or_default().into(),
        generation: object.metadata.generation.unwrap_or_default(),
        deleting: object.metadata.deletion_timestamp.is_some(),
        validity,
        conditions: conditions_from(&owned, conditions),
    };
    (found, ports)
}

fn invalid(problem: &ExportProblem) -> Validity {
    let reason = match problem {
        ExportProblem::NoService(_) => InvalidReason::NoService,
        ExportProblem::InvalidServiceType(_) => InvalidReason::InvalidServiceType,
        ExportProblem::InvalidExport(_) => InvalidReason::InvalidExport,
        ExportProblem::NamespaceDenied(_) => InvalidReason::NamespaceDenied,
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
    found: Option<&ServiceExport>,
    now: Timestamp,
) -> Value {
    let found = found.and_then(|found| found.status.as_ref());
    let before = found.map(|status| &status.conditions[..]).unwrap_or_default();
    json!({
        "apiVersion": MULTICLUSTER_API_VERSION, "kind": "ServiceExport",
        "metadata": {"namespace": &*key.namespace, "name": &*key.name, "uid": uid},
        "status": {"conditions": conditions_json(conditions, before, now)},
    })
}
