//! Owns: what a hub has recorded of a member, as the objects that the oracle reads: for members whose clusters do not
//! tell, one that has none and one of whose reports some wait.
//! Never: asks what the hub derives of it.

use std::sync::Arc;

use api::names::LABEL_KUBERNETES_SERVICE_NAME;
use fold::Member;
use model::{
    ClusterId, EndpointSlice, Export, IpFamily, Metadata, Protocol, ServiceType, SessionAffinity, UnixMillis,
};
use serde_json::{Value, json};

use oracle::Picture;

/// The picture of a member, with those of its endpoints whose addresses may all `pass`.
pub(crate) fn recorded(cluster: &ClusterId, member: &Member, pass: impl Fn(&str) -> bool) -> Picture {
    let exports = || member.exports().map(|(_, export)| export);
    Picture::of(cluster.as_str(), |kind| match kind {
        "Service" => exports().map(|export| Arc::new(service(export))).collect(),
        "ServiceExport" => exports().map(|export| Arc::new(service_export(export))).collect(),
        "EndpointSlice" => {
            let slices = exports().flat_map(|export| member.slices_of(&export.service));
            slices
                .filter_map(|(_, one)| slice(one, &pass).map(Arc::new))
                .collect()
        }
        _ => Vec::new(),
    })
}

fn metadata(export: &Export) -> Value {
    let UnixMillis(created_at) = export.created_at;
    let created_at = jiff::Timestamp::from_millisecond(i64::try_from(created_at).unwrap_or(i64::MAX));
    json!({"namespace": &*export.service.namespace, "name": &*export.service.name, "uid": &*export.uid,
        "creationTimestamp": created_at.unwrap_or_default().to_string()})
}

fn service_export(export: &Export) -> Value {
    json!({"metadata": metadata(export), "spec": {
        "exportedLabels": map(&export.labels), "exportedAnnotations": map(&export.annotations)}})
}

fn map(exported: &Metadata) -> Value {
    let pairs = exported
        .iter()
        .map(|(key, value)| (key.to_string(), json!(&**value)));
    Value::Object(pairs.collect())
}

fn service(export: &Export) -> Value {
    let ports: Vec<Value> = export
        .ports
        .iter()
        .map(|port| json!({"name": &*port.name, "protocol": protocol(port.protocol), "port": port.port}))
        .collect();
    let families: Vec<&str> = export.ip_families.iter().copied().map(family).collect();
    let policies = &export.policies;
    let affinity = match policies.session_affinity {
        SessionAffinity::None => "None",
        SessionAffinity::ClientIp => "ClientIP",
    };
    let mut spec =
        json!({"type": "ClusterIP", "ports": ports, "sessionAffinity": affinity, "ipFamilies": families});
    if export.service_type == ServiceType::Headless {
        spec["clusterIP"] = json!("None");
    }
    if let Some(seconds) = policies.session_affinity_timeout_seconds {
        spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": seconds}});
    }
    if let Some(policy) = &policies.internal_traffic_policy {
        spec["internalTrafficPolicy"] = json!(&**policy);
    }
    if let Some(distribution) = &policies.traffic_distribution {
        spec["trafficDistribution"] = json!(&**distribution);
    }
    json!({"metadata": metadata(export), "spec": spec})
}

/// `None`: it has endpoints, and none may pass.
fn slice(slice: &EndpointSlice, pass: impl Fn(&str) -> bool) -> Option<Value> {
    let passes = |address: &std::net::IpAddr| pass(&address.to_string());
    let passing = slice
        .endpoints
        .values()
        .filter(|endpoint| endpoint.addresses.iter().all(passes));
    let endpoints: Vec<Value> = passing
        .map(
            |endpoint| json!({"addresses": endpoint.addresses, "conditions": {"ready": endpoint.is_ready()}}),
        )
        .collect();
    if endpoints.is_empty() && !slice.endpoints.is_empty() {
        return None;
    }
    let ports: Vec<Value> = slice
        .ports
        .iter()
        .map(|port| json!({"name": &*port.name, "protocol": protocol(port.protocol), "port": port.port}))
        .collect();
    let service = &slice.key.service;
    Some(
        json!({"metadata": {"namespace": &*service.namespace, "name": &*slice.key.name,
            "labels": {LABEL_KUBERNETES_SERVICE_NAME: &*service.name}},
        "addressType": family(slice.address_type), "ports": ports, "endpoints": endpoints}),
    )
}

fn family(family: IpFamily) -> &'static str {
    match family {
        IpFamily::V4 => "IPv4",
        IpFamily::V6 => "IPv6",
    }
}

fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    }
}
