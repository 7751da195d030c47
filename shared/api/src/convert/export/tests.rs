//! Exports from objects as an API server hands them out.

use serde_json::{Value, json};

use super::*;

fn service_export(extra: Value) -> ServiceExport {
    let mut object = json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
        "metadata": {
            "namespace": "shop", "name": "cart", "uid": "u-1", "generation": 3,
            "creationTimestamp": "2026-01-02T03:04:05Z",
        },
    });
    merge(&mut object, extra);
    serde_json::from_value(object).unwrap()
}

fn service(extra: Value) -> Service {
    let mut object = json!({
        "metadata": {"namespace": "shop", "name": "cart"},
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
            "sessionAffinity": "None", "internalTrafficPolicy": "Cluster", "selector": {"app": "cart"},
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080, "nodePort": 30080}],
        },
    });
    merge(&mut object, extra);
    serde_json::from_value(object).unwrap()
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.into_iter()
                .for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, from) => *into = from,
    }
}

fn convert(service_export_extra: Value, service_extra: Value) -> Result<Export, ExportProblem> {
    exported(service_export_extra, service_extra).map(|exported| exported.export)
}

fn exported(service_export_extra: Value, service_extra: Value) -> Result<Exported, ExportProblem> {
    let deny = NamespaceDenyList::new(["secret"]);
    export_from(
        &service_export(service_export_extra),
        Some(&service(service_extra)),
        &deny,
    )
}

#[test]
fn an_export_carries_what_both_objects_state() {
    let export = convert(
        json!({"spec": {"exportedLabels": {"tier": "web"}, "exportedAnnotations": {"example.org/note": "x y"}}}),
        json!({"spec": {
            "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
            "internalTrafficPolicy": "Local", "trafficDistribution": "PreferClose",
            "ipFamilies": ["IPv6", "IPv4"],
            "ports": [{"port": 80}, {"name": "dns", "protocol": "UDP", "port": 53, "appProtocol": "dns"}],
        }}),
    )
    .unwrap();
    assert_eq!(export.service, ServiceKey::new("shop", "cart").unwrap());
    assert_eq!(export.created_at, UnixMillis(1_767_323_045_000));
    assert_eq!((&*export.uid, export.generation), ("u-1", 3));
    assert_eq!(export.service_type, ServiceType::ClusterSetIp);
    let ports: Vec<_> = export
        .ports
        .iter()
        .map(|p| (&*p.name, p.port, p.app_protocol.as_deref()))
        .collect();
    assert_eq!(ports, [("", 80, None), ("dns", 53, Some("dns"))]);
    assert_eq!(export.policies.session_affinity, SessionAffinity::ClientIp);
    assert_eq!(export.policies.session_affinity_timeout_seconds, Some(10_800));
    assert_eq!(export.policies.internal_traffic_policy.as_deref(), Some("Local"));
    assert_eq!(
        export.policies.traffic_distribution.as_deref(),
        Some("PreferClose")
    );
    assert_eq!(export.ip_families, [IpFamily::V6, IpFamily::V4]);
    assert_eq!(export.labels.get("tier").map(|v| &**v), Some("web"));
    assert_eq!(
        export.annotations.get("example.org/note").map(|v| &**v),
        Some("x y")
    );
}

#[test]
fn types_of_services_become_types_of_imports() {
    for (spec, want) in [
        (json!({"type": "NodePort"}), ServiceType::ClusterSetIp),
        (json!({"type": "LoadBalancer"}), ServiceType::ClusterSetIp),
        (json!({"type": null}), ServiceType::ClusterSetIp),
        (
            json!({"clusterIP": "None", "clusterIPs": ["None"]}),
            ServiceType::Headless,
        ),
        (
            json!({"clusterIP": null, "clusterIPs": ["None"]}),
            ServiceType::Headless,
        ),
    ] {
        let export = convert(json!({}), json!({"spec": spec.clone()})).unwrap();
        assert_eq!(export.service_type, want, "{spec}");
    }
}

#[test]
fn a_headless_service_may_have_no_ports() {
    let spec = json!({"spec": {"clusterIP": "None", "clusterIPs": ["None"], "ports": null}});
    assert_eq!(convert(json!({}), spec).unwrap().ports, []);
}

#[track_caller]
fn refused(service_export: Value, service: Value, reason: &str, words: &str) {
    let problem = convert(service_export, service).expect_err(words);
    assert_eq!(problem.reason(), reason, "{problem}");
    assert!(
        problem.to_string().contains(words),
        "{problem} does not say {words}"
    );
}

#[test]
fn services_that_are_no_workload_of_this_cluster_are_of_an_invalid_type() {
    let reason = "InvalidServiceType";
    refused(
        json!({}),
        json!({"spec": {"type": "ExternalName"}}),
        reason,
        "ExternalName",
    );
    let managed = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "tributary-agent"}}});
    refused(json!({}), managed, reason, "derived");
    let derived = json!({"metadata": {"name": "derived-ovtkn0laet"}, "spec": {"selector": null}});
    refused(json!({}), derived, reason, "derived");
}

#[test]
fn denied_namespaces_are_named() {
    for namespace in ["kube-system", "kube-public", "secret"] {
        let service_export = json!({"metadata": {"namespace": namespace}});
        refused(service_export, json!({}), "NamespaceDenied", namespace);
    }
    let of_users = json!({"metadata": {"namespace": "kube-prometheus-stack"}});
    assert!(convert(of_users, json!({})).is_ok());
}

#[test]
fn a_bad_service_export_is_invalid() {
    let metadata = |field: &str, value: Value| json!({"metadata": {field: value}});
    for (service_export, words) in [
        (metadata("name", json!("x".repeat(64))), "service name"),
        (metadata("name", json!("a.b")), "DNS label"),
        (metadata("uid", Value::Null), "uid"),
        (metadata("creationTimestamp", Value::Null), "creationTimestamp"),
    ] {
        refused(service_export, json!({}), "InvalidExport", words);
    }
}

#[test]
fn a_bad_service_makes_the_export_invalid() {
    let port = |port: Value| json!({"spec": {"ports": [port]}});
    let spec = |field: &str, value: Value| json!({"spec": {field: value}});
    for (service, words) in [
        (port(json!({"port": 0})), "ports[0].port"),
        (port(json!({"port": 65_536})), "ports[0].port"),
        (port(json!({"port": 1, "protocol": "QUIC"})), "ports[0].protocol"),
        (port(json!({"port": 1, "name": "Web"})), "ports[0].name"),
        (spec("ipFamilies", Value::Null), "ipFamilies"),
        (spec("ipFamilies", json!(["IPv5"])), "ipFamilies"),
        (spec("sessionAffinity", json!("Cookie")), "sessionAffinity"),
    ] {
        refused(json!({}), service, "InvalidExport", words);
    }
}

#[test]
fn without_a_service_there_is_no_service_unless_the_namespace_is_denied() {
    let deny = NamespaceDenyList::default();
    let problem = export_from(&service_export(json!({})), None, &deny).unwrap_err();
    assert_eq!(problem.reason(), "NoService");
    let denied = service_export(json!({"metadata": {"namespace": "kube-public"}}));
    assert_eq!(
        export_from(&denied, None, &deny).unwrap_err().reason(),
        "NamespaceDenied"
    );
}

#[test]
fn a_users_service_whose_name_only_looks_derived_is_exported() {
    let own = json!({"metadata": {"name": "derived-dashboards"}});
    assert!(convert(own.clone(), own).is_ok());
}

/// Edits of a live export that took its service out of every cluster.
#[test]
fn no_label_and_no_annotation_makes_an_export_invalid() {
    let labels = |labels: Value| json!({"spec": {"exportedLabels": labels}});
    let annotations = |annotations: Value| json!({"spec": {"exportedAnnotations": annotations}});
    let keys = |exported: &Exported| -> Vec<String> {
        let export = &exported.export;
        let keys = export.labels.keys().chain(export.annotations.keys());
        keys.map(ToString::to_string).collect()
    };
    let recommended =
        json!({"app.kubernetes.io/name": "api", "app.kubernetes.io/part-of": "shop", "team": "payments"});
    let topology = json!({"service.kubernetes.io/topology-mode": "Auto", "example.org/owner": "payments"});
    for (spec, carried) in [
        (
            labels(recommended),
            vec!["app.kubernetes.io/name", "app.kubernetes.io/part-of", "team"],
        ),
        (
            annotations(topology),
            vec!["example.org/owner", "service.kubernetes.io/topology-mode"],
        ),
    ] {
        let exported = exported(spec, json!({})).unwrap();
        assert_eq!(keys(&exported), carried);
        assert_eq!(exported.metadata_left_out, "");
    }
    let forged = json!({"kubernetes.io/hostname": "x", "app.kubernetes.io/managed-by": "x", "a": "x y", "tier": "web"});
    let exported_without = exported(labels(forged), json!({})).unwrap();
    assert_eq!(keys(&exported_without), ["tier"]);
    let words = exported_without.metadata_left_out;
    for key in [
        "kubernetes.io/hostname",
        "app.kubernetes.io/managed-by",
        "exportedLabels[\"a\"]",
    ] {
        assert!(words.contains(key), "{words}");
    }
    let big = json!({"big": "x".repeat(200_000), "small": "x"});
    let exported_without = exported(annotations(big), json!({})).unwrap();
    assert_eq!(keys(&exported_without), ["small"]);
    let words = exported_without.metadata_left_out;
    assert!(
        words.contains("exportedAnnotations[\"big\"]: does not fit"),
        "{words}"
    );
}

#[test]
fn keys_that_importers_leave_out_are_named_to_the_exporter() {
    let spec = json!({"spec": {"exportedAnnotations": {"service.cilium.io/affinity": "local", "prometheus.io/scrape": "true"}}});
    let exported = exported(spec, json!({})).unwrap();
    assert_eq!(exported.export.annotations.len(), 2, "a cluster may take it");
    let words = exported.metadata_left_out;
    assert!(
        words.contains("service.cilium.io/affinity") && words.contains("--import-metadata"),
        "{words}"
    );
    assert!(!words.contains("prometheus"), "{words}");
}

#[test]
fn what_is_said_of_left_out_keys_is_bounded() {
    let long = "k".repeat(60);
    let many: serde_json::Map<String, Value> = (0..500)
        .map(|number| (format!("{long} {number}"), json!("v".repeat(1_000))))
        .collect();
    let exported = exported(json!({"spec": {"exportedLabels": many}}), json!({})).unwrap();
    let words = exported.metadata_left_out;
    assert!(words.ends_with("and 495 more"), "{words}");
    assert!(words.len() < 4_096, "{} bytes", words.len());
}
