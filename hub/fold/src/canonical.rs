//! The digest of a derived object's content: how a snapshot says what it was without holding it.
//! Revisions and times are not content and are left out.

use std::net::IpAddr;

use model::{
    ContentDigest, ContentHasher, EndpointPort, EndpointView, ExportStatus, ImportedSlice, IpFamily,
    Metadata, PropertyValue, Protocol, ServiceImport, ServiceKey, ServicePort, ServiceType, SessionAffinity,
};

use super::{DerivedContent, Profile};

/// The digest of `content`.
pub(super) fn digest(content: &DerivedContent) -> ContentDigest {
    let mut hasher = ContentHasher::default();
    match content {
        DerivedContent::Import(import) => add_import(&mut hasher, import),
        DerivedContent::Slice(slice) => add_slice(&mut hasher, slice),
        DerivedContent::ExportStatus(status) => add_status(&mut hasher, status),
        DerivedContent::Profile(profile) => add_profile(&mut hasher, profile),
    }
    hasher.finish()
}

fn add_import(hasher: &mut ContentHasher, import: &ServiceImport) {
    hasher.number(1);
    add_service(hasher, &import.service);
    hasher.number(match import.service_type {
        ServiceType::ClusterSetIp => 1,
        ServiceType::Headless => 2,
    });
    add_list(hasher, &import.ports, add_service_port);
    hasher.number(match import.policies.session_affinity {
        SessionAffinity::None => 1,
        SessionAffinity::ClientIp => 2,
    });
    add_option(
        hasher,
        import.policies.session_affinity_timeout_seconds,
        |hasher, seconds| {
            hasher.number(i64::from(seconds).cast_unsigned());
        },
    );
    add_optional_text(hasher, import.policies.internal_traffic_policy.as_deref());
    add_optional_text(hasher, import.policies.traffic_distribution.as_deref());
    add_list(hasher, &import.ip_families, |hasher, family| {
        hasher.number(family_number(*family))
    });
    add_metadata(hasher, &import.labels);
    add_metadata(hasher, &import.annotations);
    hasher.number(import.clusters.len() as u64);
    for (cluster, eligible) in &import.clusters {
        hasher.text(cluster.as_str());
        add_list(hasher, eligible, |hasher, index| hasher.number(u64::from(*index)));
    }
}

fn add_slice(hasher: &mut ContentHasher, slice: &ImportedSlice) {
    hasher.number(2);
    add_service(hasher, &slice.key.service);
    hasher.text(slice.key.source_cluster.as_str());
    hasher.text(&slice.key.source_slice);
    hasher.number(family_number(slice.address_type));
    add_list(hasher, &slice.ports, add_endpoint_port);
    hasher.number(slice.endpoints.len() as u64);
    slice
        .endpoints
        .iter()
        .for_each(|endpoint| add_endpoint(hasher, endpoint));
}

fn add_status(hasher: &mut ContentHasher, status: &ExportStatus) {
    hasher.number(3);
    add_service(hasher, &status.service);
    hasher.text(&status.uid);
    hasher.number(status.generation.cast_unsigned());
    add_list(hasher, &status.conflicts, |hasher, conflict| {
        hasher.text(conflict.reason.as_str());
        hasher.text(&conflict.message);
    });
    hasher.number(u64::from(status.exporters));
    // Without either it has the digest of the first version of the rules.
    if let Some(denial) = &status.denial {
        hasher.number(1);
        hasher.text(denial.reason.as_str());
        hasher.text(&denial.message);
    }
    if !status.left_out.is_empty() {
        hasher.number(2);
        hasher.text(&status.left_out);
    }
}

fn add_profile(hasher: &mut ContentHasher, profile: &Profile) {
    hasher.number(4);
    hasher.text(profile.cluster.as_str());
    hasher.text(&profile.kubernetes_version);
    add_list(hasher, &profile.conditions, |hasher, condition| {
        hasher.text(condition.condition_type.as_str());
        hasher.text(condition.status.as_str());
        hasher.text(condition.reason);
        hasher.text(&condition.message);
    });
    hasher.number(profile.properties.len() as u64);
    profile.properties.iter().for_each(|property| {
        hasher.text(&property.name);
        match &property.value {
            PropertyValue::Text(text) => {
                hasher.number(1);
                hasher.text(text);
            }
            PropertyValue::Oversize { characters, digest } => {
                hasher.number(2);
                hasher.number(*characters);
                hasher.bytes(digest);
            }
        }
    });
    // Without it the digest is unchanged.
    if let Some((fresh, expected)) = profile.api_servers {
        hasher.number(u64::from(fresh));
        hasher.number(u64::from(expected));
    }
}

fn add_service(hasher: &mut ContentHasher, service: &ServiceKey) {
    hasher.text(&service.namespace);
    hasher.text(&service.name);
}

fn add_service_port(hasher: &mut ContentHasher, port: &ServicePort) {
    hasher.text(&port.name);
    hasher.number(protocol_number(port.protocol));
    hasher.number(u64::from(port.port));
    add_optional_text(hasher, port.app_protocol.as_deref());
}

fn add_endpoint_port(hasher: &mut ContentHasher, port: &EndpointPort) {
    hasher.text(&port.name);
    hasher.number(protocol_number(port.protocol));
    add_option(hasher, port.port, |hasher, port| hasher.number(u64::from(port)));
    add_optional_text(hasher, port.app_protocol.as_deref());
}

fn add_endpoint(hasher: &mut ContentHasher, endpoint: EndpointView<'_>) {
    hasher.number(endpoint.addresses().count() as u64);
    for address in endpoint.addresses() {
        match address {
            IpAddr::V4(address) => hasher.bytes(&address.octets()),
            IpAddr::V6(address) => hasher.bytes(&address.octets()),
        }
    }
    for condition in [endpoint.ready(), endpoint.serving(), endpoint.terminating()] {
        add_option(hasher, condition, |hasher, value| hasher.number(u64::from(value)));
    }
    add_optional_text(hasher, endpoint.hostname());
    add_optional_text(hasher, endpoint.zone());
}

fn add_metadata(hasher: &mut ContentHasher, metadata: &Metadata) {
    hasher.number(metadata.len() as u64);
    for (key, value) in metadata {
        hasher.text(key);
        hasher.text(value);
    }
}

fn add_list<T>(hasher: &mut ContentHasher, items: &[T], add: impl Fn(&mut ContentHasher, &T)) {
    hasher.number(items.len() as u64);
    items.iter().for_each(|item| add(hasher, item));
}

fn add_option<T>(hasher: &mut ContentHasher, value: Option<T>, add: impl Fn(&mut ContentHasher, T)) {
    hasher.number(u64::from(value.is_some()));
    if let Some(value) = value {
        add(hasher, value);
    }
}

fn add_optional_text(hasher: &mut ContentHasher, text: Option<&str>) {
    add_option(hasher, text, |hasher, text| hasher.text(text));
}

fn family_number(family: IpFamily) -> u64 {
    match family {
        IpFamily::V4 => 1,
        IpFamily::V6 => 2,
    }
}

fn protocol_number(protocol: Protocol) -> u64 {
    match protocol {
        Protocol::Tcp => 1,
        Protocol::Udp => 2,
        Protocol::Sctp => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_and_protocols_are_told_apart() {
        assert_ne!(family_number(IpFamily::V4), family_number(IpFamily::V6));
        let protocols = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp].map(protocol_number);
        assert_eq!(protocols, [1, 2, 3]);
    }
}
