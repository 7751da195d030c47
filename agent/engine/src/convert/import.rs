//! ServiceImport ↔ plain values.

use api::{
    EndpointSliceObjects, ServiceImport, ServiceImportType, ServicePort as ApiPort,
    names::{ANNOTATION_DERIVED_SERVICE, ANNOTATION_REVISION, LABEL_MANAGED_BY, MULTICLUSTER_API_VERSION},
};
use jiff::Timestamp;
use model::{ClusterId, Revision, ServiceKey, ServicePort, ServiceType, derived_name::derived_service_name};
use serde_json::{Value, json};

use super::{
    ANNOTATION_SOURCE_CLUSTERS, add_policies, addresses_from, affinity_from, boxed,
    condition::{Transitions, conditions_from, conditions_json},
    exactly, families_from, family_text, metadata_json,
    owned::{OwnedFields, found, member_of},
    protocol_from, protocol_text, revision_text, sources_from, sources_text,
};
use crate::plan::{
    Found,
    content::{ConditionType, ImportContent, ImportStatus, Policies},
    view::FoundImport,
};

/// An existing import, as a plan sees it.
pub(crate) fn import_of(object: &ServiceImport) -> Found<FoundImport> {
    found(object, |object| {
        let (content, intact) = content_from(object);
        let status = status_from(object);
        (FoundImport { content, status }, intact)
    })
}

fn content_from(object: &ServiceImport) -> (ImportContent, bool) {
    let owned = OwnedFields::of(object);
    let spec = &object.spec;
    let has = |field: &str| owned.has(&["spec", field]);
    let mut labels = owned.metadata("labels", object.metadata.labels.as_ref());
    let mut annotations = owned.metadata("annotations", object.metadata.annotations.as_ref());
    annotations.remove(ANNOTATION_REVISION);
    let derived = annotations.remove(ANNOTATION_DERIVED_SERVICE);
    let sources = annotations.remove(ANNOTATION_SOURCE_CLUSTERS);
    let managed_by = labels.remove(LABEL_MANAGED_BY);
    let client_ip = spec
        .session_affinity_config
        .as_ref()
        .and_then(|config| config.client_ip.as_ref());
    let policies = Policies {
        session_affinity: affinity_from(spec.session_affinity.as_deref()).filter(|_| has("sessionAffinity")),
        session_affinity_timeout_seconds: client_ip
            .and_then(|config| config.timeout_seconds)
            .filter(|_| has("sessionAffinityConfig")),
        internal_traffic_policy: boxed(&spec.internal_traffic_policy)
            .filter(|_| has("internalTrafficPolicy")),
        traffic_distribution: boxed(&spec.traffic_distribution).filter(|_| has("trafficDistribution")),
    };
    let service_type = match spec.type_ {
        ServiceImportType::ClusterSetIp => ServiceType::ClusterSetIp,
        ServiceImportType::Headless => ServiceType::Headless,
    };
    let content = ImportContent {
        service_type: has("type").then_some(service_type),
        ports: when(has("ports"), || exactly(spec.ports.iter().filter_map(port_from))),
        ips: when(has("ips"), || addresses_from(&spec.ips)),
        ip_families: when(has("ipFamilies"), || families_from(Some(&spec.ip_families))),
        policies,
        labels,
        annotations,
        sources: sources_from(sources.as_deref()),
    };
    let name = derived_of(
        object.metadata.namespace.as_deref(),
        object.metadata.name.as_deref(),
    );
    let wanted = (service_type == ServiceType::ClusterSetIp).then_some(name);
    let intact = managed_by.is_some() && derived.as_deref() == wanted.as_deref();
    (content, intact)
}

fn derived_of(namespace: Option<&str>, name: Option<&str>) -> String {
    derived_service_name(namespace.unwrap_or_default(), name.unwrap_or_default())
}

fn when<T>(owned: bool, value: impl FnOnce() -> Vec<T>) -> Vec<T> {
    if owned { value() } else { Vec::new() }
}

fn port_from(port: &ApiPort) -> Option<ServicePort> {
    Some(ServicePort {
        name: port.name.as_deref().unwrap_or_default().into(),
        protocol: protocol_from(port.protocol.as_deref())?,
        port: u16::try_from(port.port).ok()?,
        app_protocol: boxed(&port.app_protocol),
    })
}

fn status_from(object: &ServiceImport) -> ImportStatus {
    let owned = OwnedFields::of_status(object);
    let Some(status) = &object.status else {
        return ImportStatus::default();
    };
    let clusters = status
        .clusters
        .iter()
        .filter(|one| owned.has(&["status", "clusters", &member_of("cluster", &one.cluster)]))
        .filter_map(|one| ClusterId::new(&one.cluster).ok());
    let mut conditions = conditions_from(&owned, &status.conditions);
    conditions.retain(|condition| condition.kind == ConditionType::Ready);
    let present = status.endpoint_slice_objects == Some(EndpointSliceObjects::Present);
    ImportStatus {
        clusters: clusters.collect(),
        ready: conditions.pop(),
        endpoint_slice_objects: present && owned.has(&["status", "endpointSliceObjects"]),
    }
}

/// The import as it is applied.
pub(crate) fn import_json(
    key: &ServiceKey,
    uid: Option<&str>,
    content: &ImportContent,
    revision: Option<Revision>,
) -> Value {
    let port = |port: &ServicePort| {
        let mut json = json!({"protocol": protocol_text(port.protocol), "port": port.port});
        if !port.name.is_empty() {
            json["name"] = json!(&*port.name);
        }
        if let Some(app_protocol) = &port.app_protocol {
            json["appProtocol"] = json!(&**app_protocol);
        }
        json
    };
    let service_type = match content.service_type {
        Some(ServiceType::Headless) => "Headless",
        Some(ServiceType::ClusterSetIp) | None => "ClusterSetIP",
    };
    let ports: Vec<Value> = content.ports.iter().map(port).collect();
    let mut spec = json!({"type": service_type, "ports": ports});
    if !content.ips.is_empty() {
        spec["ips"] = json!(content.ips);
    }
    if !content.ip_families.is_empty() {
        let families: Vec<&str> = content
            .ip_families
            .iter()
            .map(|&family| family_text(family))
            .collect();
        spec["ipFamilies"] = json!(families);
    }
    add_policies(&mut spec, &content.policies);
    let mut annotations = content.annotations.clone();
    if content.service_type != Some(ServiceType::Headless) {
        let derived = derived_of(Some(&key.namespace), Some(&key.name));
        annotations.insert(ANNOTATION_DERIVED_SERVICE.into(), derived.into());
    }
    annotations.insert(ANNOTATION_SOURCE_CLUSTERS.into(), sources_text(&content.sources));
    if let Some(revision) = revision {
        annotations.insert(ANNOTATION_REVISION.into(), revision_text(revision));
    }
    json!({
        "apiVersion": MULTICLUSTER_API_VERSION, "kind": "ServiceImport",
        "metadata": metadata_json(&key.namespace, &key.name, uid, &content.labels, &annotations),
        "spec": spec,
    })
}

/// The status of the import as it is applied over the one that is there.
pub(crate) fn import_status_json(
    key: &ServiceKey,
    uid: Option<&str>,
    status: &ImportStatus,
    before: Option<&Transitions>,
    now: Timestamp,
) -> Value {
    let clusters: Vec<Value> = status
        .clusters
        .iter()
        .map(|cluster| json!({"cluster": cluster.as_str()}))
        .collect();
    let mut json = json!({"clusters": clusters});
    if let Some(ready) = &status.ready {
        json["conditions"] = json!(conditions_json(std::slice::from_ref(ready), before, now));
    }
    if status.endpoint_slice_objects {
        json["endpointSliceObjects"] = json!("Present");
    }
    let mut metadata = json!({"namespace": &*key.namespace, "name": &*key.name});
    if let Some(uid) = uid {
        metadata["uid"] = json!(uid);
    }
    json!({
        "apiVersion": MULTICLUSTER_API_VERSION, "kind": "ServiceImport", "metadata": metadata, "status": json,
    })
}
