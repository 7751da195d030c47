//! ServiceImport (KEP-1645): a service of the clusterset as one cluster sees it.
//! Field for field upstream's; it never says who exports what.

use k8s_openapi::api::core::v1::SessionAffinityConfig;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conditions::{Condition, conditions_schema, lenient_conditions};

/// Most clusterset IPs, and most IP families, of one import: one of each family.
pub const IPS_MAX: usize = 2;

/// The service's type, ports and clusters.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "multicluster.x-k8s.io",
    version = "v1beta1",
    kind = "ServiceImport",
    plural = "serviceimports",
    singular = "serviceimport",
    shortname = "svcim",
    shortname = "svcimport",
    category = "multicluster",
    namespaced,
    status = "ServiceImportStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))", // spec is optional upstream; the derive refuses a plain serde here
    doc = "A service that clusters of the clusterset export under this name and namespace.",
    printcolumn = r#"{"name":"Type","type":"string","description":"The type of this ServiceImport","jsonPath":".spec.type"}"#,
    printcolumn = r#"{"name":"IP","type":"string","description":"The VIP for this ServiceImport","jsonPath":".spec.ips"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ServiceImportSpec {
    /// ClusterSetIP or Headless.
    #[serde(rename = "type")]
    pub type_: ServiceImportType,
    /// The ports of all exporting clusters, merged. Always written, as an empty list if there is none.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub ports: Vec<ServicePort>,
    /// The clusterset IPs in this cluster; none for a headless service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = IPS_MAX))]
    pub ips: Vec<String>,
    /// The IP families of the service, in the order of its IPs: IPv4, IPv6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = IPS_MAX))]
    pub ip_families: Vec<String>,
    /// ClientIP or None; without meaning for a headless service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<String>,
    /// Duration of session affinity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity_config: Option<SessionAffinityConfig>,
    /// Cluster or Local.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_traffic_policy: Option<String>,
    /// Preference among endpoints, as in a Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_distribution: Option<String>,
}

/// The way in which clients reach a service of the clusterset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceImportType {
    #[default]
    #[serde(rename = "ClusterSetIP")]
    #[allow(missing_docs)]
    // a documented variant turns the schema's plain enum into one alternative each
    ClusterSetIp,
    #[allow(missing_docs)]
    Headless,
}

/// One port of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// The port's name, unique within the service; empty for at most one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// TCP, UDP or SCTP. Nothing defaults it here, and DNS needs it: always write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The application protocol of this port, as a hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
    /// The port's number.
    pub port: i32,
}

/// The clusters that the service comes from, and its usability here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceImportStatus {
    /// The clusters that export the service.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub clusters: Vec<ClusterStatus>,
    /// Ready.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "lenient_conditions"
    )]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// Publication of the imported EndpointSlices in this cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint_slice_objects: Option<EndpointSliceObjects>,
}

/// One exporting cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// The cluster's id, an RFC 1123 DNS label.
    pub cluster: String,
}

/// Publication of imported EndpointSlices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)] // as for ServiceImportType
pub enum EndpointSliceObjects {
    Present,
    Absent,
}
