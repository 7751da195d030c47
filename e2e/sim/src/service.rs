//! The API server's own additions to a Service: defaults, and cluster addresses from its ranges. Keeps no list of
//! addresses: used ones are read from the Services in the store.

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

pub(super) fn set_default(map: &mut Value, name: &str, value: Value) {
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
    if spec["type"] == json!("NodePort") || spec["type"] == json!("LoadBalancer") {
        set_default(spec, "externalTrafficPolicy", json!("Cluster"));
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
) -> Vec<Cause> {
    if service["spec"]["type"] == json!("ExternalName") {
        for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            service["spec"].as_object_mut().map(|spec| spec.remove(name));
        }
        return Vec::new();
    }
    keep_allocated(service, old);
    let causes = family_mismatches(&service["spec"]);
    if causes.is_empty() {
        assign(service, old, ranges, taken).err().into_iter().collect()
    } else {
        causes
    }
}

/// Addresses that are not of the family at their place; so a primary family cannot be changed.
fn family_mismatches(spec: &Value) -> Vec<Cause> {
    let (addresses, families) = (spec["clusterIPs"].as_array(), spec["ipFamilies"].as_array());
    let pairs = addresses
        .into_iter()
        .flatten()
        .zip(families.into_iter().flatten())
        .enumerate();
    let wrong = pairs.filter_map(|(at, (address, wanted))| {
        let ip: IpAddr = address.as_str()?.parse().ok()?;
        let message = format!(
            "Invalid value: {address}: expected an {wanted} value as indicated by `ipFamilies[{at}]`"
        );
        (family(ip) != wanted.as_str()?).then(|| Cause::invalid(format!("spec.clusterIPs[{at}]"), message))
    });
    wrong.collect()
}

fn assign(
    service: &mut Value,
    old: Option<&Value>,
    ranges: &[Range],
    taken: &BTreeSet<IpAddr>,
) -> Result<(), Cause> {
    let asked = asked_addresses(&service["spec"])?;
    check_unchanged(&service["spec"], old, &asked)?;
    let families = settle_families(&mut service["spec"], &asked, ranges)?;
    let spec = &mut service["spec"];
    if spec["clusterIP"] == json!("None") {
        spec["clusterIPs"] = json!(["None"]);
    } else {
        let kept = old.map(|old| addresses_of(&old["spec"])).unwrap_or_default();
        let mut addresses = Vec::new();
        for (at, family) in families.iter().enumerate() {
            let range = ranges.iter().find(|range| range.family() == family);
            let range = range
                .ok_or_else(|| Cause::invalid("spec.ipFamilies", format!("{family} is not configured")))?;
            let ip = match asked.get(at).and_then(|text| text.parse::<IpAddr>().ok()) {
                Some(ip) if kept.contains(&ip) => ip,
                Some(ip) if !range.holds(ip) => {
                    return Err(refused_address(ip, "the provided IP is not in the valid range"));
                }
                Some(ip) if taken.contains(&ip) => {
                    return Err(refused_address(ip, "provided IP is already allocated"));
                }
                Some(ip) => ip,
                None => range
                    .first_free(taken)
                    .ok_or_else(|| Cause::invalid("spec.clusterIPs", "range is full"))?,
            };
            addresses.push(ip.to_string());
        }
        spec["clusterIP"] = json!(addresses[0]);
        spec["clusterIPs"] = json!(addresses);
    }
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
    Ok(())
}

/// The families that the Service will have; states the policy that follows from them when there is none.
fn settle_families(spec: &mut Value, asked: &[String], ranges: &[Range]) -> Result<Vec<String>, Cause> {
    let served: Vec<&str> = ranges.iter().map(Range::family).collect();
    let list = spec["ipFamilies"].as_array().cloned().unwrap_or_default();
    let mut families: Vec<String> = list
        .iter()
        .filter_map(|family| family.as_str().map(str::to_owned))
        .collect();
    for ip in asked
        .iter()
        .filter_map(|ip| ip.parse::<IpAddr>().ok())
        .skip(families.len())
    {
        families.push(family(ip).to_owned());
    }
    let headless = spec["clusterIP"] == json!("None");
    // Nothing is known of the endpoints of such a Service: it may have both families on any cluster.
    let boundless = headless
        && spec["selector"]
            .as_object()
            .is_none_or(|selector| selector.is_empty());
    if let Some(other) = families
        .iter()
        .find(|family| !boundless && !served.contains(&family.as_str()))
    {
        let message = format!("Invalid value: {other:?}: not configured on this cluster");
        return Err(Cause::invalid("spec.ipFamilies[0]", message));
    }
    if families.is_empty() {
        families.push(served.first().copied().unwrap_or("IPv4").to_owned());
    }
    let dual = families.len() > 1 || boundless;
    set_default(
        spec,
        "ipFamilyPolicy",
        json!(if dual { "RequireDualStack" } else { "SingleStack" }),
    );
    if spec["ipFamilyPolicy"] == json!("SingleStack") {
        families.truncate(1);
    } else if spec["ipFamilyPolicy"] == json!("RequireDualStack") && served.len() < 2 && !boundless {
        let message =
            "Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services";
        return Err(Cause::invalid("spec.ipFamilyPolicy", message));
    } else if families.len() < 2 && (served.len() > 1 || boundless) {
        families.push(if families[0] == "IPv4" {
            "IPv6".into()
        } else {
            "IPv4".into()
        });
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
