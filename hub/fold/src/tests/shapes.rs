//! Generators of exports and reports: Services, slices, properties and health out of small pools, so that clusters
//! agree and disagree often.

use std::sync::Arc;

use model::{
    ClusterProperty, ControlPlane, EndpointSlice, Export, Fact, Health, IpFamily, PropertyValue, Protocol,
    ServicePort, ServiceType, SessionAffinity, SliceKey,
};
use proptest::prelude::*;

use super::{
    given::{endpoint, endpoint_port, export, metadata, port, service},
    operations::SERVICES,
};

/// The shape of a Service: an index into small pools, so that clusters agree and disagree often.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    ports: usize,
    service_type: ServiceType,
    policies: u8,
    families: usize,
    labels: bool,
    annotations: bool,
}

pub(super) fn shape() -> impl Strategy<Value = Shape> {
    let types = prop_oneof![4 => Just(ServiceType::ClusterSetIp), 1 => Just(ServiceType::Headless)];
    let policies = prop_oneof![3 => Just(0u8), 1 => 1..16u8];
    let families = prop_oneof![4 => Just(0usize), 1 => 0..4usize];
    let flag = || prop::bool::weighted(0.2);
    (0..10usize, types, policies, families, flag(), flag()).prop_map(
        |(ports, service_type, policies, families, labels, annotations)| Shape {
            ports,
            service_type,
            policies,
            families,
            labels,
            annotations,
        },
    )
}

fn port_pool(index: usize) -> Vec<ServicePort> {
    let udp = |name: &str, number| ServicePort {
        protocol: Protocol::Udp,
        ..port(name, number)
    };
    let h2c = ServicePort {
        app_protocol: Some("h2c".into()),
        ..port("http", 80)
    };
    match index {
        0..=3 => vec![port("http", 80)],
        4 => vec![port("http", 80), port("metrics", 9090)],
        5 => vec![port("metrics", 9090), port("http", 80)],
        6 => vec![port("http", 8080), udp("dns", 53)],
        7 => vec![port("web", 80), port("http", 81), port("metrics", 9091)],
        8 => vec![h2c, port("dns", 53)],
        _ => vec![],
    }
}

pub(super) fn shaped(service_index: usize, seconds: u64, shape: &Shape) -> Export {
    let families = [
        vec![IpFamily::V4],
        vec![IpFamily::V6],
        vec![IpFamily::V4, IpFamily::V6],
        vec![IpFamily::V6, IpFamily::V4],
    ];
    let mut export = Export {
        service: service(SERVICES[service_index]),
        service_type: shape.service_type,
        ports: port_pool(shape.ports),
        ip_families: families[shape.families].clone(),
        labels: metadata(if shape.labels { &[("team", "web")] } else { &[] }),
        annotations: metadata(if shape.annotations { &[("note", "x")] } else { &[] }),
        ..export(seconds)
    };
    let policies = &mut export.policies;
    if shape.policies & 1 > 0 {
        policies.session_affinity = SessionAffinity::ClientIp;
    }
    policies.session_affinity_timeout_seconds = (shape.policies & 2 > 0).then_some(60);
    policies.internal_traffic_policy = match (shape.policies >> 2) & 3 {
        0 => Some("Cluster".into()),
        1 => None,
        _ => Some("Local".into()),
    };
    policies.traffic_distribution = (shape.policies & 8 > 0).then(|| "PreferClose".into());
    export
}

pub(super) fn slice_key(service_index: usize, slice: u8) -> SliceKey {
    SliceKey {
        service: service(SERVICES[service_index]),
        name: format!("slice-{slice}").into(),
    }
}

pub(super) fn endpoint_slice(service_index: usize, slice: u8, ports: usize, endpoints: u8) -> EndpointSlice {
    let names: [&[&str]; 6] = [
        &["http"],
        &["http"],
        &["http", "metrics"],
        &["web", "dns"],
        &["dns"],
        &[],
    ];
    EndpointSlice {
        key: slice_key(service_index, slice),
        address_type: IpFamily::V4,
        ports: names[ports]
            .iter()
            .map(|name| endpoint_port(name, 8080))
            .collect(),
        endpoints: (0..endpoints).map(endpoint).collect(),
    }
}

pub(super) fn property(name: u8, value: u8) -> Fact {
    let value = match value {
        0 => PropertyValue::Oversize {
            characters: 4_000,
            digest: [1; 16],
        },
        text => PropertyValue::Text(format!("value-{text}").into()),
    };
    Fact::ClusterPropertyUpserted(Arc::new(ClusterProperty {
        name: format!("p{name}").into(),
        value,
    }))
}

pub(super) fn health(control_plane: u8) -> Fact {
    Fact::HealthReported(Arc::new(Health {
        kubernetes_version: "v1.36.3".into(),
        control_plane: match control_plane {
            0 => ControlPlane::Ready,
            1 => ControlPlane::NotReady,
            _ => ControlPlane::Unreachable,
        },
        failed_checks: Vec::new(),
        verdict: None,
        nodes: None,
    }))
}
