//! Objects in a few words, without a namespace: the story's own is added when they are applied.
//! Services have no selector, and their slices are made by hand: so simulated and real clusters hold the same.

use serde_json::{Value, json};

/// The spec of a Service with one port named http.
pub(crate) fn plain() -> Value {
    ports(json!([{"name": "http", "port": 80}]))
}

/// The spec of a Service with these ports.
pub(crate) fn ports(ports: Value) -> Value {
    json!({"ports": ports, "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]})
}

/// The spec of a headless Service with one port named http.
pub(crate) fn headless() -> Value {
    with(plain(), json!({"clusterIP": "None"}))
}

/// `spec` with these fields over it.
pub(crate) fn with(mut spec: Value, fields: Value) -> Value {
    if let (Some(spec), Value::Object(fields)) = (spec.as_object_mut(), fields) {
        spec.extend(fields);
    }
    spec
}

/// A Service.
pub(crate) fn service(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

/// A ServiceExport.
pub(crate) fn export(name: &str) -> Value {
    export_with(name, json!({}))
}

/// A ServiceExport with this spec.
pub(crate) fn export_with(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// A slice of addresses of IPv4 behind a Service.
pub(crate) fn slice(service: &str, suffix: &str, ports: Value, endpoints: Value) -> Value {
    slice_of_family("IPv4", service, suffix, ports, endpoints)
}

/// A slice behind a Service.
pub(crate) fn slice_of_family(
    family: &str,
    service: &str,
    suffix: &str,
    ports: Value,
    endpoints: Value,
) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": format!("{service}-{suffix}"),
            "labels": {
                "kubernetes.io/service-name": service,
                "endpointslice.kubernetes.io/managed-by": "e2e.tributary.dev",
            },
        },
        "addressType": family, "ports": ports, "endpoints": endpoints,
    })
}

/// The ports of a slice behind a Service: the pods listen 8000 higher.
pub(crate) fn slice_ports(service_spec: &Value) -> Value {
    let port = |port: &Value| {
        json!({
            "name": port["name"].as_str().unwrap_or_default(),
            "protocol": port["protocol"].as_str().unwrap_or("TCP"),
            "port": 8000 + port["port"].as_u64().unwrap_or_default(),
        })
    };
    let ports = service_spec["ports"].as_array();
    Value::Array(ports.into_iter().flatten().map(port).collect())
}

/// The address of a pod in a cluster.
pub(crate) fn address(cluster: &str, pod: u8) -> String {
    let network = super::CLUSTERS
        .iter()
        .position(|name| *name == cluster)
        .unwrap_or_default();
    format!("192.0.{network}.{pod}")
}
