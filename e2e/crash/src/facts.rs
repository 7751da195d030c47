//! Owns: the facts of members that report as fast as the hub takes them: an export, and changes of its slices.
//! Never: talks to a hub, or judges.

use bytes::Bytes;
use shared::{
    model::{
        Endpoint, EndpointPort, EndpointSlice, Export, Fact, IpFamily, Metadata, Protocol, ServiceKey,
        ServicePolicies, ServicePort, ServiceType, SessionAffinity, SliceKey, UnixMillis,
    },
    wire,
};
use std::net::Ipv4Addr;

/// Different slices that a member reports; each is changed again and again.
const SLICES: u32 = 50;
/// Endpoints of a slice that is to take room.
const BULKY_ENDPOINTS: u32 = 900;

/// The export that the slices belong to.
pub fn export() -> anyhow::Result<Bytes> {
    let export = Export {
        service: ServiceKey::new("shop", "cart")?,
        created_at: UnixMillis(1_700_000_000_000),
        uid: "00000000-0000-4000-8000-000000000001".into(),
        generation: 1,
        service_type: ServiceType::ClusterSetIp,
        ports: vec![ServicePort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: 80,
            app_protocol: None,
        }],
        policies: ServicePolicies {
            session_affinity: SessionAffinity::None,
            session_affinity_timeout_seconds: None,
            internal_traffic_policy: Some("Cluster".into()),
            traffic_distribution: None,
        },
        ip_families: vec![IpFamily::V4],
        labels: Metadata::new(),
        annotations: Metadata::new(),
    };
    Ok(wire::encode_fact(&Fact::ExportUpserted(export.into())).bytes)
}

/// The `number`th change of the slices: no two are equal, so each becomes an event.
pub fn change(number: u32) -> anyhow::Result<Bytes> {
    slice(number, 1)
}

/// The same with a slice that is nearly as large as slices may be.
pub fn bulky_change(number: u32) -> anyhow::Result<Bytes> {
    slice(number, BULKY_ENDPOINTS)
}

fn slice(number: u32, endpoints: u32) -> anyhow::Result<Bytes> {
    let endpoint = |index: u32| {
        let [_, a, b, c] = number.wrapping_mul(endpoints).wrapping_add(index).to_be_bytes();
        Endpoint {
            addresses: vec![Ipv4Addr::new(10, a, b, c).into()],
            ready: Some(true),
            serving: Some(true),
            terminating: Some(false),
            hostname: None,
            zone: None,
        }
    };
    let slice = EndpointSlice {
        key: SliceKey {
            service: ServiceKey::new("shop", "cart")?,
            name: format!("cart-{}", number % SLICES).into(),
        },
        address_type: IpFamily::V4,
        ports: vec![EndpointPort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: Some(8080),
            app_protocol: None,
        }],
        endpoints: (0..endpoints).map(endpoint).collect(),
    };
    Ok(wire::encode_fact(&Fact::EndpointSliceUpserted(slice.into())).bytes)
}
