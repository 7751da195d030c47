//! Measures the bytes of process memory that the cache takes for the objects of a multi-cluster service: a program of
//! its own, so that nobody else's memory counts. It times nothing.

use agent::watch::{Event, Kept, Watched, Watches};
use serde_json::{Value, json};

/// Services, each with an import, a derived Service and one slice.
const SERVICES: usize = 3_000;
/// Endpoints of a slice.
const ENDPOINTS: usize = 10;
/// The most that is kept of such a service. With the hub's word about it the agent is to stay below 15 KB.
const KEPT_BYTES_MAX: usize = 8 * 1024;
/// A listing may add so much while it lasts: a page of objects, never all of them.
const LISTING_BYTES_MAX: usize = 8 * 1024 * 1024;

#[test]
fn a_service_costs_kilobytes_and_a_relist_costs_a_page() {
    let watches = Watches::default();
    list(&watches, 1, 10); // what is allocated once
    let before = status("VmRSS:");
    list(&watches, 2, SERVICES);
    let listed = status("VmRSS:");
    let each = listed.saturating_sub(before) / SERVICES;
    assert!(each < KEPT_BYTES_MAX, "{each} bytes are kept of a service");
    assert!(each > 512, "{each} bytes cannot be all");
    list(&watches, 3, SERVICES);
    let peak = status("VmHWM:");
    let more = peak.saturating_sub(listed);
    assert!(more < LISTING_BYTES_MAX, "a relist takes {more} bytes more");
    assert_eq!(watches.slices.all().len(), SERVICES);
    println!("{each} bytes a service, and {more} more while it is listed again");
}

/// Bytes of this process as the kernel counts them.
fn status(name: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kilobytes.expect("a number of kilobytes") * 1024
}

/// A listing of every kind, in which each object is in its `version`th state.
fn list(watches: &Watches, version: usize, services: usize) {
    list_kind(&watches.services, version, services, derived);
    list_kind(&watches.imports, version, services, import);
    list_kind(&watches.slices, version, services, slice);
}

fn list_kind<K: Kept>(store: &Watched<K>, version: usize, services: usize, object: fn(usize) -> Value) {
    store.handle(Event::Init);
    for index in 0..services {
        let mut object = object(index);
        object["metadata"]["resourceVersion"] = json!((version * SERVICES + index).to_string());
        store.handle(Event::InitApply(
            serde_json::from_value(object).expect("an object"),
        ));
    }
    store.handle(Event::InitDone);
}

fn metadata(index: usize, name: String, labels: Value, annotations: Value, fields: Value) -> Value {
    let owned = |map: &Value| -> Value {
        let entries = map.as_object().into_iter().flatten();
        entries
            .map(|(key, _)| (format!("f:{key}"), json!({})))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let mut fields = fields;
    fields["f:metadata"] = json!({"f:labels": owned(&labels), "f:annotations": owned(&annotations)});
    json!({
        "namespace": format!("team-{:04}", index % 50), "name": name,
        "uid": format!("00000000-0000-4000-8000-{index:012}"), "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels, "annotations": annotations,
        "managedFields": [{
            "manager": "tributary-agent", "operation": "Apply", "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
        }],
    })
}

fn name(index: usize) -> String {
    format!("service-{index:06}")
}

fn derived(index: usize) -> Value {
    let labels = json!({
        "app.kubernetes.io/managed-by": "tributary-agent", "multicluster.kubernetes.io/service-name": name(index),
    });
    let annotations = json!({"tributary.dev/source-clusters": "source"});
    let fields = json!({"f:spec": {
        "f:type": {}, "f:ipFamilies": {}, "f:ipFamilyPolicy": {}, "f:sessionAffinity": {}, "f:internalTrafficPolicy": {},
        "f:ports": {r#"k:{"port":80,"protocol":"TCP"}"#: {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}}},
    }});
    let ip = format!("10.96.{}.{}", index / 250, index % 250 + 1);
    json!({
        "metadata": metadata(index, format!("derived-{index:010}"), labels, annotations, fields),
        "spec": {
            "type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip], "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 80}],
        },
        "status": {"loadBalancer": {}},
    })
}

fn import(index: usize) -> Value {
    let labels = json!({"app.kubernetes.io/managed-by": "tributary-agent"});
    let annotations = json!({
        "multicluster.kubernetes.io/derived-service": format!("derived-{index:010}"),
        "tributary.dev/source-clusters": "source", "tributary.dev/revision": "17",
    });
    let fields = json!({"f:spec": {
        "f:type": {}, "f:ips": {}, "f:ipFamilies": {}, "f:ports": {}, "f:sessionAffinity": {}, "f:internalTrafficPolicy": {},
    }});
    let mut metadata = metadata(index, name(index), labels, annotations, fields);
    let of_status = json!({"f:status": {
        "f:endpointSliceObjects": {}, "f:clusters": {r#"k:{"cluster":"source"}"#: {".": {}, "f:cluster": {}}},
        "f:conditions": {r#"k:{"type":"Ready"}"#: {".": {}, "f:type": {}, "f:status": {}, "f:reason": {}}},
    }});
    let entry = json!({
        "manager": "tributary-agent", "operation": "Apply", "subresource": "status", "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": of_status,
    });
    metadata["managedFields"]
        .as_array_mut()
        .expect("a list")
        .push(entry);
    json!({
        "metadata": metadata,
        "spec": {
            "type": "ClusterSetIP", "ips": [format!("10.96.{}.{}", index / 250, index % 250 + 1)],
            "ipFamilies": ["IPv4"], "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
            "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
        },
        "status": {
            "clusters": [{"cluster": "source"}], "endpointSliceObjects": "Present",
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    })
}

fn slice(index: usize) -> Value {
    let labels = json!({
        "app.kubernetes.io/managed-by": "tributary-agent", "multicluster.kubernetes.io/service-name": name(index),
        "endpointslice.kubernetes.io/managed-by": "tributary-agent.tributary.dev",
        "multicluster.kubernetes.io/source-cluster": "source",
        "kubernetes.io/service-name": format!("derived-{index:010}"),
    });
    let annotations = json!({"tributary.dev/revision": "17"});
    let fields = json!({"f:addressType": {}, "f:ports": {}, "f:endpoints": {}});
    let endpoint = |number: usize| {
        json!({
            "addresses": [format!("10.{}.{}.{number}", index / 250, index % 250)], "zone": "zone-a",
            "conditions": {"ready": true, "serving": true, "terminating": false},
        })
    };
    json!({
        "metadata": metadata(index, format!("imported-{index:020}"), labels, annotations, fields),
        "addressType": "IPv4", "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": (1..=ENDPOINTS).map(endpoint).collect::<Vec<_>>(),
    })
}
