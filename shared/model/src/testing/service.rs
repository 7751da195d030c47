//! Generators of exports and EndpointSlices.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
    sample::select,
};

use super::{dns_label, dns_subdomain, identity, service_key};
use crate::{
    Endpoint, EndpointPort, EndpointSlice, Export, IpFamily, Metadata, Protocol, ServicePolicies,
    ServicePort, ServiceType, SessionAffinity, SliceKey, UnixMillis, position::CREATED_AT_SECONDS_MAX,
};

/// A transport protocol.
pub fn protocol() -> impl Strategy<Value = Protocol> {
    select(vec![Protocol::Tcp, Protocol::Udp, Protocol::Sctp])
}

/// An IP family.
pub fn ip_family() -> impl Strategy<Value = IpFamily> {
    select(vec![IpFamily::V4, IpFamily::V6])
}

/// A type of a service.
pub fn service_type() -> impl Strategy<Value = ServiceType> {
    select(vec![ServiceType::ClusterSetIp, ServiceType::Headless])
}

/// One or two families, in either order.
pub fn ip_families() -> impl Strategy<Value = Vec<IpFamily>> {
    let (v4, v6) = (IpFamily::V4, IpFamily::V6);
    select(vec![vec![v4], vec![v6], vec![v4, v6], vec![v6, v4]])
}

fn app_protocol() -> impl Strategy<Value = Option<Box<str>>> {
    option::of("(kubernetes\\.io/)?[a-z0-9]{1,6}".prop_map(Box::from))
}

/// A port's name; often the empty one.
fn port_name() -> impl Strategy<Value = Box<str>> {
    prop_oneof![1 => Just(Box::from("")), 3 => dns_label()]
}

/// Ports of a Service: names unique, protocol and port unique.
pub fn service_ports() -> impl Strategy<Value = Vec<ServicePort>> {
    let details = (protocol(), 1..=u16::MAX, app_protocol());
    btree_map(port_name(), details, 0..5).prop_map(|ports| {
        let mut numbers = BTreeSet::new();
        let ports = ports
            .into_iter()
            .filter(|(_, (protocol, port, _))| numbers.insert((*protocol, *port)));
        ports
            .map(|(name, (protocol, port, app_protocol))| ServicePort {
                name,
                protocol,
                port,
                app_protocol,
            })
            .collect()
    })
}

/// Affinity and traffic policies.
pub fn service_policies() -> impl Strategy<Value = ServicePolicies> {
    (
        select(vec![SessionAffinity::None, SessionAffinity::ClientIp]),
        option::of(1..=86_400),
        option::of(select(vec!["Cluster", "Local"])),
        option::of(select(vec!["PreferClose", "PreferSameZone", "PreferSameNode"])),
    )
        .prop_map(
            |(session_affinity, timeout, internal, distribution)| ServicePolicies {
                session_affinity,
                session_affinity_timeout_seconds: timeout,
                internal_traffic_policy: internal.map(Box::from),
                traffic_distribution: distribution.map(Box::from),
            },
        )
}

/// Labels, or annotations whose values happen to be label values.
pub fn labels() -> impl Strategy<Value = Metadata> {
    let key = "([a-z]{1,4}\\.example/)?[A-Za-z0-9]{1,6}".prop_map(Box::from);
    let value = "([A-Za-z0-9]([-A-Za-z0-9_.]{0,6}[A-Za-z0-9])?)?".prop_map(Box::from);
    btree_map(key, value, 0..4)
}

/// Annotations with any text as value.
pub fn annotations() -> impl Strategy<Value = Metadata> {
    let key = "([a-z]{1,4}\\.example/)?[A-Za-z0-9]{1,6}".prop_map(Box::from);
    btree_map(key, ".{0,12}".prop_map(Box::from), 0..4)
}

/// A ServiceExport joined with its Service.
pub fn export() -> impl Strategy<Value = Export> {
    let identity = (
        service_key(),
        0..=CREATED_AT_SECONDS_MAX as u64,
        identity(),
        0..=i64::MAX,
    );
    let service = (service_type(), service_ports(), service_policies(), ip_families());
    (identity, service, labels(), annotations()).prop_map(|(identity, service, labels, annotations)| Export {
        service: identity.0,
        created_at: UnixMillis(identity.1 * 1_000),
        uid: identity.2,
        generation: identity.3,
        service_type: service.0,
        ports: service.1,
        policies: service.2,
        ip_families: service.3,
        labels,
        annotations,
    })
}

/// The key of a slice.
pub fn slice_key() -> impl Strategy<Value = SliceKey> {
    (service_key(), dns_subdomain()).prop_map(|(service, name)| SliceKey {
        service,
        name: name.into(),
    })
}

/// Ports of a slice: names unique.
pub fn endpoint_ports() -> impl Strategy<Value = Vec<EndpointPort>> {
    let details = (protocol(), option::of(1..=u16::MAX), app_protocol());
    btree_map(port_name(), details, 0..4).prop_map(|ports| {
        let port = |(name, (protocol, port, app_protocol))| EndpointPort {
            name,
            protocol,
            port,
            app_protocol,
        };
        ports.into_iter().map(port).collect()
    })
}

/// An address that pods may have.
pub fn address(family: IpFamily) -> impl Strategy<Value = IpAddr> {
    any::<[u8; 3]>().prop_map(move |[a, b, c]| match family {
        IpFamily::V4 => IpAddr::V4(Ipv4Addr::new(10, a, b, c)),
        IpFamily::V6 => {
            let (a, b, c) = (a.into(), b.into(), c.into());
            IpAddr::V6(Ipv6Addr::new(0xfd00, 0x10, 0, a, b, 0, 0, c))
        }
    })
}

/// An endpoint of a family.
pub fn endpoint(family: IpFamily) -> impl Strategy<Value = Endpoint> {
    let conditions = any::<(Option<bool>, Option<bool>, Option<bool>)>();
    let zone = "zone-[a-z0-9]{1,3}".prop_map(Box::from);
    (
        vec(address(family), 1..3),
        conditions,
        option::of(dns_label()),
        option::of(zone),
    )
        .prop_map(
            |(addresses, (ready, serving, terminating), hostname, zone)| Endpoint {
                addresses,
                ready,
                serving,
                terminating,
                hostname,
                zone,
            },
        )
}

/// An EndpointSlice.
pub fn endpoint_slice() -> impl Strategy<Value = EndpointSlice> {
    let endpoints = ip_family().prop_flat_map(|family| (Just(family), vec(endpoint(family), 0..6)));
    (slice_key(), endpoint_ports(), endpoints).prop_map(|(key, ports, (address_type, endpoints))| {
        EndpointSlice {
            key,
            address_type,
            ports,
            endpoints: endpoints.into(),
        }
    })
}
