//! The validations of built-in kinds and of metadata that a schema cannot state.
//! Pure functions from objects to causes; the allocation of addresses is `service.rs`'s.

use std::{collections::BTreeSet, net::IpAddr};

use serde_json::{Value, json};

use super::{kinds::Kind, status::Cause};

/// The longest DNS label.
const LABEL_LENGTH_MAX: usize = 63;
/// The longest DNS subdomain.
const SUBDOMAIN_LENGTH_MAX: usize = 253;
/// The most bytes in all annotations together.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= LABEL_LENGTH_MAX
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_subdomain(text: &str) -> bool {
    // A subdomain's parts have no length of their own in Kubernetes; the whole has.
    text.len() <= SUBDOMAIN_LENGTH_MAX
        && text.split('.').all(|part| {
            part.is_empty() == text.is_empty()
                && !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
                && !part.starts_with('-')
                && !part.ends_with('-')
        })
}

fn is_label_value(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    text.is_empty()
        || text.len() <= LABEL_LENGTH_MAX
            && edge(bytes.first())
            && edge(bytes.last())
            && bytes
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn is_qualified(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && !name.is_empty() && is_label_value(name),
        None => !key.is_empty() && is_label_value(key),
    }
}

fn invalid(field: &str, value: &Value, why: &str) -> Cause {
    Cause::invalid(field, format!("Invalid value: {value}: {why}"))
}

/// What is wrong with an object's metadata.
pub(crate) fn metadata(kind: &Kind, object: &Value, causes: &mut Vec<Cause>) {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let legal = if matches!(kind.kind.as_str(), "Service" | "Namespace") {
        is_label(name)
    } else {
        is_subdomain(name)
    };
    if !legal {
        causes.push(invalid(
            "metadata.name",
            &metadata["name"],
            "must be a lowercase RFC 1123 name",
        ));
    }
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        if !is_qualified(key) {
            causes.push(invalid(
                "metadata.labels",
                &json!(key),
                "must be a qualified name",
            ));
        }
        if !value.as_str().is_some_and(is_label_value) {
            causes.push(invalid(
                "metadata.labels",
                value,
                "must be a valid label value of at most 63 characters",
            ));
        }
    }
    let mut annotation_bytes = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        annotation_bytes += key.len() + value.as_str().map_or(0, str::len);
        if !is_qualified(&key.to_lowercase()) {
            causes.push(invalid(
                "metadata.annotations",
                &json!(key),
                "must be a qualified name",
            ));
        }
    }
    if annotation_bytes > ANNOTATION_BYTES_MAX {
        let message = format!("Too long: may not be more than {ANNOTATION_BYTES_MAX} bytes");
        causes.push(Cause::other("FieldValueTooLong", "metadata.annotations", message));
    }
    for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().is_none_or(str::is_empty) {
                causes.push(Cause::invalid(
                    format!("metadata.ownerReferences.{field}"),
                    "must not be empty",
                ));
            }
        }
    }
}

/// What is wrong with a Service (its addresses apart).
pub(crate) fn service(object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    if spec["type"] == json!("ExternalName") {
        return;
    }
    let ports = spec["ports"].as_array().cloned().unwrap_or_default();
    if ports.is_empty() && spec["clusterIP"] != json!("None") {
        causes.push(Cause::required("spec.ports", "Required value"));
    }
    let mut names = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{at}]");
        match port["name"].as_str().unwrap_or_default() {
            "" if ports.len() > 1 => causes.push(Cause::required(format!("{path}.name"), "Required value")),
            "" => {}
            name if !names.insert(name.to_owned()) => {
                causes.push(Cause::duplicate(
                    format!("{path}.name"),
                    format!("Duplicate value: {name:?}"),
                ));
            }
            _ => {}
        }
    }
}

/// What is wrong with an EndpointSlice.
pub(crate) fn endpoint_slice(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let family = object["addressType"].as_str().unwrap_or_default();
    if old.is_some_and(|old| old["addressType"] != object["addressType"]) {
        causes.push(invalid(
            "addressType",
            &object["addressType"],
            "field is immutable",
        ));
    }
    let endpoints = object["endpoints"].as_array().cloned().unwrap_or_default();
    for (at, endpoint) in endpoints.iter().enumerate() {
        let addresses = endpoint["addresses"].as_array().cloned().unwrap_or_default();
        let path = format!("endpoints[{at}].addresses");
        if addresses.is_empty() {
            causes.push(Cause::required(path.clone(), "must contain at least 1 address"));
        }
        for (inner, address) in addresses.iter().enumerate() {
            if let Some(why) = address_fault(address.as_str().unwrap_or_default(), family) {
                causes.push(invalid(&format!("{path}[{inner}]"), address, why));
            }
        }
    }
    let mut names = BTreeSet::new();
    for (at, port) in object["ports"].as_array().into_iter().flatten().enumerate() {
        if !names.insert(port["name"].as_str().unwrap_or_default().to_owned()) {
            causes.push(Cause::duplicate(
                format!("ports[{at}].name"),
                format!("Duplicate value: {}", port["name"]),
            ));
        }
    }
}

fn address_fault(address: &str, family: &str) -> Option<&'static str> {
    // The standard parser refuses leading zeros, as the API server does.
    let parsed = address.parse::<IpAddr>();
    match (family, parsed) {
        ("FQDN", _) => (!is_subdomain(address)).then_some("must be a lowercase RFC 1123 subdomain"),
        ("IPv4", Ok(IpAddr::V4(ip))) => special_fault(
            ip.is_unspecified(),
            ip.is_loopback(),
            ip.is_link_local(),
            ip.octets()[..3] == [224, 0, 0],
        ),
        ("IPv6", Ok(IpAddr::V6(ip))) => special_fault(
            ip.is_unspecified(),
            ip.is_loopback(),
            ip.is_unicast_link_local(),
            ip.segments()[0] & 0xff0f == 0xff02,
        ),
        ("IPv4", _) => Some("must be a valid IPv4 address"),
        ("IPv6", _) => Some("must be a valid IPv6 address"),
        _ => None,
    }
}

fn special_fault(
    unspecified: bool,
    loopback: bool,
    link_local: bool,
    multicast: bool,
) -> Option<&'static str> {
    match (unspecified, loopback, link_local, multicast) {
        (true, ..) => Some("may not be unspecified (0.0.0.0 or ::)"),
        (_, true, ..) => Some("may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (_, _, true, _) => Some("may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (.., true) => Some("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        _ => None,
    }
}
