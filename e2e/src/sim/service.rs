//! What the API server adds to a Service by itself: defaults, and cluster addresses from its ranges.
//! Keeps no list of addresses: what is taken is read from the Services in the store.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use serde_json::{Value, json};

use super::status::Cause;

/// The first address of a range that is handed out; those before it are for well-known Services.
const FIRST_OFFSET: u128 = 10;

/// A range of cluster addresses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    base: IpAddr,
    prefix: u8,
}

impl Range {
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let (base, prefix) = text
            .split_once('/')
            .ok_or_else(|| anyhow::anyhow!("{text} is not a CIDR"))?;
        Ok(Self {
            base: base.parse()?,
            prefix: prefix.parse()?,
        })
    }

    fn family(&self) -> &'static str {
        family(self.base)
    }

    fn host_bits(&self) -> u8 {
        (if self.base.is_ipv4() { 32u8 } else { 128 }).saturating_sub(self.prefix)
    }

    fn holds(&self, ip: IpAddr) -> bool {
        let shift = u32::from(self.host_bits());
        ip.is_ipv4() == self.base.is_ipv4()
            && number(ip).checked_shr(shift).unwrap_or(0) == number(self.base).checked_shr(shift).unwrap_or(0)
    }

    fn first_free(&self, taken: &BTreeSet<IpAddr>) -> Option<IpAddr> {
        let size = 1u128
            .checked_shl(u32::from(self.host_bits()))
            .unwrap_or(u128::MAX);
        let at = |offset: u128| match self.base {
            IpAddr::V4(base) => IpAddr::V4(Ipv4Addr::from_bits(base.to_bits() + offset as u32)),
            IpAddr::V6(base) => IpAddr::V6(Ipv6Addr::from_bits(base.to_bits() + offset)),
        };
        (FIRST_OFFSET..size.saturating_sub(1))
            .map(at)
            .find(|ip| !taken.contains(ip))
    }
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

fn family(ip: IpAddr) -> &'static str {
    if ip.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn set_default(map: &mut Value, name: &str, value: Value) {
    if map[name].is_null() {
        map[name] = value;
    }
}

/// The defaults that managers come to own when they create a Service.
pub(crate) fn default(service: &mut Value) {
    if !service["spec"].is_object() {
        service["spec"] = json!({});
    }
    let spec = &mut service["spec"];
    set_default(spec, "type", json!("ClusterIP"));
    set_default(spec, "sessionAffinity", json!("None"));
    if spec["sessionAffinity"] == json!("ClientIP") {
        if spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].is_null() {
            spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": 10_800}});
        }
    } else if let Some(spec) = spec.as_object_mut() {
        spec.remove("sessionAffinityConfig");
    }
    if spec["type"] != json!("ExternalName") {
        set_default(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        set_default(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        set_default(port, "targetPort", number);
    }
    if let Some(map) = spec.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
    if service["status"].is_null() {
        service["status"] = json!({"loadBalancer": {}});
    }
}

/// The defaults of an EndpointSlice.
pub(crate) fn default_slice(slice: &mut Value) {
    for port in slice["ports"].as_array_mut().into_iter().flatten() {
        set_default(port, "protocol", json!("TCP"));
        set_default(port, "name", json!(""));
    }
    for list in ["endpoints", "ports"] {
        set_default(slice, list, Value::Null);
    }
}

/// Gives a Service its families and addresses, or says why it cannot have what it asks for.
pub(crate) fn allocate(
    service: &mut Value,
    old: Option<&Value>,
    ranges: &[Range],
    taken: &BTreeSet<IpAddr>,
) -> Result<(), Cause> {
    if service["spec"]["type"] == json!("ExternalName") {
        for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            service["spec"].as_object_mut().map(|spec| spec.remove(name));
        }
        return Ok(());
    }
    keep_allocated(service, old);
    let asked = asked_addresses(&service["spec"])?;
    check_unchanged(&service["spec"], old, &asked)?;
    let families = wanted_families(&service["spec"], &asked, ranges)?;
    let spec = &mut service["spec"];
    let dual = families.len() > 1;
    set_default(
        spec,
        "ipFamilyPolicy",
        if dual {
            json!("RequireDualStack")
        } else {
            json!("SingleStack")
        },
    );
    let mut addresses = asked.clone();
    if spec["clusterIP"] != json!("None") {
        let kept: BTreeSet<IpAddr> = old.map(|old| addresses_of(&old["spec"])).unwrap_or_default();
        addresses.truncate(families.len());
        for (at, family) in families.iter().enumerate() {
            let range = ranges.iter().find(|range| range.family() == family).copied();
            let range = range
                .ok_or_else(|| Cause::invalid("spec.ipFamilies", format!("{family} is not configured")))?;
            match addresses.get(at).and_then(|text| text.parse::<IpAddr>().ok()) {
                Some(ip) if kept.contains(&ip) => {}
                Some(ip) if !range.holds(ip) => {
                    return Err(refused_address(ip, "the provided IP is not in the valid range"));
                }
                Some(ip) if taken.contains(&ip) => {
                    return Err(refused_address(ip, "provided IP is already allocated"));
                }
                Some(_) => {}
                None => {
                    let free = range.first_free(taken);
                    let free = free.ok_or_else(|| Cause::invalid("spec.clusterIPs", "range is full"))?;
                    addresses.push(free.to_string());
                }
            }
        }
        spec["clusterIP"] = json!(addresses[0]);
    }
    spec["clusterIPs"] = if spec["clusterIP"] == json!("None") {
        json!(["None"])
    } else {
        json!(addresses)
    };
    spec["ipFamilies"] = json!(families);
    Ok(())
}

/// An update that does not mention what was allocated keeps it.
fn keep_allocated(service: &mut Value, old: Option<&Value>) {
    let Some(old) = old.filter(|old| old["spec"]["type"] != json!("ExternalName")) else {
        return;
    };
    for name in ["clusterIP", "ipFamilies", "ipFamilyPolicy"] {
        if service["spec"][name].is_null() {
            set_default(&mut service["spec"], name, old["spec"][name].clone());
        }
    }
    if service["spec"]["clusterIPs"].is_null() && service["spec"]["clusterIP"] == old["spec"]["clusterIP"] {
        service["spec"]["clusterIPs"] = old["spec"]["clusterIPs"].clone();
    }
}

fn asked_addresses(spec: &Value) -> Result<Vec<String>, Cause> {
    let list = spec["clusterIPs"].as_array().cloned().unwrap_or_default();
    let mut asked: Vec<String> = list
        .iter()
        .filter_map(|ip| ip.as_str().map(str::to_owned))
        .collect();
    match spec["clusterIP"].as_str().filter(|ip| !ip.is_empty()) {
        Some(first) if asked.is_empty() => asked.push(first.to_owned()),
        Some(first) if asked[0] != first => {
            return Err(Cause::invalid(
                "spec.clusterIPs",
                format!("Invalid value: {asked:?}: first value must match `clusterIP`"),
            ));
        }
        _ => {}
    }
    let bad = asked
        .iter()
        .find(|ip| *ip != "None" && ip.parse::<IpAddr>().is_err());
    bad.map_or(Ok(asked.clone()), |ip| {
        Err(Cause::invalid(
            "spec.clusterIPs[0]",
            format!("Invalid value: {ip:?}: must be a valid IP address"),
        ))
    })
}

fn check_unchanged(spec: &Value, old: Option<&Value>, asked: &[String]) -> Result<(), Cause> {
    let before = old
        .and_then(|old| old["spec"]["clusterIP"].as_str())
        .unwrap_or_default();
    if !before.is_empty() && asked.first().is_some_and(|now| now != before) {
        let message = format!("Invalid value: {:?}: may not change once set", spec["clusterIP"]);
        return Err(Cause::invalid("spec.clusterIPs[0]", message));
    }
    let first = |spec: &Value| spec["ipFamilies"][0].clone();
    if let Some(old) = old.filter(|old| !first(&old["spec"]).is_null() && first(&old["spec"]) != first(spec))
    {
        let message = format!(
            "Invalid value: {}: primary ipFamily can not be changed from {}",
            first(spec),
            first(&old["spec"])
        );
        return Err(Cause::invalid("spec.ipFamilies[0]", message));
    }
    Ok(())
}

fn wanted_families(spec: &Value, asked: &[String], ranges: &[Range]) -> Result<Vec<String>, Cause> {
    let served: Vec<&str> = ranges.iter().map(Range::family).collect();
    let list = spec["ipFamilies"].as_array().cloned().unwrap_or_default();
    let mut families: Vec<String> = list
        .iter()
        .filter_map(|family| family.as_str().map(str::to_owned))
        .collect();
    let policy = spec["ipFamilyPolicy"].as_str().unwrap_or("SingleStack");
    for ip in asked
        .iter()
        .filter_map(|ip| ip.parse::<IpAddr>().ok())
        .skip(families.len())
    {
        families.push(family(ip).to_owned());
    }
    if let Some(other) = families.iter().find(|family| !served.contains(&family.as_str())) {
        let message = format!("Invalid value: {other:?}: not configured on this cluster");
        return Err(Cause::invalid("spec.ipFamilies[0]", message));
    }
    if families.is_empty() {
        families.push(served.first().copied().unwrap_or("IPv4").to_owned());
    }
    match policy {
        "SingleStack" if families.len() > 1 && !spec["ipFamilyPolicy"].is_null() => {
            families.truncate(1);
        }
        "RequireDualStack" if served.len() < 2 => {
            let message =
                "Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services";
            return Err(Cause::invalid("spec.ipFamilyPolicy", message));
        }
        "PreferDualStack" | "RequireDualStack" if served.len() > 1 && families.len() < 2 => {
            families.extend(
                served
                    .iter()
                    .find(|family| **family != families[0])
                    .map(|family| (*family).to_owned()),
            );
        }
        _ => {}
    }
    Ok(families)
}

fn refused_address(ip: IpAddr, why: &str) -> Cause {
    let message = format!(
        "Invalid value: [{:?}]: failed to allocate IP {ip}: {why}",
        ip.to_string()
    );
    Cause::invalid("spec.clusterIPs", message)
}

/// The cluster addresses that a Service holds.
pub(crate) fn addresses_of(spec: &Value) -> BTreeSet<IpAddr> {
    let list = spec["clusterIPs"].as_array().into_iter().flatten();
    list.filter_map(|ip| ip.as_str()?.parse().ok()).collect()
}
