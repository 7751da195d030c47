//! Which fields the served schema of ServiceImport declares: an apply that names another one is HTTP 500.
//! Reads OpenAPI v3 at start and when its hash changes; it never looks at objects.

use http::Request;
use kube::Client;
use serde_json::Value;
use shared::api::names::MULTICLUSTER_API_VERSION;

use crate::plan::ServedFields;

/// The index of OpenAPI documents.
const INDEX: &str = "/openapi/v3";
/// The API server's own kinds in it, Service among them.
const CORE: &str = "api/v1";

/// What a cluster is taken to serve whose document does not describe the kind: mcs-api v0.5.0.
const UNDESCRIBED: ServedFields = ServedFields {
    endpoint_slice_objects: false,
    ..ServedFields::ALL
};

/// Addresses of documents as the index states them, hashes included; absent when the group is not served.
pub(crate) struct Documents {
    /// ServiceImport's.
    pub(crate) imports: Option<String>,
    /// That of the API server's own kinds, which is another one in another version.
    pub(crate) core: Option<String>,
}

/// What the index says.
pub(crate) async fn documents(client: &Client) -> Result<Documents, kube::Error> {
    let index: Value = get(client, INDEX).await?;
    let address = |path: &str| {
        let address = index["paths"][path]["serverRelativeURL"].as_str();
        address.map(str::to_owned)
    };
    Ok(Documents {
        imports: address(&format!("apis/{MULTICLUSTER_API_VERSION}")),
        core: address(CORE),
    })
}

/// The fields that the document at this address declares.
pub(crate) async fn read(client: &Client, document: Option<&str>) -> Result<ServedFields, kube::Error> {
    match document {
        Some(address) => Ok(declared(&get(client, address).await?)),
        None => Ok(UNDESCRIBED),
    }
}

async fn get(client: &Client, address: &str) -> Result<Value, kube::Error> {
    let request = Request::get(address)
        .header("Accept", "application/json")
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    client.request(request).await
}

fn declared(document: &Value) -> ServedFields {
    let kinds = document["components"]["schemas"].as_object();
    let is_import = |schema: &&Value| {
        let names = schema["x-kubernetes-group-version-kind"].as_array();
        names.is_some_and(|names| names.iter().any(|name| name["kind"] == "ServiceImport"))
    };
    let Some(schema) = kinds.and_then(|kinds| kinds.values().find(is_import)) else {
        return UNDESCRIBED;
    };
    let has = |part: &str, field: &str| !schema["properties"][part]["properties"][field].is_null();
    ServedFields {
        ip_families: has("spec", "ipFamilies"),
        internal_traffic_policy: has("spec", "internalTrafficPolicy"),
        traffic_distribution: has("spec", "trafficDistribution"),
        conditions: has("status", "conditions"),
        endpoint_slice_objects: has("status", "endpointSliceObjects"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn declared_fields_are_read_off_the_kinds_schema() {
        let schema = json!({
            "x-kubernetes-group-version-kind": [{"kind": "ServiceImport"}],
            "properties": {
                "spec": {"properties": {"ipFamilies": {"type": "array"}}},
                "status": {"properties": {"conditions": {}}},
            },
        });
        let list = json!({"x-kubernetes-group-version-kind": [{"kind": "ServiceImportList"}]});
        let fields = declared(&json!({"components": {"schemas": {"a": list, "b": schema}}}));
        assert!(fields.ip_families && fields.conditions);
        assert!(!fields.traffic_distribution && !fields.endpoint_slice_objects);
        assert_eq!(declared(&json!({})), UNDESCRIBED);
    }
}
