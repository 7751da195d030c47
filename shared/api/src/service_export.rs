//! ServiceExport (KEP-1645): asks that the Service of the same name be offered to the clusterset.
//! Field for field upstream's, with columns of ours; it never judges an export.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conditions::{Condition, conditions_schema, lenient_conditions};

/// Settings that are exported along with the Service.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "multicluster.x-k8s.io",
    version = "v1beta1",
    kind = "ServiceExport",
    plural = "serviceexports",
    singular = "serviceexport",
    shortname = "svcex",
    shortname = "svcexport",
    category = "multicluster",
    namespaced,
    status = "ServiceExportStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))", // spec is optional upstream; the derive refuses a plain serde here
    doc = "Offers the Service of the same name and namespace to every cluster of the clusterset.",
    printcolumn = r#"{"name":"Valid","type":"string","description":"Whether it can be exported","jsonPath":".status.conditions[?(@.type==\"Valid\")].status"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","description":"Whether the clusterset has it","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Conflict","type":"string","description":"Whether exports of the Service disagree","jsonPath":".status.conditions[?(@.type==\"Conflict\")].status"}"#,
    printcolumn = r#"{"name":"Clusters","type":"string","description":"In how many clusters it arrived, and where it did not","jsonPath":".status.conditions[?(@.type==\"tributary.dev/Arrived\")].message"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceExportSpec {
    /// Labels that the ServiceImport carries in every cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exported_labels: Option<BTreeMap<String, String>>,
    /// Annotations that the ServiceImport carries in every cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exported_annotations: Option<BTreeMap<String, String>>,
}

/// The state of the export.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceExportStatus {
    /// Valid, Ready and Conflict.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "lenient_conditions"
    )]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}
