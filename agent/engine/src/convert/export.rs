//! The conditions of a ServiceExport as they are applied.

use api::names::MULTICLUSTER_API_VERSION;
use jiff::Timestamp;
use model::ServiceKey;
use serde_json::{Value, json};

use super::condition::{Transitions, conditions_json};
use crate::plan::content::Condition;

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
