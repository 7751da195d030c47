//! Kubernetes objects ↔ the plain values of a plan. Only here do the two meet.
//! Reading shows only fields that the agent owns; writing states all of them, and nothing else.

pub(crate) mod changed_by;
pub(crate) mod condition;
pub(crate) mod derived;
pub(crate) mod export;
pub(crate) mod import;
pub mod owned;
pub(crate) mod slice;

use std::{collections::BTreeSet, net::IpAddr};

use api::names::{AGENT_MANAGER, LABEL_MANAGED_BY};
use model::{ClusterId, IpFamily, Metadata, Protocol, Revision, SessionAffinity};
use serde_json::{Map, Value, json};

use crate::plan::content::Policies;

/// On imports and derived Services: the exporting clusters, with commas. They have to be known even if the status was
/// never written or the import was deleted by hand.
pub const ANNOTATION_SOURCE_CLUSTERS: &str = "tributary.dev/source-clusters";

/// metadata of an object as it is applied.
pub(super) fn metadata_json(
    namespace: &str,
    name: &str,
    uid: Option<&str>,
    labels: &Metadata,
    annotations: &Metadata,
) -> Value {
    let mut labels = labels.clone();
    labels.insert(LABEL_MANAGED_BY.into(), AGENT_MANAGER.into());
    let mut metadata = json!({
        "namespace": namespace, "name": name,
        "labels": strings(&labels), "annotations": strings(annotations),
    });
    if let Some(uid) = uid {
        metadata["uid"] = json!(uid);
    }
    metadata
}

fn strings(map: &Metadata) -> Value {
    let entries = map.iter().map(|(key, value)| (key.to_string(), json!(&**value)));
    Value::Object(entries.collect::<Map<_, _>>())
}

pub(super) fn revision_text(revision: Revision) -> Box<str> {
    revision.0.to_string().into()
}

pub(super) fn sources_text(sources: &BTreeSet<ClusterId>) -> Box<str> {
    let names: Vec<&str> = sources.iter().map(ClusterId::as_str).collect();
    names.join(",").into()
}

pub(crate) fn sources_from(text: Option<&str>) -> BTreeSet<ClusterId> {
    let names = text.into_iter().flat_map(|text| text.split(','));
    names.filter_map(|name| ClusterId::new(name).ok()).collect()
}

pub(super) fn protocol_text(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    }
}

pub(super) fn protocol_from(text: Option<&str>) -> Option<Protocol> {
    match text {
        None | Some("TCP") => Some(Protocol::Tcp),
        Some("UDP") => Some(Protocol::Udp),
        Some("SCTP") => Some(Protocol::Sctp),
        Some(_) => None,
    }
}

pub(super) fn family_text(family: IpFamily) -> &'static str {
    match family {
        IpFamily::V4 => "IPv4",
        IpFamily::V6 => "IPv6",
    }
}

pub(super) fn families_from(families: Option<&[String]>) -> Vec<IpFamily> {
    let families = families.unwrap_or_default().iter();
    exactly(families.filter_map(|text| match text.as_str() {
        "IPv4" => Some(IpFamily::V4),
        "IPv6" => Some(IpFamily::V6),
        _ => None,
    }))
}

pub(super) fn addresses_from(addresses: &[String]) -> Vec<IpAddr> {
    exactly(addresses.iter().filter_map(|text| text.parse().ok()))
}

/// A list without room to spare: it is kept as long as its object is, and there are thousands.
pub(super) fn exactly<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut list: Vec<T> = items.collect();
    list.shrink_to_fit();
    list
}

pub(super) fn affinity_from(text: Option<&str>) -> Option<SessionAffinity> {
    match text? {
        "None" => Some(SessionAffinity::None),
        "ClientIP" => Some(SessionAffinity::ClientIp),
        _ => None,
    }
}

/// Adds the policies to a spec; fields that are absent are left out.
pub(super) fn add_policies(spec: &mut Value, policies: &Policies) {
    if let Some(affinity) = policies.session_affinity {
        spec["sessionAffinity"] = json!(match affinity {
            SessionAffinity::None => "None",
            SessionAffinity::ClientIp => "ClientIP",
        });
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
}

pub(super) fn boxed(text: &Option<String>) -> Option<Box<str>> {
    text.as_deref().filter(|text| !text.is_empty()).map(Into::into)
}
