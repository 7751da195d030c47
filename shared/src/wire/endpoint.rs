//! EndpointSlices, as reported and as imported ↔ protobuf.

use std::net::IpAddr;

use proto::v1;

use super::common::{
    PORT_RULE, Taken, boxed, cluster_from_proto, each, family_from_proto, family_to_proto, narrow, owned,
    protocol_from_proto, protocol_to_proto, required, service_key_from_proto, service_key_to_proto,
};
use crate::model::{
    Endpoint, EndpointPort, EndpointSlice, ImportedSlice, ImportedSliceKey, Revision, SliceKey,
    validate::InvalidValue,
};

pub(super) fn slice_to_proto(slice: &EndpointSlice) -> v1::EndpointSlice {
    v1::EndpointSlice {
        key: Some(key_to_proto(&slice.key)),
        address_type: family_to_proto(slice.address_type),
        ports: slice.ports.iter().map(port_to_proto).collect(),
        endpoints: slice.endpoints.iter().map(endpoint_to_proto).collect(),
    }
}

pub(super) fn slice_from_proto(slice: v1::EndpointSlice) -> Taken<EndpointSlice> {
    Ok(EndpointSlice {
        key: key_from_proto(required("key", slice.key)?)?,
        address_type: family_from_proto("addressType", slice.address_type)?,
        ports: each("ports", slice.ports, port_from_proto)?,
        endpoints: each("endpoints", slice.endpoints, endpoint_from_proto)?.into(),
    })
}

pub(super) fn key_to_proto(key: &SliceKey) -> v1::EndpointSliceKey {
    v1::EndpointSliceKey {
        service: Some(service_key_to_proto(&key.service)),
        name: key.name.to_string(),
    }
}

pub(super) fn key_from_proto(key: v1::EndpointSliceKey) -> Taken<SliceKey> {
    Ok(SliceKey {
        service: service_key_from_proto("service", key.service)?,
        name: key.name.into(),
    })
}

pub(super) fn imported_to_proto(slice: &ImportedSlice) -> v1::ImportedSlice {
    v1::ImportedSlice {
        key: Some(imported_key_to_proto(&slice.key)),
        address_type: family_to_proto(slice.address_type),
        ports: slice.ports.iter().map(port_to_proto).collect(),
        endpoints: slice.endpoints.iter().map(endpoint_to_proto).collect(),
        import_revision: slice.import_revision.0,
    }
}

pub(super) fn imported_from_proto(slice: v1::ImportedSlice) -> Taken<ImportedSlice> {
    Ok(ImportedSlice {
        key: imported_key_from_proto(required("key", slice.key)?)?,
        address_type: family_from_proto("addressType", slice.address_type)?,
        ports: each("ports", slice.ports, port_from_proto)?,
        endpoints: each("endpoints", slice.endpoints, endpoint_from_proto)?.into(),
        import_revision: Revision(slice.import_revision),
    })
}

pub(super) fn imported_key_to_proto(key: &ImportedSliceKey) -> v1::ImportedSliceKey {
    v1::ImportedSliceKey {
        service: Some(service_key_to_proto(&key.service)),
        source_cluster: key.source_cluster.to_string(),
        source_slice: key.source_slice.to_string(),
    }
}

pub(super) fn imported_key_from_proto(key: v1::ImportedSliceKey) -> Taken<ImportedSliceKey> {
    Ok(ImportedSliceKey {
        service: service_key_from_proto("service", key.service)?,
        source_cluster: cluster_from_proto("sourceCluster", &key.source_cluster)?,
        source_slice: key.source_slice.into(),
    })
}

fn port_to_proto(port: &EndpointPort) -> v1::EndpointPort {
    v1::EndpointPort {
        name: port.name.to_string(),
        protocol: protocol_to_proto(port.protocol),
        port: port.port.map(u32::from),
        app_protocol: owned(&port.app_protocol),
    }
}

fn port_from_proto(port: v1::EndpointPort) -> Taken<EndpointPort> {
    Ok(EndpointPort {
        protocol: protocol_from_proto(port.protocol)?,
        port: port
            .port
            .map(|number| narrow("port", number, PORT_RULE))
            .transpose()?,
        app_protocol: boxed(&port.app_protocol),
        name: port.name.into(),
    })
}

fn endpoint_to_proto(endpoint: &Endpoint) -> v1::Endpoint {
    let octets = |address: &IpAddr| match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    v1::Endpoint {
        addresses: endpoint.addresses.iter().map(octets).collect(),
        ready: endpoint.ready,
        serving: endpoint.serving,
        terminating: endpoint.terminating,
        hostname: owned(&endpoint.hostname),
        zone: owned(&endpoint.zone),
    }
}

fn endpoint_from_proto(endpoint: v1::Endpoint) -> Taken<Endpoint> {
    let addresses = endpoint
        .addresses
        .iter()
        .enumerate()
        .map(|(index, octets)| address_from_proto(index, octets));
    Ok(Endpoint {
        addresses: addresses.collect::<Taken<_>>()?,
        ready: endpoint.ready,
        serving: endpoint.serving,
        terminating: endpoint.terminating,
        hostname: boxed(&endpoint.hostname),
        zone: boxed(&endpoint.zone),
    })
}

fn address_from_proto(index: usize, octets: &[u8]) -> Taken<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(octets) {
        return Ok(IpAddr::from(v4));
    }
    if let Ok(v6) = <[u8; 16]>::try_from(octets) {
        return Ok(IpAddr::from(v6));
    }
    let problem = format!("has {} bytes; send 4 for IPv4 or 16 for IPv6", octets.len());
    Err(InvalidValue::new(format!("addresses[{index}]"), problem))
}
