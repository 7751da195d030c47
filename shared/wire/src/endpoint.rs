//! EndpointSlices, as reported and as imported ↔ protobuf.

use std::{
    fmt::{self, Write as _},
    net::IpAddr,
};

use proto::v1;

use super::common::{
    PORT_RULE, Taken, boxed, cluster_from_proto, each, family_from_proto, family_to_proto, narrow, owned,
    protocol_from_proto, protocol_to_proto, required, service_key_from_proto, service_key_to_proto,
};
use model::{
    Endpoint, EndpointPort, EndpointSlice, EndpointView, ImportedSlice, ImportedSliceKey, Revision, SliceKey,
    validate::{InvalidValue, shown},
};

/// Longest canonical text of any address, in bytes: eight groups of four digits.
const ADDRESS_TEXT_BYTES_MAX: usize = 39;

pub(super) fn slice_to_proto(slice: &EndpointSlice) -> v1::EndpointSlice {
    v1::EndpointSlice {
        endpoints: slice.endpoints.iter().map(endpoint_to_proto).collect(),
        ..slice_head_to_proto(slice)
    }
}

/// All of it but the endpoints.
pub(super) fn slice_head_to_proto(slice: &EndpointSlice) -> v1::EndpointSlice {
    v1::EndpointSlice {
        key: Some(key_to_proto(&slice.key)),
        address_type: family_to_proto(slice.address_type),
        ports: slice.ports.iter().map(port_to_proto).collect(),
        endpoints: Vec::new(),
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

/// All of it except the part from the endpoints on.
pub(super) fn imported_head_to_proto(slice: &ImportedSlice) -> v1::ImportedSlice {
    v1::ImportedSlice {
        key: Some(imported_key_to_proto(&slice.key)),
        address_type: family_to_proto(slice.address_type),
        ports: slice.ports.iter().map(port_to_proto).collect(),
        endpoints: Vec::new(),
        import_revision: 0,
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

fn endpoint_to_proto(endpoint: EndpointView<'_>) -> v1::Endpoint {
    v1::Endpoint {
        addresses: endpoint.addresses().map(|address| address.to_string()).collect(),
        ready: endpoint.ready(),
        serving: endpoint.serving(),
        terminating: endpoint.terminating(),
        hostname: endpoint.hostname().map(String::from),
        zone: endpoint.zone().map(String::from),
    }
}

fn endpoint_from_proto(endpoint: v1::Endpoint) -> Taken<Endpoint> {
    let addresses = endpoint
        .addresses
        .iter()
        .enumerate()
        .map(|(index, text)| address_from_proto(index, text));
    Ok(Endpoint {
        addresses: addresses.collect::<Taken<_>>()?,
        ready: endpoint.ready,
        serving: endpoint.serving,
        terminating: endpoint.terminating,
        hostname: boxed(&endpoint.hostname),
        zone: boxed(&endpoint.zone),
    })
}

fn address_from_proto(index: usize, text: &str) -> Taken<IpAddr> {
    address(text).map_err(|problem| InvalidValue::new(format!("addresses[{index}]"), problem))
}

/// Only the canonical text is taken: the same endpoints then always have the same bytes.
fn address(text: &str) -> Result<IpAddr, String> {
    if text.len() > ADDRESS_TEXT_BYTES_MAX {
        return Err(format!(
            "has {} bytes; no address has more than {ADDRESS_TEXT_BYTES_MAX}: send an IPv4 or IPv6 address",
            text.len()
        ));
    }
    let address: IpAddr = text.parse().map_err(|_| {
        let shown = shown(text);
        format!("{shown} is no address; send IPv4 without leading zeros, or IPv6 without a zone")
    })?;
    let mut left = Printed(text.as_bytes());
    match write!(left, "{address}") {
        Ok(()) if left.0.is_empty() => Ok(address),
        _ => Err(format!(
            "{} is not its canonical text; send {address}",
            shown(text)
        )),
    }
}

/// The rest of a text after the parts printed so far: compares without a copy.
struct Printed<'a>(&'a [u8]);

impl fmt::Write for Printed<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(part.as_bytes()).ok_or(fmt::Error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_address_is_taken_as_it_is_printed(one in any::<IpAddr>()) {
            let text = one.to_string();
            prop_assert!(text.len() <= ADDRESS_TEXT_BYTES_MAX);
            prop_assert_eq!(address(&text), Ok(one));
        }
    }

    #[test]
    fn the_longest_text_fills_its_bound() {
        let text = "1000:1000:1000:1000:1000:1000:1000:1000";
        assert_eq!(text.len(), ADDRESS_TEXT_BYTES_MAX);
        assert_eq!(address(text).unwrap().to_string(), text);
    }

    #[test]
    fn a_text_that_is_not_canonical_is_refused_with_the_one_that_is() {
        for (text, canonical) in [
            ("FD00::7", "fd00::7"),
            ("fd00:0::7", "fd00::7"),
            ("fd00::0007", "fd00::7"),
            ("0:0:0:0:0:0:0:1", "::1"),
            ("1::2:0:0:0:3", "1:0:0:2::3"),
            ("::ffff:a00:1", "::ffff:10.0.0.1"),
        ] {
            let problem = address(text).unwrap_err();
            assert_eq!(
                problem,
                format!("{text:?} is not its canonical text; send {canonical}")
            );
            assert!(address(canonical).is_ok());
        }
    }

    #[test]
    fn a_text_that_is_no_address_is_refused() {
        for text in [
            "",
            "10.1.0",
            "10.1.0.07",
            "10.1.0.256",
            " 10.1.0.7",
            "10.1.0.7 ",
            "10.1.0.7/32",
            "10.1.0.7:80",
            "fe80::1%eth0",
            "[fd00::7]",
            "fd00::7::1",
            "cart.example",
        ] {
            let problem = address(text).unwrap_err();
            assert!(problem.contains("is no address; send"), "{text:?}: {problem}");
        }
        let problem = address(&"1".repeat(40)).unwrap_err();
        assert!(
            problem.starts_with("has 40 bytes; no address has more than 39"),
            "{problem}"
        );
    }
}
