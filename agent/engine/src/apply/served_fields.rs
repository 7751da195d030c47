//! Fields that the served schemas of ServiceImport and ServiceExport declare: an apply that names another field is HTTP
//! 500. Reads OpenAPI v3 at start and when its hash changes; it never looks at objects.

use api::{
    names::{MULTICLUSTER_API_VERSION, MULTICLUSTER_OLDER_API_VERSION},
    server::Client,
};
use serde_json::Value;

use crate::plan::ServedFields;

/// The index of OpenAPI documents.
const INDEX: &str = "/openapi/v3";
/// The API server's own kinds in it, Service among them.
const CORE: &str = "api/v1";

/// Fields to assume of a cluster whose document does not describe the kind: those of mcs-api v0.5.0.
const UNDESCRIBED: ServedFields = ServedFields {
    endpoint_slice_objects: false,
    ..ServedFields::ALL
};

/// Addresses of documents as the index states them, hashes included; absent when the group is not served.
pub(crate) struct Documents {
    /// The documents that may describe ServiceImport and ServiceExport, that of the preferred version first.
    pub(crate) multicluster: Vec<String>,
    /// Hash for the API server's own kinds, which differs between versions.
    pub(crate) core: Option<String>,
}

/// Reads the index.
pub(crate) async fn documents(client: &Client) -> Result<Documents, api::server::Error> {
    let index: Value = client.document(INDEX).await?;
    let address = |path: &str| {
        let address = index["paths"][path]["serverRelativeURL"].as_str();
        address.map(str::to_owned)
    };
    Ok(Documents {
        multicluster: [MULTICLUSTER_API_VERSION, MULTICLUSTER_OLDER_API_VERSION]
            .iter()
            .filter_map(|version| address(&format!("apis/{version}")))
            .collect(),
        core: address(CORE),
    })
}

/// The fields that these documents declare. For each kind the first document that describes it counts: a version may
/// have a document, and other kinds in it.
pub(crate) async fn read(client: &Client, documents: &[String]) -> Result<ServedFields, api::server::Error> {
    let mut read = Vec::new();
    for address in documents {
        read.push(client.document(address).await?);
    }
    Ok(declared(&read))
}

fn declared(documents: &[Value]) -> ServedFields {
    let described = |kind: &str| documents.iter().find_map(|document| schema(document, kind));
    let mut fields = UNDESCRIBED;
    if let Some(import) = described("ServiceImport") {
        let field = |part: &str, name: &str| &import["properties"][part]["properties"][name];
        let has = |part: &str, name: &str| !field(part, name).is_null();
        fields = ServedFields {
            ip_families: has("spec", "ipFamilies"),
            internal_traffic_policy: has("spec", "internalTrafficPolicy"),
            traffic_distribution: has("spec", "trafficDistribution"),
            conditions: has("status", "conditions"),
            endpoint_slice_objects: has("status", "endpointSliceObjects"),
            second_ip: field("spec", "ips")["maxItems"] != 1,
            ..fields
        };
    }
    if let Some(export) = described("ServiceExport") {
        let condition = &export["properties"]["status"]["properties"]["conditions"]["items"];
        fields.export_generation = !condition["properties"]["observedGeneration"].is_null();
    }
    fields
}

fn schema<'a>(document: &'a Value, kind: &str) -> Option<&'a Value> {
    let schemas = document["components"]["schemas"].as_object()?;
    let is_of = |schema: &&Value| {
        let names = schema["x-kubernetes-group-version-kind"].as_array();
        names.is_some_and(|names| names.iter().any(|name| name["kind"] == kind))
    };
    schemas.values().find(is_of)
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
                "spec": {"properties": {"ipFamilies": {"type": "array"}, "ips": {"maxItems": 1}}},
                "status": {"properties": {"conditions": {}}},
            },
        });
        let list = json!({"x-kubernetes-group-version-kind": [{"kind": "ServiceImportList"}]});
        let other = json!({"components": {"schemas": {"a": list}}});
        let described = json!({"components": {"schemas": {"a": list, "b": schema}}});
        let fields = declared(&[other.clone(), described]);
        assert!(fields.ip_families && fields.conditions);
        assert!(!fields.traffic_distribution && !fields.endpoint_slice_objects && !fields.second_ip);
        assert!(fields.export_generation, "nothing is said of exports");
        assert_eq!(declared(&[other]), UNDESCRIBED);
        assert_eq!(declared(&[]), UNDESCRIBED);
    }

    #[test]
    fn conditions_of_exports_may_have_no_generation() {
        let export = |condition: Value| {
            let conditions = json!({"items": {"properties": condition}});
            let schema = json!({
                "x-kubernetes-group-version-kind": [{"kind": "ServiceExport"}],
                "properties": {"status": {"properties": {"conditions": conditions}}},
            });
            declared(&[json!({"components": {"schemas": {"a": schema}}})]).export_generation
        };
        assert!(export(json!({"reason": {}, "observedGeneration": {}})));
        assert!(!export(json!({"reason": {}})));
    }
}
