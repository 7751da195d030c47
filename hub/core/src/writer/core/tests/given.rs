//! Facts that several of these tests report.

use std::sync::Arc;

use model::{
    Endpoint, EndpointSlice, Export, Fact, IpFamily, Protocol, ServiceKey, ServicePolicies, ServicePort,
    ServiceType, SessionAffinity, SliceKey, UnixMillis,
};

fn service(namespace: &str, name: &str) -> ServiceKey {
    ServiceKey::new(namespace, name).expect("valid")
}

pub(super) fn export(namespace: &str, name: &str, created_at_seconds: u64, port: u16) -> Fact {
    let port = ServicePort {
        name: "http".into(),
        protocol: Protocol::Tcp,
        port,
        app_protocol: None,
    };
    Fact::ExportUpserted(Arc::new(Export {
        service: service(namespace, name),
        created_at: UnixMillis(created_at_seconds * 1_000),
        uid: format!("{namespace}-{name}-{created_at_seconds}").into(),
        generation: 1,
        service_type: ServiceType::ClusterSetIp,
        ports: vec![port],
        policies: ServicePolicies {
            session_affinity: SessionAffinity::None,
            session_affinity_timeout_seconds: None,
            internal_traffic_policy: None,
            traffic_distribution: None,
        },
        ip_families: vec![IpFamily::V4],
        labels: Default::default(),
        annotations: Default::default(),
    }))
}

/// A slice of `shop/cart` with ready endpoints at these addresses.
pub(super) fn slice(name: &str, octets: &[u8]) -> Fact {
    let endpoint = |octet: &u8| Endpoint {
        addresses: vec![[10, 0, 0, *octet].into()],
        ready: Some(true),
        serving: None,
        terminating: None,
        hostname: None,
        zone: None,
    };
    Fact::EndpointSliceUpserted(Arc::new(EndpointSlice {
        key: SliceKey {
            service: service("shop", "cart"),
            name: name.into(),
        },
        address_type: IpFamily::V4,
        ports: Vec::new(),
        endpoints: octets.iter().map(endpoint).collect(),
    }))
}
