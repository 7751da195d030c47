//! Facts as a member could send them, in the contract's own types, so that a story can make them wrong.

use prost::Message;
use proto::v1;
use shared::{model::UnixMillis, wire};

/// Encodes a fact as it travels.
pub(super) fn encoded(fact: v1::fact::Fact) -> Vec<u8> {
    v1::Fact { fact: Some(fact) }.encode_to_vec()
}

fn key(namespace: &str, name: &str) -> v1::ServiceKey {
    v1::ServiceKey {
        namespace: namespace.into(),
        name: name.into(),
    }
}

/// A good export.
pub(super) fn export(namespace: &str, name: &str) -> v1::Export {
    v1::Export {
        service: Some(key(namespace, name)),
        created_at: Some(wire::view::timestamp(UnixMillis(1_700_000_000_000))),
        uid: format!("uid-of-{namespace}-{name}"),
        generation: 1,
        r#type: v1::ServiceType::ClusterSetIp.into(),
        ports: vec![v1::ServicePort {
            name: "http".into(),
            protocol: v1::Protocol::Tcp.into(),
            port: 80,
            app_protocol: None,
        }],
        session_affinity: "None".into(),
        session_affinity_timeout_seconds: None,
        internal_traffic_policy: Some("Cluster".into()),
        traffic_distribution: None,
        ip_families: vec![v1::IpFamily::Ipv4.into()],
        exported_labels: Vec::new(),
        exported_annotations: Vec::new(),
    }
}

/// A good slice of the service, called NAME-1.
pub(super) fn slice(namespace: &str, name: &str, addresses: &[&str]) -> v1::EndpointSlice {
    let endpoint = |address: &&str| v1::Endpoint {
        addresses: vec![(*address).into()],
        ready: Some(true),
        serving: Some(true),
        terminating: None,
        hostname: None,
        zone: None,
    };
    v1::EndpointSlice {
        key: Some(v1::EndpointSliceKey {
            service: Some(key(namespace, name)),
            name: format!("{name}-1"),
        }),
        address_type: v1::IpFamily::Ipv4.into(),
        ports: vec![v1::EndpointPort {
            name: "http".into(),
            protocol: v1::Protocol::Tcp.into(),
            port: Some(8080),
            app_protocol: None,
        }],
        endpoints: addresses.iter().map(endpoint).collect(),
    }
}
