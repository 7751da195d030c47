//! Owns: a provider of Cluster API that is none: its kinds, which take any field, and machines that it says it has after a
//! while.
//! Never: has machines, or is part of the product.

mod machines;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{api::ApiResource, core::GroupVersionKind};
use serde_json::json;

pub use self::machines::Machines;
use crate::real::cluster_api::{CONTRACT, CONTRACT_LABEL};

/// Its API group.
pub const GROUP: &str = "pretend.example.org";
/// Its kinds: infrastructure, control planes, machines and what makes them nodes, each with its templates.
pub const KINDS: [&str; 8] = [
    "Cloud",
    "CloudTemplate",
    "Plane",
    "PlaneTemplate",
    "Host",
    "HostTemplate",
    "Boot",
    "BootTemplate",
];
/// The API group of Cluster API itself.
pub const CORE_GROUP: &str = "cluster.x-k8s.io";

/// A kind of this provider, or of Cluster API.
pub fn resource(kind: &str) -> ApiResource {
    let group = if KINDS.contains(&kind) { GROUP } else { CORE_GROUP };
    let plural = match kind {
        "ClusterClass" => "clusterclasses".to_owned(),
        kind => format!("{}s", kind.to_lowercase()),
    };
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, CONTRACT, kind), &plural)
}

/// The definition of a kind that takes any field.
pub fn definition(kind: &str) -> anyhow::Result<CustomResourceDefinition> {
    let resource = resource(kind);
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let value = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{}", resource.plural, resource.group),
            "labels": {CONTRACT_LABEL: CONTRACT},
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": resource.plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": CONTRACT,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": any, "status": any},
                }},
            }],
        },
    });
    Ok(serde_json::from_value(value)?)
}
