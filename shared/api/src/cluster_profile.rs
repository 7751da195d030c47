//! ClusterProfile (KEP-4322): one cluster of an inventory, as its manager sees it.
//! Field for field upstream's v1alpha1; it never holds a secret. What another manager wrote by another version's definition
//! is left out when it is read: one profile must not make all of them unreadable.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    conditions::{Condition, conditions_schema, lenient_conditions, lenient_list},
    names::PROFILE_PROPERTY_VALUE_CHARS_MAX,
};

/// The cluster's manager and display name.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "multicluster.x-k8s.io",
    version = "v1alpha1",
    kind = "ClusterProfile",
    plural = "clusterprofiles",
    singular = "clusterprofile",
    namespaced,
    status = "ClusterProfileStatus",
    derive = "PartialEq",
    doc = "One cluster of the inventory that this namespace is."
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterProfileSpec {
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The manager that owns this profile; fixed for the profile's life.
    pub cluster_manager: ClusterManager,
}

/// A manager of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self == oldSelf",
    "message": "ClusterManager is immutable",
}]))]
pub struct ClusterManager {
    /// The manager's name, equal to the label `x-k8s.io/cluster-manager`.
    pub name: String,
}

/// The manager's knowledge of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterProfileStatus {
    /// ControlPlaneHealthy and Joined.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "lenient_conditions"
    )]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// Versions of what the cluster runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<ClusterVersion>,
    /// The cluster's ClusterProperties, and what its manager adds.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "lenient_list")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub properties: Vec<Property>,
    /// Deprecated name of accessProviders, which wins where both name a provider.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "lenient_list")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub credential_providers: Vec<AccessProvider>,
    /// Ways to reach the cluster, without credentials.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "lenient_list")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub access_providers: Vec<AccessProvider>,
}

/// Versions of what the cluster runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClusterVersion {
    /// The API server's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
}

/// One property of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Property {
    /// The property's name, as in the cluster.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The property's value, as in the cluster.
    #[schemars(length(min = 1, max = PROFILE_PROPERTY_VALUE_CHARS_MAX))]
    pub value: String,
    /// Time at which the value was last seen in the cluster, not when it was written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_observed_time: Option<Time>,
}

/// One way to reach the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccessProvider {
    /// The provider's name, which the consumer's own configuration explains.
    pub name: String,
    /// The address and the means to connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<AccessCluster>,
}

/// The address and the means to connect: a cluster entry as in a kubeconfig.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AccessCluster {
    /// The API server's URL.
    pub server: String,
    /// The name to expect in the server's certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_server_name: Option<String>,
    /// True if the server's certificate is not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure_skip_tls_verify: Option<bool>,
    /// Path of a file with the certificate authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_authority: Option<String>,
    /// The certificate authority itself, PEM in base64; goes before the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "byte"))]
    pub certificate_authority_data: Option<String>,
    /// A proxy to go through: http, https or socks5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_url: Option<String>,
    /// True if responses are not compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_compression: Option<bool>,
    /// Anything else that a provider needs to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<NamedExtension>,
}

/// Free-form information under a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedExtension {
    /// Consumer that the information is for.
    pub name: String,
    /// The information: an object of any shape.
    #[schemars(schema_with = "any_object")]
    pub extension: serde_json::Map<String, serde_json::Value>,
}

fn any_object(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "description": "The information: an object of any shape.",
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// By another manager, under a definition of another version.
    #[test]
    fn elements_that_another_version_wrote_do_not_make_a_profile_unreadable() {
        let profile: ClusterProfile = serde_json::from_value(json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
            "metadata": {"name": "east", "namespace": "fleet"},
            "spec": {"clusterManager": {"name": "other"}},
            "status": {
                "properties": [{"name": "a"}, {"name": "b", "value": "1"}],
                "accessProviders": [
                    {"name": "old", "cluster": {"url": "https://east"}},
                    {"name": "today", "cluster": {"server": "https://east"}},
                ],
                "credentialProviders": {"old": {}},
            },
        }))
        .expect("it can be read");
        let status = profile.status.expect("there is one");
        assert_eq!(status.properties.len(), 1);
        assert_eq!(status.properties[0].name, "b");
        assert_eq!(status.access_providers.len(), 1);
        assert_eq!(status.access_providers[0].name, "today");
        assert_eq!(status.credential_providers, []);
    }
}
