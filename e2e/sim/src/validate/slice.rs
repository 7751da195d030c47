//! Faults of an EndpointSlice beyond its schema: addresses by type, names of ports, hints. Never looks at the Service
//! that it belongs to, as no API server does.

use std::{collections::BTreeSet, net::IpAddr};

use serde_json::{Value, json};

use super::{complain, text};
use crate::status::Cause;

/// The most ports of a slice.
const PORTS_MAX: usize = 20_000;
/// The most zones, or nodes, in the hints of an endpoint.
const HINTS_MAX: usize = 8;

/// Faults of an EndpointSlice; endpoints that an update leaves alone are not judged again.
pub(super) fn endpoint_slice(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let family = object["addressType"].as_str().unwrap_or_default();
    if old.is_some_and(|old| old["addressType"] != object["addressType"]) {
        complain(
            causes,
            "addressType",
            &object["addressType"],
            vec!["field is immutable".to_owned()],
        );
    }
    ports(&object["ports"], causes);
    if old.is_some_and(|old| old["endpoints"] == object["endpoints"]) {
        return;
    }
    for (at, endpoint) in object["endpoints"].as_array().into_iter().flatten().enumerate() {
        let path = format!("endpoints[{at}]");
        addresses(
            &endpoint["addresses"],
            family,
            &format!("{path}.addresses"),
            causes,
        );
        if let Some(node) = endpoint["nodeName"].as_str() {
            complain(
                causes,
                &format!("{path}.nodeName"),
                &endpoint["nodeName"],
                text::subdomain(node),
            );
        }
        for (list, faults) in [
            ("forZones", text::label_value as fn(&str) -> _),
            ("forNodes", text::subdomain),
        ] {
            hints(
                &endpoint["hints"][list],
                &format!("{path}.hints.{list}"),
                faults,
                causes,
            );
        }
    }
}

fn ports(ports: &Value, causes: &mut Vec<Cause>) {
    let mut names = BTreeSet::new();
    let ports = ports.as_array().map_or(&[][..], Vec::as_slice);
    if ports.len() > PORTS_MAX {
        let message = format!("Too many: {}: must have at most {PORTS_MAX} items", ports.len());
        causes.push(Cause::other("FieldValueTooMany", "ports", message));
        return;
    }
    for (at, port) in ports.iter().enumerate() {
        let path = format!("ports[{at}]");
        let name = port["name"].as_str().unwrap_or_default();
        if !name.is_empty() {
            complain(causes, &format!("{path}.name"), &port["name"], text::label(name));
        }
        if !names.insert(name) {
            causes.push(Cause::duplicate(
                format!("{path}.name"),
                format!("Duplicate value: {name:?}"),
            ));
        }
        if let Some(protocol) = port["appProtocol"].as_str() {
            complain(
                causes,
                &format!("{path}.appProtocol"),
                &port["appProtocol"],
                text::qualified(protocol),
            );
        }
    }
}

fn addresses(addresses: &Value, family: &str, path: &str, causes: &mut Vec<Cause>) {
    let addresses = addresses.as_array().map_or(&[][..], Vec::as_slice);
    if addresses.is_empty() {
        causes.push(Cause::required(
            path,
            "Required value: must contain at least 1 address",
        ));
    }
    for (at, address) in addresses.iter().enumerate() {
        let item = format!("{path}[{at}]");
        let stated = address.as_str().unwrap_or_default();
        if family == "FQDN" {
            complain(causes, &item, address, text::domain(stated));
            continue;
        }
        let ip = match text::address(stated, family == "IPv6") {
            Ok(ip) => ip,
            Err(why) => {
                complain(causes, &item, address, vec![why]);
                continue;
            }
        };
        // Of another family: the list is to blame, not its item.
        match (family, ip) {
            ("IPv4", IpAddr::V6(_)) => {
                complain(causes, path, address, vec!["must be an IPv4 address".to_owned()])
            }
            ("IPv6", IpAddr::V4(_)) => {
                complain(causes, path, address, vec!["must be an IPv6 address".to_owned()])
            }
            _ => {}
        }
        complain(causes, &item, address, text::endpoint(ip).into_iter().collect());
    }
}

fn hints(list: &Value, path: &str, faults: fn(&str) -> text::Faults, causes: &mut Vec<Cause>) {
    let list = list.as_array().map_or(&[][..], Vec::as_slice);
    if list.len() > HINTS_MAX {
        let message = format!("Too many: {}: must have at most {HINTS_MAX} items", list.len());
        causes.push(Cause::other("FieldValueTooMany", path, message));
        return;
    }
    let mut names = BTreeSet::new();
    for (at, hint) in list.iter().enumerate() {
        let (field, name) = (
            format!("{path}[{at}].name"),
            hint["name"].as_str().unwrap_or_default(),
        );
        if !names.insert(name) {
            causes.push(Cause::duplicate(
                field.clone(),
                format!("Duplicate value: {}", json!(name)),
            ));
        }
        complain(causes, &field, &hint["name"], faults(name));
    }
}
