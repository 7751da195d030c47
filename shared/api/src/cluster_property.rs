//! ClusterProperty (KEP-2149): one named fact about the cluster it is in. Field for field upstream's; `names` explains
//! the names.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The property's value.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "about.k8s.io",
    version = "v1beta1",
    kind = "ClusterProperty",
    plural = "clusterproperties",
    singular = "clusterproperty",
    category = "multicluster",
    status = "ClusterPropertyStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))", // spec is optional upstream; the derive refuses a plain serde here
    doc = "A named fact about this cluster, such as its id in the clusterset.",
    printcolumn = r#"{"name":"value","type":"string","jsonPath":".spec.value"}"#,
    printcolumn = r#"{"name":"age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    annotation(
        "api-approved.kubernetes.io",
        "https://github.com/kubernetes/enhancements/pull/3084"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPropertySpec {
    /// The value; never empty.
    #[schemars(length(min = 1))]
    pub value: String,
}

/// Nothing is reported about a property.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterPropertyStatus {}
