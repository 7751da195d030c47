//! Owns: the objects that are put into real clusters: Services, exports, slices that carry a number.
//! Never: measures.

use anyhow::Context;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{
    Client,
    api::{Api, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::json;
use shared::api::names;

/// Field manager of the changed slices; their copies have another one.
pub(super) const SLICES_MANAGER: &str = "load.tributary.dev";
const ENDPOINTS: usize = 10;

/// The name of the service, and of its slice, that this number changes.
pub(super) fn name_of(number: u32, slices: usize) -> String {
    format!("cart-{:03}", number as usize % slices)
}

/// Gives a slice this number.
pub(super) async fn change(api: &Api<EndpointSlice>, name: &str, number: u32) -> anyhow::Result<()> {
    let patch = Patch::Merge(json!({"endpoints": endpoints(number)}));
    api.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Creates an object.
pub(super) async fn create(
    client: &Client,
    namespace: Option<&str>,
    object: serde_json::Value,
) -> anyhow::Result<()> {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let api = objects_of(client, namespace, text("apiVersion"), text("kind"));
    let what = format!("cannot create {} {}", text("kind"), object["metadata"]["name"]);
    api.create(&PostParams::default(), &serde_json::from_value(object)?)
        .await
        .context(what)?;
    Ok(())
}

/// The objects of a kind, in a namespace or in the whole cluster.
pub(super) fn objects_of(
    client: &Client,
    namespace: Option<&str>,
    api_version: &str,
    kind: &str,
) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// A Service without a selector.
pub(super) fn service(namespace: &str, name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    })
}

/// Its export.
pub(super) fn export(namespace: &str, name: &str) -> serde_json::Value {
    json!({
        "apiVersion": names::MULTICLUSTER_API_VERSION, "kind": "ServiceExport",
        "metadata": {"name": name, "namespace": namespace},
    })
}

/// Its slice, with a number.
pub(super) fn slice(namespace: &str, name: &str, number: u32) -> serde_json::Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": name, "namespace": namespace,
            "labels": {
                names::LABEL_KUBERNETES_SERVICE_NAME: name,
                names::LABEL_ENDPOINT_SLICE_MANAGED_BY: SLICES_MANAGER,
            },
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        "endpoints": endpoints(number),
    })
}

/// The number is the first address.
fn endpoints(number: u32) -> serde_json::Value {
    let [_, a, b, c] = number.to_be_bytes();
    let address = |index: usize| match index {
        0 => format!("10.{a}.{b}.{c}"),
        _ => format!("172.16.0.{index}"),
    };
    let endpoint = |index| json!({"addresses": [address(index)], "conditions": {"ready": true}});
    (0..ENDPOINTS).map(endpoint).collect()
}

/// The number that a slice carries.
pub(super) fn number_of(slice: &EndpointSlice) -> Option<u32> {
    let address = slice.endpoints.first()?.addresses.first()?;
    let address: std::net::Ipv4Addr = address.parse().ok()?;
    match address.octets() {
        [10, a, b, c] => Some(u32::from_be_bytes([0, a, b, c])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_survives_the_slice() {
        for number in [0, 255, 256, 1 << 20] {
            let object = slice("shop", "cart", number);
            let parsed: EndpointSlice = serde_json::from_value(object).expect("a slice");
            assert_eq!(number_of(&parsed), Some(number));
        }
    }
}
