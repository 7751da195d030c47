//! Faults of a Service beyond its schema: ports and their names, selector, affinity, exclusions by type. Never looks at
//! ranges: the allocation decides whether a cluster address can be had.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{complain, labels, text};
use crate::status::Cause;

/// The longest time that a client may stick to an endpoint: a day.
const AFFINITY_SECONDS_MAX: i64 = 86_400;

/// Faults of a Service (its addresses apart).
pub(super) fn service(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let none: &[Value] = &[];
    let ports = spec["ports"].as_array().map_or(none, Vec::as_slice);
    if spec["type"] == json!("ExternalName") {
        external_name(spec, old, causes);
    } else if ports.is_empty() && spec["clusterIP"] != json!("None") {
        causes.push(Cause::required("spec.ports", "Required value"));
    }
    let outside = matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"));
    if outside && spec["clusterIP"] == json!("None") {
        let why = format!(
            "may not be set to 'None' for {} services",
            spec["type"].as_str().unwrap_or_default()
        );
        complain(causes, "spec.clusterIPs[0]", &spec["clusterIP"], vec![why]);
    }
    let mut names = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{at}]");
        name_of_port(port, ports.len() > 1, &path, &mut names, causes);
        port_beyond_its_name(spec, port, &path, causes);
    }
    labels("spec.selector", &spec["selector"], causes);
    let seconds = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    if let Some(stated) = seconds
        .as_i64()
        .filter(|stated| !(1..=AFFINITY_SECONDS_MAX).contains(stated))
    {
        let why = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
        let field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        complain(causes, field, &json!(stated), vec![why]);
    }
    for (at, ip) in spec["externalIPs"].as_array().into_iter().flatten().enumerate() {
        let judged = text::address(ip.as_str().unwrap_or_default(), false);
        let fault = judged.map_or_else(Some, text::endpoint);
        complain(
            causes,
            &format!("spec.externalIPs[{at}]"),
            ip,
            fault.into_iter().collect(),
        );
    }
}

fn external_name(spec: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let name = spec["externalName"].as_str().unwrap_or_default();
    match name.strip_suffix('.').unwrap_or(name) {
        "" => causes.push(Cause::required("spec.externalName", "Required value")),
        name => complain(
            causes,
            "spec.externalName",
            &spec["externalName"],
            text::subdomain(name),
        ),
    }
    // A Service that turns into one loses its addresses; a new one may not ask for any.
    let asks = spec["clusterIP"].as_str().is_some_and(|ip| !ip.is_empty());
    if old.is_none() && asks {
        let why = "Forbidden: may not be set for ExternalName services";
        causes.push(Cause::other("FieldValueForbidden", "spec.clusterIPs", why));
    }
}

fn name_of_port(
    port: &Value,
    required: bool,
    path: &str,
    names: &mut BTreeSet<String>,
    causes: &mut Vec<Cause>,
) {
    let field = format!("{path}.name");
    match port["name"].as_str().unwrap_or_default() {
        "" if required => causes.push(Cause::required(field, "Required value")),
        "" => {}
        name => {
            complain(causes, &field, &port["name"], text::label(name));
            if !names.insert(name.to_owned()) {
                causes.push(Cause::duplicate(field, format!("Duplicate value: {name:?}")));
            }
        }
    }
}

fn port_beyond_its_name(spec: &Value, port: &Value, path: &str, causes: &mut Vec<Cause>) {
    let target = &port["targetPort"];
    let faults = match target.as_str() {
        Some(name) => text::port_name(name),
        None if target
            .as_i64()
            .is_some_and(|number| !(1..=65_535).contains(&number)) =>
        {
            vec!["must be between 1 and 65535, inclusive".to_owned()]
        }
        None => Vec::new(),
    };
    complain(causes, &format!("{path}.targetPort"), target, faults);
    if let Some(protocol) = port["appProtocol"].as_str() {
        complain(
            causes,
            &format!("{path}.appProtocol"),
            &port["appProtocol"],
            text::qualified(protocol),
        );
    }
    if spec["type"] == json!("ClusterIP") && port["nodePort"].as_i64().is_some_and(|number| number != 0) {
        let why = "Forbidden: may not be used when `type` is 'ClusterIP'";
        causes.push(Cause::other(
            "FieldValueForbidden",
            format!("{path}.nodePort"),
            why,
        ));
    }
}
