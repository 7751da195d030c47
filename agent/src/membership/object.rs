//! Owns: a property of a member as a Kubernetes object: what is read of it, and how it is applied.
//! Never: decides anything.

use kube::Resource;
use serde_json::{Value, json};
use shared::api::{
    ClusterProperty,
    names::{ABOUT_API_VERSION, AGENT_MANAGER, LABEL_MANAGED_BY},
};

use super::decide::{Maker, Standing, Wanted};
use crate::convert::owned::{OwnedFields, is_ours};

/// Reads an existing property.
pub(super) fn standing(property: &ClusterProperty) -> Standing {
    let maker = if !is_ours(property) {
        Maker::Other
    } else if OwnedFields::of(property).has(&["spec", "value"]) {
        Maker::Agent
    } else {
        Maker::AgentAndOther
    };
    Standing {
        value: property.spec.value.as_str().into(),
        maker,
        deleting: property.meta().deletion_timestamp.is_some(),
    }
}

/// The object to apply; the caller adds the version that it replaces.
pub(super) fn body(wanted: &Wanted<'_>) -> Value {
    json!({
        "apiVersion": ABOUT_API_VERSION, "kind": "ClusterProperty",
        "metadata": {"name": wanted.name, "labels": {LABEL_MANAGED_BY: AGENT_MANAGER}},
        "spec": {"value": wanted.value},
    })
}
