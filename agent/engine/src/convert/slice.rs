//! Imported EndpointSlice ↔ plain values, and the slices of local Services as their own cluster imports them.

use api::names::{
    ANNOTATION_REVISION, ENDPOINT_SLICE_MANAGER, LABEL_ENDPOINT_SLICE_MANAGED_BY,
    LABEL_KUBERNETES_SERVICE_NAME, LABEL_MANAGED_BY, LABEL_SERVICE_NAME, LABEL_SOURCE_CLUSTER,
};
use k8s_openapi::api::discovery::v1::{Endpoint as KubernetesEndpoint, EndpointSlice};
use model::{ClusterId, Endpoint, EndpointPort, EndpointSlice as LocalSlice, IpFamily, Metadata, Revision};
use serde_json::{Map, Value, json};

use super::{
    boxed, exactly, family_text, metadata_json,
    owned::{OwnedFields, found},
    protocol_from, protocol_text, revision_text,
};
use crate::plan::{
    Found,
    content::{SliceContent, SliceEndpoint, TargetRef},
    view::OwnSlice,
};

/// An existing slice, as a plan sees it.
pub(crate) fn content_of(object: &EndpointSlice) -> Found<SliceContent> {
    found(object, |object| {
        let owned = OwnedFields::of(object);
        let mut labels = owned.metadata("labels", object.metadata.labels.as_ref());
        let mut take = |label: &str| labels.remove(label);
        let managed_by = take(LABEL_MANAGED_BY).is_some();
        let slices_by =
            take(LABEL_ENDPOINT_SLICE_MANAGED_BY).is_some_and(|by| *by == *ENDPOINT_SLICE_MANAGER);
        let source_cluster = take(LABEL_SOURCE_CLUSTER).and_then(|name| ClusterId::new(&name).ok());
        let (service, derived) = (take(LABEL_SERVICE_NAME), take(LABEL_KUBERNETES_SERVICE_NAME));
        let intact = managed_by && slices_by;
        let ports = object.ports.iter().flatten().filter(|_| owned.has(&["ports"]));
        let endpoints = object.endpoints.iter().filter(|_| owned.has(&["endpoints"]));
        let content = SliceContent {
            service,
            source_cluster,
            derived,
            address_type: match object.address_type.as_str() {
                "IPv4" => Some(IpFamily::V4),
                "IPv6" => Some(IpFamily::V6),
                _ => None,
            },
            ports: exactly(ports.filter_map(port_from)),
            endpoints: endpoints.map(endpoint_from).collect(),
            // A map that was emptied keeps its node, a third of a kilobyte for each slice.
            labels: if labels.is_empty() {
                Metadata::new()
            } else {
                labels
            },
        };
        (content, intact)
    })
}

fn port_from(port: &k8s_openapi::api::discovery::v1::EndpointPort) -> Option<EndpointPort> {
    Some(EndpointPort {
        name: port.name.as_deref().unwrap_or_default().into(),
        protocol: protocol_from(port.protocol.as_deref())?,
        port: port.port.map(u16::try_from).transpose().ok()?,
        app_protocol: boxed(&port.app_protocol),
    })
}

/// Whatever cannot be read is missing, and so differs from what is wanted.
fn endpoint_from(endpoint: &KubernetesEndpoint) -> SliceEndpoint {
    let conditions = endpoint.conditions.clone().unwrap_or_default();
    let zones = endpoint
        .hints
        .iter()
        .flat_map(|hints| hints.for_zones.iter().flatten());
    SliceEndpoint {
        endpoint: Endpoint {
            addresses: super::addresses_from(&endpoint.addresses),
            ready: conditions.ready,
            serving: conditions.serving,
            terminating: conditions.terminating,
            hostname: boxed(&endpoint.hostname),
            zone: boxed(&endpoint.zone),
        },
        node_name: boxed(&endpoint.node_name),
        target_ref: target_ref_from(endpoint),
        for_zones: zones.map(|zone| zone.name.as_str().into()).collect(),
    }
}

fn target_ref_from(endpoint: &KubernetesEndpoint) -> Option<Box<TargetRef>> {
    let target = endpoint.target_ref.as_ref()?;
    Some(Box::new(TargetRef {
        kind: boxed(&target.kind),
        namespace: boxed(&target.namespace),
        name: boxed(&target.name),
        uid: boxed(&target.uid),
    }))
}

/// The place of an endpoint: known only in its own cluster.
#[derive(Debug)]
pub(crate) struct Place {
    node_name: Option<Box<str>>,
    target_ref: Option<Box<TargetRef>>,
}

/// The places of the endpoints of a slice, in their order.
pub(crate) fn places_of(object: &EndpointSlice) -> Box<[Place]> {
    let place = |endpoint: &KubernetesEndpoint| Place {
        node_name: boxed(&endpoint.node_name),
        target_ref: target_ref_from(endpoint),
    };
    object.endpoints.iter().map(place).collect()
}

/// A slice of the local Service, with node names and target references.
pub(crate) fn own_from(slice: &LocalSlice, places: &[Place]) -> OwnSlice {
    let endpoints = slice.endpoints.values().zip(places);
    let endpoints = endpoints.map(|(endpoint, place)| SliceEndpoint {
        endpoint,
        node_name: place.node_name.clone(),
        target_ref: place.target_ref.clone(),
        for_zones: Vec::new(),
    });
    OwnSlice {
        name: (*slice.key.name).into(),
        address_type: slice.address_type,
        ports: slice.ports.clone(),
        endpoints: endpoints.collect(),
    }
}

/// The slice as it is applied.
pub(crate) fn slice_json(
    namespace: &str,
    name: &str,
    uid: Option<&str>,
    content: &SliceContent,
    revision: Option<Revision>,
) -> Value {
    let mut labels = content.labels.clone();
    labels.insert(
        LABEL_ENDPOINT_SLICE_MANAGED_BY.into(),
        ENDPOINT_SLICE_MANAGER.into(),
    );
    let source = content
        .source_cluster
        .as_ref()
        .map(|cluster| cluster.as_str().into());
    for (label, value) in [
        (LABEL_SERVICE_NAME, content.service.clone()),
        (LABEL_SOURCE_CLUSTER, source),
        (LABEL_KUBERNETES_SERVICE_NAME, content.derived.clone()),
    ] {
        labels.extend(value.map(|value| (label.into(), value)));
    }
    let revision = revision.map(|revision| (ANNOTATION_REVISION.into(), revision_text(revision)));
    let ports: Vec<Value> = content.ports.iter().map(port_json).collect();
    let endpoints: Vec<Value> = content.endpoints.iter().map(endpoint_json).collect();
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": metadata_json(namespace, name, uid, &labels, &revision.into_iter().collect()),
        "addressType": family_text(content.address_type.unwrap_or(IpFamily::V4)),
        "ports": ports,
        "endpoints": endpoints,
    })
}

fn port_json(port: &EndpointPort) -> Value {
    let mut json = json!({"name": &*port.name, "protocol": protocol_text(port.protocol)});
    if let Some(number) = port.port {
        json["port"] = json!(number);
    }
    if let Some(app_protocol) = &port.app_protocol {
        json["appProtocol"] = json!(&**app_protocol);
    }
    json
}

fn endpoint_json(one: &SliceEndpoint) -> Value {
    let endpoint = &one.endpoint;
    let mut json = json!({"addresses": endpoint.addresses});
    let conditions: Map<String, Value> = [
        ("ready", endpoint.ready),
        ("serving", endpoint.serving),
        ("terminating", endpoint.terminating),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), json!(value?))))
    .collect();
    if !conditions.is_empty() {
        json["conditions"] = Value::Object(conditions);
    }
    for (field, value) in [
        ("hostname", &endpoint.hostname),
        ("zone", &endpoint.zone),
        ("nodeName", &one.node_name),
    ] {
        if let Some(value) = value {
            json[field] = json!(&**value);
        }
    }
    if let Some(target) = &one.target_ref {
        json["targetRef"] = target_ref_json(target);
    }
    if !one.for_zones.is_empty() {
        let zones: Vec<Value> = one
            .for_zones
            .iter()
            .map(|zone| json!({"name": &**zone}))
            .collect();
        json["hints"] = json!({"forZones": zones});
    }
    json
}

fn target_ref_json(target: &TargetRef) -> Value {
    let fields = [
        ("kind", &target.kind),
        ("namespace", &target.namespace),
        ("name", &target.name),
        ("uid", &target.uid),
    ];
    let fields = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), json!(value.as_deref()?))));
    Value::Object(fields.collect())
}

#[cfg(test)]
mod tests {
    use api::names::AGENT_MANAGER;

    use super::*;

    #[test]
    fn labels_of_the_cluster_are_written_and_read_back_and_others_are_not_ours() {
        let content = SliceContent {
            service: Some("cart".into()),
            source_cluster: ClusterId::new("west").ok(),
            derived: None,
            address_type: Some(IpFamily::V4),
            ports: Vec::new(),
            endpoints: [].into(),
            labels: Metadata::from([("team".into(), "payments".into())]),
        };
        let mut json = slice_json("shop", "imported-x", Some("u"), &content, None);
        assert_eq!(json["metadata"]["labels"]["team"], "payments");
        let labels = json["metadata"]["labels"].as_object().unwrap();
        let ours: Map<String, Value> = labels.keys().map(|key| (format!("f:{key}"), json!({}))).collect();
        json["metadata"]["labels"]["theirs"] = json!("x");
        json["metadata"]["managedFields"] = json!([{"manager": AGENT_MANAGER, "operation": "Apply",
            "fieldsV1": {"f:metadata": {"f:labels": ours}}}]);
        let written: EndpointSlice = serde_json::from_value(json).unwrap();
        let Found::Ours(read) = content_of(&written) else {
            panic!("it is ours")
        };
        assert!(read.intact);
        assert_eq!(read.content, content);
    }
}
