//! Derived Service ↔ plain values. It has no selector and no owner: see docs/design.md, section 8.

use std::net::IpAddr;

use api::names::{LABEL_MANAGED_BY, LABEL_SERVICE_NAME};
use k8s_openapi::api::core::v1::{Service, ServicePort as KubernetesPort};
use model::{Metadata, Protocol, ServiceKey, ServicePort};
use serde_json::{Value, json};

use super::{
    ANNOTATION_SOURCE_CLUSTERS, add_policies, addresses_from, affinity_from, boxed, families_from,
    family_text, metadata_json,
    owned::{OwnedFields, found, member},
    protocol_from, protocol_text, sources_from, sources_text,
};
use crate::plan::{
    Found, Ours,
    content::{DerivedContent, FamilyPolicy, Policies},
    view::FoundDerived,
};

/// The content read of a derived Service of the agent.
#[derive(Debug)]
pub(crate) struct Derived {
    /// The service that our label names.
    of: Option<Box<str>>,
    found: Ours<FoundDerived>,
    /// An apply of ours asked for its IPs.
    states_ips: bool,
    /// All of its ports, whoever wrote them.
    ports: Box<[(Protocol, u16)]>,
}

/// Reads a derived Service; absent when the object is not the agent's.
pub(crate) fn derived_of(object: &Service) -> Option<Derived> {
    let owned = OwnedFields::of(object);
    let mut labels = owned.metadata("labels", object.metadata.labels.as_ref());
    let managed_by = labels.remove(LABEL_MANAGED_BY);
    let of = labels.remove(LABEL_SERVICE_NAME);
    let labelled = managed_by.is_some() && of.is_some();
    let ports = object.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let intact = labelled && ports.clone().all(|port| is_ours(port, &owned)) && is_bare(object);
    let found = found(object, |object| (content_from(object, &owned, labels), intact));
    let Found::Ours(found) = found else { return None };
    let number = |port: &KubernetesPort| {
        Some((
            protocol_from(port.protocol.as_deref())?,
            u16::try_from(port.port).ok()?,
        ))
    };
    Some(Derived {
        of,
        found,
        states_ips: owned.has(&["spec", "clusterIPs"]),
        ports: ports.filter_map(number).collect(),
    })
}

/// The derived Service of `service`, which is there, as a plan sees it; `ours` unless it is not the agent's. One that is derived for another service (fifty bits of a
/// name can collide) is as strange as anybody's.
pub(crate) fn derived_from(ours: Option<&Derived>, service: &ServiceKey) -> Found<FoundDerived> {
    let ours = ours.filter(|derived| derived.of.as_ref().is_none_or(|of| *of == service.name));
    ours.map_or(Found::Stranger, |derived| Found::Ours(derived.found.clone()))
}

/// `labels` are those of the agent's that every derived Service does not have.
fn content_from(object: &Service, owned: &OwnedFields<'_>, labels: Metadata) -> FoundDerived {
    let spec = object.spec.clone().unwrap_or_default();
    let has = |field: &str| owned.has(&["spec", field]);
    let mut annotations = owned.metadata("annotations", object.metadata.annotations.as_ref());
    let sources = annotations.remove(ANNOTATION_SOURCE_CLUSTERS);
    let client_ip = spec.session_affinity_config.and_then(|config| config.client_ip);
    let policies = Policies {
        session_affinity: affinity_from(spec.session_affinity.as_deref()).filter(|_| has("sessionAffinity")),
        session_affinity_timeout_seconds: client_ip
            .and_then(|config| config.timeout_seconds)
            .filter(|_| has("sessionAffinityConfig")),
        internal_traffic_policy: boxed(&spec.internal_traffic_policy)
            .filter(|_| has("internalTrafficPolicy")),
        traffic_distribution: boxed(&spec.traffic_distribution).filter(|_| has("trafficDistribution")),
    };
    let ports = spec.ports.unwrap_or_default();
    let family_policy = match spec.ip_family_policy.as_deref() {
        Some("SingleStack") => Some(FamilyPolicy::SingleStack),
        Some("PreferDualStack") => Some(FamilyPolicy::PreferDualStack),
        _ => None,
    };
    let cluster_ips = addresses_from(&spec.cluster_ips.unwrap_or_default());
    FoundDerived {
        content: DerivedContent {
            ports: ports.iter().filter_map(|port| port_from(port, owned)).collect(),
            policies,
            family_policy: family_policy.filter(|_| has("ipFamilyPolicy")),
            ip_families: families_from(spec.ip_families.as_deref()),
            sources: sources_from(sources.as_deref()),
            labels,
            annotations,
        },
        cluster_ips,
    }
}

/// Fields that a derived Service does not have, and that others can add beside ours.
const FOREIGN_FIELDS: [&str; 3] = ["selector", "externalIPs", "publishNotReadyAddresses"];

/// It sends to the slices alone, at its own address alone.
fn is_bare(object: &Service) -> bool {
    let Some(spec) = &object.spec else { return true };
    let of_its_type = spec.type_.as_deref().is_none_or(|name| name == "ClusterIP");
    of_its_type && !has_foreign_fields(object)
}

fn has_foreign_fields(object: &Service) -> bool {
    object.spec.as_ref().is_some_and(|spec| {
        let has_selector = spec
            .selector
            .as_ref()
            .is_some_and(|selector| !selector.is_empty());
        let has_ips = spec.external_ips.as_ref().is_some_and(|ips| !ips.is_empty());
        has_selector || has_ips || spec.publish_not_ready_addresses == Some(true)
    })
}

/// Returns true if the agent put the port there.
fn is_ours(port: &KubernetesPort, owned: &OwnedFields<'_>) -> bool {
    let protocol = port.protocol.as_deref().unwrap_or("TCP");
    let member = member(&json!({"port": port.port, "protocol": protocol}));
    owned.has(&["spec", "ports", &member])
}

/// A port that is the agent's. Its name and appProtocol are read as they are, whoever set them: kube-proxy joins a port
/// with its endpoints by that name, so a different one cuts them off.
fn port_from(port: &KubernetesPort, owned: &OwnedFields<'_>) -> Option<ServicePort> {
    if !is_ours(port, owned) {
        return None;
    }
    Some(ServicePort {
        name: port.name.as_deref().unwrap_or_default().into(),
        protocol: protocol_from(port.protocol.as_deref())?,
        port: u16::try_from(port.port).ok()?,
        app_protocol: boxed(&port.app_protocol),
    })
}

/// The derived Service as it is applied. IPs that an earlier apply asked for are stated again: leaving them out
/// would ask for their removal.
pub(crate) fn derived_json(
    service: &ServiceKey,
    name: &str,
    uid: Option<&str>,
    content: &DerivedContent,
    asked: &[IpAddr],
    found: Option<&Derived>,
) -> Value {
    let ports: Vec<Value> = content.ports.iter().map(port_json).collect();
    let mut spec = json!({"type": "ClusterIP", "ports": ports});
    if let Some(policy) = content.family_policy {
        spec["ipFamilyPolicy"] = json!(match policy {
            FamilyPolicy::SingleStack => "SingleStack",
            FamilyPolicy::PreferDualStack => "PreferDualStack",
        });
    }
    if !content.ip_families.is_empty() {
        let families: Vec<&str> = content
            .ip_families
            .iter()
            .map(|&family| family_text(family))
            .collect();
        spec["ipFamilies"] = json!(families);
    }
    let mut ips = match found {
        Some(found) => stated_ips(found),
        None => asked.to_vec(),
    };
    ips.truncate(content.ip_families.len().max(1));
    if let Some(first) = ips.first() {
        spec["clusterIP"] = json!(first);
        spec["clusterIPs"] = json!(ips);
    }
    add_policies(&mut spec, &content.policies);
    let mut labels = content.labels.clone();
    labels.insert(LABEL_SERVICE_NAME.into(), service.name.clone());
    let mut annotations = content.annotations.clone();
    annotations.insert(ANNOTATION_SOURCE_CLUSTERS.into(), sources_text(&content.sources));
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": metadata_json(&service.namespace, name, uid, &labels, &annotations),
        "spec": spec,
    })
}

fn stated_ips(found: &Derived) -> Vec<IpAddr> {
    let ips = &found.found.content.cluster_ips;
    if found.states_ips { ips.clone() } else { Vec::new() }
}

fn port_json(port: &ServicePort) -> Value {
    let mut json = json!({"protocol": protocol_text(port.protocol), "port": port.port});
    if !port.name.is_empty() {
        json["name"] = json!(&*port.name);
    }
    if let Some(app_protocol) = &port.app_protocol {
        json["appProtocol"] = json!(&**app_protocol);
    }
    json
}

/// Name of a port that is about to go, followed by protocol and number: nothing else is called so.
const SET_ASIDE_PREFIX: &str = "set-aside-";

/// `body` with the ports of `found` that it does not have, under names that collide with none; absent when there
/// are no such ports.
pub(crate) fn with_others_set_aside(body: &Value, found: &Derived) -> Option<Value> {
    let mut aside = body.clone();
    let wanted = aside["spec"]["ports"].as_array_mut()?;
    let before = wanted.len();
    for &(protocol, port) in &found.ports {
        let protocol = protocol_text(protocol);
        if wanted_port(body, protocol, port.into()).is_none() {
            let name = format!("{SET_ASIDE_PREFIX}{}-{port}", protocol.to_lowercase());
            wanted.push(json!({"name": name, "protocol": protocol, "port": port}));
        }
    }
    (wanted.len() > before).then_some(aside)
}

/// Fields of a port that others can add beside ours, and that are not theirs to decide.
const PORT_FIELDS: [&str; 2] = ["name", "appProtocol"];

/// A merge patch that leaves of `written` only the ports that `body` has, called as there, and none of the fields that a
/// derived Service does not have.
pub(crate) fn removal_of_others(body: &Value, written: &Service) -> Value {
    let ports = written.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let left = ports.filter_map(|port| Some(as_in_body(wanted_like(body, port)?, port)));
    let metadata = &written.metadata;
    let mut removal = json!({
        "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
        "spec": {"ports": left.collect::<Vec<Value>>()},
    });
    if has_foreign_fields(written) {
        for field in FOREIGN_FIELDS {
            removal["spec"][field] = Value::Null;
        }
    }
    removal
}

/// Returns true if `written` has a port that `body` does not have, has one of ours with what `body` does not say, or a field that a
/// derived Service does not have: an apply leaves ports and fields of others in place.
pub(crate) fn has_parts_of_others(body: &Value, written: &Service) -> bool {
    let mut ports = written.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    has_foreign_fields(written)
        || ports.any(|port| match wanted_like(body, port) {
            None => true,
            Some(wanted) => {
                let port = json!(port);
                PORT_FIELDS.iter().any(|field| wanted[*field] != port[*field])
            }
        })
}

fn as_in_body(wanted: &Value, port: &KubernetesPort) -> Value {
    let mut port = json!(port);
    if let Some(fields) = port.as_object_mut() {
        fields.retain(|field, _| !PORT_FIELDS.contains(&&**field) || !wanted[field].is_null());
    }
    port
}

fn wanted_like<'a>(body: &'a Value, port: &KubernetesPort) -> Option<&'a Value> {
    wanted_port(body, port.protocol.as_deref().unwrap_or("TCP"), port.port)
}

fn wanted_port<'a>(body: &'a Value, protocol: &str, port: i32) -> Option<&'a Value> {
    let ports = body["spec"]["ports"].as_array()?;
    ports
        .iter()
        .find(|one| one["port"] == port && one["protocol"] == protocol)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(label: &str) -> Service {
        let fields = json!({"f:metadata": {"f:labels": {
            format!("f:{LABEL_MANAGED_BY}"): {}, format!("f:{LABEL_SERVICE_NAME}"): {},
        }}});
        let object = json!({
            "metadata": {
                "namespace": "shop", "name": "derived-x", "uid": "u",
                "labels": {LABEL_MANAGED_BY: "tributary-agent", LABEL_SERVICE_NAME: label},
                "managedFields": [{"manager": "tributary-agent", "operation": "Apply", "fieldsV1": fields}],
            },
            "spec": {"clusterIPs": ["10.0.0.1"]},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_service_derived_for_another_is_a_strangers() {
        let cart = ServiceKey::new("shop", "cart").unwrap();
        let found = |label| derived_from(derived_of(&service(label)).as_ref(), &cart);
        assert!(found("cart").ours().is_some());
        assert_eq!(found("till"), Found::Stranger);
    }

    #[test]
    fn ips_that_were_not_asked_for_are_not_stated() {
        let cart = ServiceKey::new("shop", "cart").unwrap();
        let object = derived_of(&service("cart"));
        let found = derived_from(object.as_ref(), &cart);
        let content = &found.ours().unwrap().content.content;
        let json = derived_json(&cart, "derived-x", Some("u"), content, &[], object.as_ref());
        assert!(json["spec"]["clusterIP"].is_null());
        let asked = ["10.0.0.1".parse().unwrap()];
        let json = derived_json(&cart, "derived-x", None, content, &asked, None);
        assert_eq!(json["spec"]["clusterIPs"], json!(["10.0.0.1"]));
    }

    #[test]
    fn exported_metadata_is_written_and_read_back_and_that_of_others_is_not_ours() {
        let cart = ServiceKey::new("shop", "cart").unwrap();
        let found = derived_from(derived_of(&service("cart")).as_ref(), &cart);
        let mut content = found.ours().unwrap().content.content.clone();
        content.labels = Metadata::from([("team".into(), "shop".into())]);
        content.annotations = Metadata::from([("example.org/note".into(), "x".into())]);
        let mut json = derived_json(&cart, "derived-x", Some("u"), &content, &[], None);
        assert_eq!(json["metadata"]["labels"][LABEL_SERVICE_NAME], "cart");
        json["metadata"]["labels"]["theirs"] = json!("x");
        let fields = |keys: &[&str]| -> Value {
            let keys = keys.iter().map(|key| (format!("f:{key}"), json!({})));
            Value::Object(keys.collect())
        };
        json["metadata"]["managedFields"] = json!([{"manager": "tributary-agent", "operation": "Apply", "fieldsV1":
            {"f:metadata": {"f:labels": fields(&[LABEL_MANAGED_BY, LABEL_SERVICE_NAME, "team"]),
                "f:annotations": fields(&[ANNOTATION_SOURCE_CLUSTERS, "example.org/note"])}}}]);
        let written: Service = serde_json::from_value(json).unwrap();
        let read = derived_from(derived_of(&written).as_ref(), &cart);
        let read = &read.ours().unwrap().content.content;
        assert_eq!(
            (&read.labels, &read.annotations),
            (&content.labels, &content.annotations)
        );
    }

    #[test]
    fn ports_of_others_are_set_aside_and_then_removed() {
        let body = json!({"spec": {"ports": [{"name": "http", "protocol": "TCP", "port": 80}]}});
        let with_ports = |ports: Value| -> Service {
            let mut object = service("cart");
            object.metadata.resource_version = Some("7".into());
            object.spec.as_mut().unwrap().ports = serde_json::from_value(ports).unwrap();
            object
        };
        let set_aside = |object: &Service| with_others_set_aside(&body, &derived_of(object).unwrap());
        let found =
            with_ports(json!([{"name": "http", "port": 81}, {"name": "dns", "protocol": "UDP", "port": 80}]));
        let aside = set_aside(&found).unwrap();
        let wanted = json!([
            {"name": "http", "protocol": "TCP", "port": 80},
            {"name": "set-aside-tcp-81", "protocol": "TCP", "port": 81},
            {"name": "set-aside-udp-80", "protocol": "UDP", "port": 80},
        ]);
        assert_eq!(aside["spec"]["ports"], wanted);
        let mut both = wanted;
        both[0]["targetPort"] = json!(80); // as the API server fills it in
        let removal = removal_of_others(&body, &with_ports(both.clone()));
        let kept = json!([both[0]]);
        assert_eq!(removal["spec"]["ports"], kept);
        assert_eq!(removal["metadata"], json!({"uid": "u", "resourceVersion": "7"}));
        assert_eq!(set_aside(&with_ports(kept)), None);
    }

    #[test]
    fn a_port_that_somebody_added_is_seen_and_removed() {
        let cart = ServiceKey::new("shop", "cart").unwrap();
        let mut object = service("cart");
        let entries = object.metadata.managed_fields.as_mut().unwrap();
        let fields = entries[0].fields_v1.as_mut().unwrap();
        fields.0["f:spec"] = json!({"f:ports": {r#"k:{"port":80,"protocol":"TCP"}"#: {"f:port": {}}}});
        let ours = json!({"name": "http", "protocol": "TCP", "port": 80, "targetPort": 80});
        let theirs = json!({"name": "more", "protocol": "TCP", "port": 81, "targetPort": 81});
        let body = json!({"spec": {"ports": [{"name": "http", "protocol": "TCP", "port": 80}]}});
        for (ports, intact) in [(json!([ours]), true), (json!([ours, theirs]), false)] {
            object.spec.as_mut().unwrap().ports = serde_json::from_value(ports).unwrap();
            let found = derived_from(derived_of(&object).as_ref(), &cart);
            assert_eq!(found.ours().unwrap().intact, intact);
            assert_eq!(has_parts_of_others(&body, &object), !intact);
            assert_eq!(removal_of_others(&body, &object)["spec"]["ports"], json!([ours]));
        }
    }

    /// Each of these sends traffic elsewhere than the slices say, or takes it from elsewhere.
    #[test]
    fn what_somebody_added_beside_our_fields_is_seen_and_removed() {
        let cart = ServiceKey::new("shop", "cart").unwrap();
        let body = json!({"spec": {"type": "ClusterIP", "ports": []}});
        for (field, value, by_apply) in [
            ("type", json!("NodePort"), true),
            ("selector", json!({"app": "evil"}), false),
            ("externalIPs", json!(["192.0.2.1"]), false),
            ("publishNotReadyAddresses", json!(true), false),
        ] {
            let mut object = service("cart");
            let before = derived_from(derived_of(&object).as_ref(), &cart);
            assert!(before.ours().unwrap().intact);
            let mut spec = json!(object.spec);
            spec[field] = value;
            object.spec = serde_json::from_value(spec).unwrap();
            let found = derived_from(derived_of(&object).as_ref(), &cart);
            assert!(!found.ours().unwrap().intact, "{field}");
            assert_eq!(has_parts_of_others(&body, &object), !by_apply, "{field}");
            let removed = removal_of_others(&body, &object)["spec"].get(field).cloned();
            assert_eq!(removed, (!by_apply).then_some(Value::Null), "{field}");
        }
    }

    #[test]
    fn a_name_that_somebody_gave_to_a_port_is_seen_and_removed() {
        let cart = ServiceKey::new("shop", "cart").unwrap();
        let mut object = service("cart");
        let entries = object.metadata.managed_fields.as_mut().unwrap();
        let fields = entries[0].fields_v1.as_mut().unwrap();
        fields.0["f:spec"] = json!({"f:ports": {r#"k:{"port":80,"protocol":"TCP"}"#: {"f:port": {}}}});
        let port = json!([{"name": "web", "protocol": "TCP", "port": 80, "targetPort": 80}]);
        object.spec.as_mut().unwrap().ports = serde_json::from_value(port).unwrap();
        let found = derived_from(derived_of(&object).as_ref(), &cart);
        let ports = &found.ours().unwrap().content.content.ports;
        assert_eq!(&*ports.first().unwrap().name, "web");
        let unnamed = json!({"spec": {"ports": [{"protocol": "TCP", "port": 80}]}});
        assert!(has_parts_of_others(&unnamed, &object));
        let removal = removal_of_others(&unnamed, &object);
        assert_eq!(
            removal["spec"]["ports"],
            json!([{"protocol": "TCP", "port": 80, "targetPort": 80}])
        );
        let named = json!({"spec": {"ports": [{"name": "web", "protocol": "TCP", "port": 80}]}});
        assert!(!has_parts_of_others(&named, &object));
        // A further port of another writer is accepted beside a named one, and goes with the next write.
        let ports = object.spec.as_mut().unwrap().ports.as_mut().unwrap();
        ports.push(serde_json::from_value(json!({"name": "more", "protocol": "TCP", "port": 81})).unwrap());
        assert!(has_parts_of_others(&named, &object));
    }
}
