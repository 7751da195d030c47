//! Owns: a provider of Cluster API that is none: its kinds, which take any field, and machines that it says it has after a
//! while.
//! Never: has machines, or is part of the product.

mod machines;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Client,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use serde_json::json;

pub use self::machines::Machines;
use crate::{
    deploy,
    real::cluster_api::{CONTRACT, CONTRACT_LABEL},
};

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
/// Kinds of Cluster API that topologies are made of.
const CORE_KINDS: [&str; 7] = [
    "ClusterClass",
    "Cluster",
    "MachineDeployment",
    "MachinePool",
    "MachineSet",
    "Machine",
    "MachineHealthCheck",
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

/// Has a cluster serve all kinds of this provider, and those of Cluster API, which take any field here too.
///
/// # Errors
///
/// The API server does not take them.
pub async fn install(client: &Client) -> anyhow::Result<()> {
    let definitions = definitions()?.into_iter().map(|definition| {
        let value = serde_json::to_value(definition)?;
        anyhow::Ok(serde_json::from_value::<DynamicObject>(value)?)
    });
    let definitions: Vec<_> = definitions.collect::<Result<_, _>>()?;
    deploy::install_objects(client, &definitions).await
}

/// The definitions of all these kinds.
pub fn definitions() -> anyhow::Result<Vec<CustomResourceDefinition>> {
    CORE_KINDS.into_iter().chain(KINDS).map(definition).collect()
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
