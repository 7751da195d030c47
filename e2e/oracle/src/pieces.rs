//! Owns: the words for each piece of what a cluster holds, so that what is shown and what is expected say the same
//! of the same, and what one cluster shows.
//! Never: says what should be there.

use model::{
    ServiceKey,
    names::{
        ANNOTATION_DERIVED_SERVICE, LABEL_KUBERNETES_SERVICE_NAME, LABEL_SERVICE_NAME, LABEL_SOURCE_CLUSTER,
    },
};
use serde_json::Value;

use super::{
    arrival::ARRIVED,
    part::{Of, Part, Parts, Port},
    picture::{Picture, is_ours, owner, text},
};

/// The annotation in which a derived Service names them.
const SOURCE_CLUSTERS: &str = "tributary.dev/source-clusters";

pub(super) fn import() -> Part {
    Part::new(Of::Import, "the import")
}

pub(super) fn kind(headless: bool) -> Part {
    let word = if headless { "Headless" } else { "ClusterSetIP" };
    Part::new(Of::Import, format!("type {word}"))
}

pub(super) fn port(of: Of, port: &Port) -> Part {
    Part::new(of, format!("{port} of {}", holder(of)))
}

pub(super) fn affinity(of: Of, affinity: &str) -> Part {
    Part::new(of, format!("sessionAffinity {affinity} of {}", holder(of)))
}

pub(super) fn cluster(cluster: &str) -> Part {
    Part::new(Of::Import, format!("cluster {cluster} of the import"))
}

pub(super) fn derived_is(name: &str) -> Part {
    Part::new(Of::Import, format!("the annotation that names {name}"))
}

pub(super) fn derived() -> Part {
    Part::new(Of::Derived, "the derived Service")
}

pub(super) fn ready() -> Part {
    Part::new(Of::Readiness, "Ready=True of the import")
}

pub(super) fn has_its_ips() -> Part {
    Part::new(
        Of::Readiness,
        "the IPs and families of the derived Service in the import",
    )
}

pub(super) fn slice(name: &str, source: &str, derived: &str) -> Part {
    Part::new(Of::Slices, format!("slice {name} of {source} behind {derived}"))
}

pub(super) fn slice_port(name: &str, source: &str, port: &Port) -> Part {
    Part::new(Of::Slices, format!("{port} of slice {name} of {source}"))
}

pub(super) fn condition(kind: &str, status: &str, reasons: &str) -> Part {
    let mut sorted: Vec<&str> = reasons.split(',').collect();
    sorted.sort_unstable();
    Part::new(Of::Export, format!("{kind}={status} {}", sorted.join(",")))
}

fn holder(of: Of) -> &'static str {
    if of == Of::Derived {
        "the derived Service"
    } else {
        "the import"
    }
}

/// The endpoints of a slice; the name is that of the imported one.
pub(super) fn endpoints(name: &str, source: &str, slice: &Value) -> Vec<Part> {
    let mut parts = Vec::new();
    for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
        let ready = if endpoint["conditions"]["ready"] == false {
            ", not ready"
        } else {
            ""
        };
        for address in endpoint["addresses"].as_array().into_iter().flatten() {
            let address = address.as_str().unwrap_or_default();
            let what = format!("address {address}{ready} of slice {name} of {source}");
            parts.push(Part::new(Of::Slices, what));
        }
    }
    parts
}

/// A cluster's objects of one service that Tributary made, piece by piece.
pub fn import_shown(picture: &Picture, service: &ServiceKey) -> Parts {
    let mut parts = Parts::new();
    let import = picture.import(service).filter(|import| is_ours(import));
    let derived = picture
        .derived_service(service)
        .filter(|derived| is_ours(derived));
    parts.extend(import.into_iter().flat_map(import_parts));
    parts.extend(derived.into_iter().flat_map(derived_parts));
    for slice in picture.imported_slices(service) {
        parts.extend(slice_shown(slice));
    }
    if let (Some(import), Some(derived)) = (import, derived) {
        let (has, had) = (&import["spec"], &derived["spec"]);
        let same = |one: &Value, other: &Value| !one.is_null() && one == other;
        if same(&has["ips"], &had["clusterIPs"]) && same(&has["ipFamilies"], &had["ipFamilies"]) {
            parts.insert(has_its_ips());
        }
    }
    parts
}

/// The pieces of one object that Tributary made, and the service it belongs to. None for other objects.
pub fn object_shown(kind: &str, object: &Value) -> Option<(ServiceKey, Parts)> {
    if !is_ours(object) {
        return None;
    }
    let parts = match kind {
        "ServiceImport" => import_parts(object),
        "Service" => derived_parts(object),
        "EndpointSlice" => slice_shown(object),
        _ => return None,
    };
    Some((owner(object)?, parts))
}

fn import_parts(import: &Value) -> Parts {
    let spec = &import["spec"];
    let headless = spec["type"] == "Headless";
    let mut parts = Parts::from([self::import(), kind(headless)]);
    parts.extend(Port::all(&spec["ports"]).iter().map(|one| port(Of::Import, one)));
    if !headless {
        parts.insert(affinity(Of::Import, &text(&spec["sessionAffinity"])));
    }
    let clusters = import["status"]["clusters"].as_array().into_iter().flatten();
    parts.extend(clusters.map(|one| cluster(&text(&one["cluster"]))));
    if let Some(name) = import["metadata"]["annotations"][ANNOTATION_DERIVED_SERVICE].as_str() {
        parts.insert(derived_is(name));
    }
    let ips = spec["ips"].as_array().into_iter().flatten();
    parts.extend(ips.map(|ip| Part::new(Of::Ip, format!("ip {} of the import", text(ip)))));
    let mut conditions = import["status"]["conditions"].as_array().into_iter().flatten();
    if conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True") {
        parts.insert(ready());
    }
    parts
}

fn derived_parts(derived: &Value) -> Parts {
    let spec = &derived["spec"];
    let mut parts = Parts::from([
        self::derived(),
        affinity(Of::Derived, &text(&spec["sessionAffinity"])),
    ]);
    parts.extend(Port::all(&spec["ports"]).iter().map(|one| port(Of::Derived, one)));
    let ips = spec["clusterIPs"].as_array().into_iter().flatten();
    let ip = |ip: &Value| Part::new(Of::Ip, format!("ip {} of the derived Service", text(ip)));
    parts.extend(ips.map(ip));
    parts
}

fn slice_shown(slice: &Value) -> Parts {
    let labels = &slice["metadata"]["labels"];
    debug_assert!(!labels[LABEL_SERVICE_NAME].is_null(), "{slice}");
    slice_parts(slice, &text(&labels[LABEL_KUBERNETES_SERVICE_NAME]))
}

/// The cluster that an imported slice came from.
pub(super) fn source(slice: &Value) -> String {
    text(&slice["metadata"]["labels"][LABEL_SOURCE_CLUSTER])
}

/// The clusters that a derived Service names as those whose exports it was made from.
pub(super) fn sources(derived: &Value) -> impl Iterator<Item = &str> {
    let text = derived["metadata"]["annotations"][SOURCE_CLUSTERS].as_str();
    text.into_iter().flat_map(|text| text.split(','))
}

/// The pieces of an imported slice behind a derived Service; behind none if its name is empty.
pub(super) fn slice_parts(slice: &Value, derived: &str) -> Parts {
    let metadata = &slice["metadata"];
    let (name, source) = (text(&metadata["name"]), source(slice));
    let mut parts = Parts::from([self::slice(&name, &source, derived)]);
    parts.extend(
        Port::all(&slice["ports"])
            .iter()
            .map(|port| slice_port(&name, &source, port)),
    );
    parts.extend(endpoints(&name, &source, slice));
    parts
}

/// The conditions of a cluster's export. One of an older generation does not count.
pub(super) fn export_shown(picture: &Picture, service: &ServiceKey) -> Parts {
    let Some(export) = picture.export(service) else {
        return Parts::new();
    };
    let generation = &export["metadata"]["generation"];
    let conditions = export["status"]["conditions"].as_array().into_iter().flatten();
    let current = conditions.filter(|condition| condition["observedGeneration"] == *generation);
    // Where it arrived follows from what members acknowledged, not from what they hold.
    let current = current.filter(|condition| condition["type"] != ARRIVED);
    let said =
        current.map(|one| condition(&text(&one["type"]), &text(&one["status"]), &text(&one["reason"])));
    said.collect()
}
