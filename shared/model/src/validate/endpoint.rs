//! Rules of EndpointSlices: counts, ports, hostnames, and addresses as the API server checks them; in addition no
//! multicast address passes, because none is an endpoint's.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::{
    InvalidValue, bounded_text, shown,
    text::{app_protocol, dns_label, dns_subdomain, port_number},
};
use crate::{
    EndpointPort, EndpointSlice, EndpointView, IpFamily, SliceKey,
    endpoint::{ENDPOINT_ADDRESSES_MAX, SLICE_ENDPOINTS_MAX, SLICE_PORTS_MAX, ZONE_BYTES_MAX},
};

/// Checks a slice whole.
pub fn endpoint_slice(slice: &EndpointSlice) -> Result<(), InvalidValue> {
    slice_key(&slice.key)?;
    ports(&slice.ports)?;
    if slice.endpoints.len() > SLICE_ENDPOINTS_MAX {
        let problem = format!(
            "are {}; at most {SLICE_ENDPOINTS_MAX} are taken: split the slice",
            slice.endpoints.len()
        );
        return Err(InvalidValue::new("endpoints", problem));
    }
    for (index, one) in slice.endpoints.iter().enumerate() {
        endpoint(one, slice.address_type)
            .map_err(|problem| problem.within(format_args!("endpoints[{index}]")))?;
    }
    Ok(())
}

/// Checks a slice's name. Its Service is valid by construction.
pub fn slice_key(key: &SliceKey) -> Result<(), InvalidValue> {
    dns_subdomain("name", &key.name)
}

fn ports(ports: &[EndpointPort]) -> Result<(), InvalidValue> {
    if ports.len() > SLICE_PORTS_MAX {
        let problem = format!("are {}; at most {SLICE_PORTS_MAX} are taken", ports.len());
        return Err(InvalidValue::new("ports", problem));
    }
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        one_port(port).map_err(|problem| problem.within(format_args!("ports[{index}]")))?;
        // Only names are unique here: two ports of a Service may share one target port.
        if !names.insert(&port.name) {
            let problem = format!(
                "{} is taken by another port; give each port a name of its own",
                shown(&port.name)
            );
            return Err(InvalidValue::new(format!("ports[{index}].name"), problem));
        }
    }
    Ok(())
}

fn one_port(port: &EndpointPort) -> Result<(), InvalidValue> {
    if !port.name.is_empty() {
        dns_label("name", &port.name)?;
    }
    port.port.map_or(Ok(()), port_number)?;
    app_protocol(port.app_protocol.as_deref())
}

fn endpoint(endpoint: EndpointView<'_>, family: IpFamily) -> Result<(), InvalidValue> {
    let count = endpoint.addresses().count();
    if count == 0 || count > ENDPOINT_ADDRESSES_MAX {
        let problem = format!("are {count}; 1 to {ENDPOINT_ADDRESSES_MAX} are taken");
        return Err(InvalidValue::new("addresses", problem));
    }
    for (index, one) in endpoint.addresses().enumerate() {
        if let Err(problem) = address(&one, family) {
            return Err(InvalidValue::new(format!("addresses[{index}]"), problem));
        }
    }
    if let Some(hostname) = endpoint.hostname() {
        dns_label("hostname", hostname)?;
    }
    endpoint
        .zone()
        .map_or(Ok(()), |zone| bounded_text("zone", zone, ZONE_BYTES_MAX))
}

/// Checks an address.
fn address(address: &IpAddr, family: IpFamily) -> Result<(), String> {
    let special = match (address, family) {
        (IpAddr::V4(v4), IpFamily::V4) => special_v4(*v4),
        (IpAddr::V6(v6), IpFamily::V6) => special_v6(*v6),
        (IpAddr::V4(_), IpFamily::V6) => {
            return Err(format!(
                "{address} is IPv4 in a slice of IPv6; put it into a slice of its own family"
            ));
        }
        (IpAddr::V6(_), IpFamily::V4) => {
            return Err(format!(
                "{address} is IPv6 in a slice of IPv4; put it into a slice of its own family"
            ));
        }
    };
    match special {
        Some(kind) => Err(format!(
            "{address} is {kind}, which no other cluster can reach; use the pod's address"
        )),
        None => Ok(()),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    if address.is_unspecified() {
        Some("the unspecified address")
    } else if address.is_loopback() {
        Some("a loopback address")
    } else if address.is_link_local() {
        Some("a link-local address")
    } else if address.is_multicast() {
        Some("a multicast address")
    } else {
        None
    }
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_unspecified() {
        Some("the unspecified address")
    } else if address.is_loopback() {
        Some("a loopback address")
    } else if address.is_unicast_link_local() {
        Some("a link-local address")
    } else if address.is_multicast() {
        Some("a multicast address")
    } else if address.to_ipv4_mapped().is_some() {
        Some("an IPv4 address in IPv6 form")
    } else {
        None
    }
}
