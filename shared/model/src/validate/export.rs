//! Rules of an export: its ports, policies, IP families, identity and metadata.

use std::collections::BTreeSet;

use super::{
    InvalidValue, identity, metadata, shown,
    text::{app_protocol, dns_label, policy, port_number},
};
use crate::{
    Export, IpFamily, ServicePolicies, ServicePort, UnixMillis, position::CREATED_AT_SECONDS_MAX,
    protocol::SERVICE_PORTS_MAX,
};

/// The API server's bound on the timeout of session affinity: a day.
const SESSION_AFFINITY_TIMEOUT_SECONDS_MAX: i32 = 86_400;

/// Checks an export whole. Namespace and name are valid by construction.
pub fn export(export: &Export) -> Result<(), InvalidValue> {
    created_at(export.created_at)?;
    identity("uid", &export.uid)?;
    if export.generation < 0 {
        let problem = format!(
            "is {}; send metadata.generation as the API server states it",
            export.generation
        );
        return Err(InvalidValue::new("generation", problem));
    }
    ports(&export.ports)?;
    policies(&export.policies)?;
    ip_families(&export.ip_families)?;
    metadata(&export.labels, &export.annotations)
}

fn created_at(created_at: UnixMillis) -> Result<(), InvalidValue> {
    let whole_seconds = created_at.0.is_multiple_of(1_000);
    if whole_seconds && created_at.0 / 1_000 <= CREATED_AT_SECONDS_MAX as u64 {
        return Ok(());
    }
    let problem =
        "is not a whole second of the years 1970 to 9999; send the creationTimestamp of the API server";
    Err(InvalidValue::new("creationTimestamp", problem))
}

fn ports(ports: &[ServicePort]) -> Result<(), InvalidValue> {
    if ports.len() > SERVICE_PORTS_MAX {
        let problem = format!("are {}; at most {SERVICE_PORTS_MAX} are taken", ports.len());
        return Err(InvalidValue::new("ports", problem));
    }
    let mut names = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        one_port(port).map_err(|problem| problem.within(format_args!("ports[{index}]")))?;
        if !names.insert(&port.name) {
            let problem = format!(
                "{} is taken by another port; give each port a name of its own",
                shown(&port.name)
            );
            return Err(InvalidValue::new(format!("ports[{index}].name"), problem));
        }
        if !numbers.insert((port.protocol, port.port)) {
            let problem = format!("{} is there twice for the same protocol; remove one", port.port);
            return Err(InvalidValue::new(format!("ports[{index}].port"), problem));
        }
    }
    Ok(())
}

fn one_port(port: &ServicePort) -> Result<(), InvalidValue> {
    if !port.name.is_empty() {
        dns_label("name", &port.name)?;
    }
    port_number(port.port)?;
    app_protocol(port.app_protocol.as_deref())
}

fn policies(policies: &ServicePolicies) -> Result<(), InvalidValue> {
    if let Some(seconds) = policies.session_affinity_timeout_seconds
        && !(1..=SESSION_AFFINITY_TIMEOUT_SECONDS_MAX).contains(&seconds)
    {
        let problem = format!("is {seconds}; use 1 to {SESSION_AFFINITY_TIMEOUT_SECONDS_MAX}");
        return Err(InvalidValue::new(
            "sessionAffinityConfig.clientIP.timeoutSeconds",
            problem,
        ));
    }
    policy(
        "internalTrafficPolicy",
        policies.internal_traffic_policy.as_deref(),
    )?;
    policy("trafficDistribution", policies.traffic_distribution.as_deref())
}

/// One or two families, each once.
pub fn ip_families(families: &[IpFamily]) -> Result<(), InvalidValue> {
    match families {
        [_] => Ok(()),
        [first, second] if first != second => Ok(()),
        _ => Err(InvalidValue::new(
            "ipFamilies",
            "must be one or two different families, IPv4 and IPv6",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_creation_time_is_a_whole_second_of_four_digit_years() {
        let last = CREATED_AT_SECONDS_MAX as u64 * 1_000;
        for (millis, valid) in [(0, true), (1_500, false), (last, true), (last + 1_000, false)] {
            assert_eq!(created_at(UnixMillis(millis)).is_ok(), valid, "{millis}");
        }
    }

    #[test]
    fn a_service_has_so_many_ports_and_no_more() {
        let port = |number: usize| ServicePort {
            name: format!("p{number}").into(),
            protocol: crate::Protocol::Tcp,
            port: number as u16,
            app_protocol: None,
        };
        let up_to = |last| (1..=last).map(port).collect::<Vec<_>>();
        assert!(ports(&up_to(SERVICE_PORTS_MAX)).is_ok());
        assert!(ports(&up_to(SERVICE_PORTS_MAX + 1)).is_err());
    }
}
