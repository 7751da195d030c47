//! What every cluster must hold, worked out from the clusters' own objects: an independent reading of KEP-1645.
//! It knows neither facts, revisions nor the hub, and shares no rule with the fold.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use shared::model::{ServiceKey, derived_name::derived_service_name};

use super::site::{Site, owner};

/// (name, protocol, number) of a port.
type Port = (String, String, i64);

/// One valid export.
struct Export {
    created: String,
    cluster: String,
    service: Value,
}

impl Export {
    fn is_headless(&self) -> bool {
        self.service["spec"]["clusterIP"] == "None"
    }

    fn affinity(&self) -> String {
        text(&self.service["spec"]["sessionAffinity"])
    }

    fn ports(&self) -> Vec<Port> {
        ports_of(&self.service["spec"]["ports"])
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn ports_of(ports: &Value) -> Vec<Port> {
    let port = |port: &Value| {
        (
            text(&port["name"]),
            port["protocol"].as_str().unwrap_or("TCP").to_owned(),
            port["port"].as_i64().unwrap_or_default(),
        )
    };
    ports.as_array().into_iter().flatten().map(port).collect()
}

fn place(object: &Value) -> (String, String) {
    (
        text(&object["metadata"]["namespace"]),
        text(&object["metadata"]["name"]),
    )
}

/// The objects of one cluster that matter, by namespace and name.
struct Shown {
    name: String,
    namespaces: BTreeSet<String>,
    services: BTreeMap<(String, String), Value>,
    exports: BTreeMap<(String, String), Value>,
    imports: BTreeMap<(String, String), Value>,
    slices: Vec<Value>,
}

impl Shown {
    fn of(site: &Site) -> Self {
        let all = |kind: &str| {
            site.cluster
                .list(kind)
                .into_iter()
                .map(|object| (place(&object), object))
        };
        let active = |object: &Value| object["metadata"]["deletionTimestamp"].is_null();
        Self {
            name: site.name.to_string(),
            namespaces: all("Namespace")
                .filter(|(_, object)| active(object))
                .map(|((_, name), _)| name)
                .collect(),
            services: all("Service").collect(),
            exports: all("ServiceExport").collect(),
            imports: all("ServiceImport").collect(),
            slices: site.cluster.list("EndpointSlice"),
        }
    }

    fn slices_of<'a>(&'a self, label: &'a str, service: &'a ServiceKey) -> impl Iterator<Item = &'a Value> {
        self.slices.iter().filter(move |slice| {
            place(slice).0 == *service.namespace && slice["metadata"]["labels"][label] == *service.name
        })
    }
}

/// What is expected of one service in the whole clusterset.
struct Expected {
    headless: bool,
    affinity: String,
    ports: BTreeSet<Port>,
    clusters: BTreeSet<String>,
    conflict: bool,
    /// Source cluster, addresses and (protocol, number) of the ports of each slice.
    slices: Vec<Slice>,
}

/// Source cluster, addresses, (protocol, number) of the ports.
type Slice = (String, Vec<String>, Vec<(String, i64)>);

fn slice_of(source: &str, slice: &Value, keep: impl Fn(&Port) -> bool) -> Slice {
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let mut addresses: Vec<String> = endpoints
        .flat_map(|endpoint| endpoint["addresses"].as_array().cloned().unwrap_or_default())
        .map(|address| text(&address))
        .collect();
    addresses.sort();
    let ports = ports_of(&slice["ports"]).into_iter().filter(keep);
    let mut ports: Vec<(String, i64)> = ports.map(|(_, protocol, number)| (protocol, number)).collect();
    ports.sort();
    (source.to_owned(), addresses, ports)
}

/// Exported and of a type that can be: by age, then by the cluster's name.
fn exports(shown: &[Shown], service: &ServiceKey) -> Vec<Export> {
    let key = (service.namespace.to_string(), service.name.to_string());
    let mut exports: Vec<Export> = shown
        .iter()
        .filter_map(|cluster| {
            let export = cluster.exports.get(&key)?;
            let found = cluster.services.get(&key)?;
            (found["spec"]["type"] != "ExternalName").then(|| Export {
                created: text(&export["metadata"]["creationTimestamp"]),
                cluster: cluster.name.clone(),
                service: found.clone(),
            })
        })
        .collect();
    exports.sort_by(|a, b| (&a.created, &a.cluster).cmp(&(&b.created, &b.cluster)));
    exports
}

/// First one port of each name, then of these one of each protocol and number; the older export's stays.
fn merged(ports: impl Iterator<Item = Port>) -> Vec<Port> {
    let mut named: Vec<Port> = Vec::new();
    for port in ports {
        if !named.iter().any(|taken| taken.0 == port.0) {
            named.push(port);
        }
    }
    let mut merged: Vec<Port> = Vec::new();
    for port in named {
        if !merged
            .iter()
            .any(|taken| (&taken.1, taken.2) == (&port.1, port.2))
        {
            merged.push(port);
        }
    }
    merged
}

fn expected(shown: &[Shown], service: &ServiceKey) -> Option<Expected> {
    let exports = exports(shown, service);
    let oldest = exports.first()?;
    let ports = merged(exports.iter().flat_map(Export::ports));
    let set = |export: &Export| export.ports().into_iter().collect::<BTreeSet<Port>>();
    let differs = |export: &Export| {
        export.is_headless() != oldest.is_headless()
            || export.affinity() != oldest.affinity()
            || set(export) != set(oldest)
    };
    let mut slices = Vec::new();
    for export in &exports {
        let own = export.ports();
        let eligible = |port: &&Port| ports.contains(port);
        let names: BTreeSet<(String, String)> = own
            .iter()
            .filter(eligible)
            .map(|(name, protocol, _)| (name.clone(), protocol.clone()))
            .collect();
        let keep = |port: &Port| names.contains(&(port.0.clone(), port.1.clone()));
        let cluster = shown.iter().find(|cluster| cluster.name == export.cluster)?;
        let local = cluster.slices_of("kubernetes.io/service-name", service);
        // A slice that never had a port serves all of them; one that lost its last serves nobody.
        let portless = |slice: &Value| ports_of(&slice["ports"]).is_empty();
        let made = local.map(|slice| (portless(slice), slice_of(&export.cluster, slice, keep)));
        slices.extend(
            made.filter(|(portless, (_, _, ports))| *portless || !ports.is_empty())
                .map(|(_, made)| made),
        );
    }
    slices.sort();
    Some(Expected {
        headless: oldest.is_headless(),
        affinity: oldest.affinity(),
        ports: ports.into_iter().collect(),
        clusters: exports.iter().map(|export| export.cluster.clone()).collect(),
        conflict: exports.iter().any(differs),
        slices,
    })
}

/// Compares every cluster with what it must hold. The first difference comes back in words, else how many services
/// have conflicting exports.
pub(super) fn judge(sites: &[Site]) -> Result<u64, String> {
    let shown: Vec<Shown> = sites.iter().map(Shown::of).collect();
    let keys: BTreeSet<ServiceKey> = super::site::all_keys().collect();
    let mut conflicts = 0;
    for service in &keys {
        let expected = expected(&shown, service);
        conflicts += u64::from(expected.as_ref().is_some_and(|expected| expected.conflict));
        for (cluster, site) in shown.iter().zip(sites) {
            compare(cluster, site, service, expected.as_ref())
                .map_err(|what| format!("{service} in {}: {what}", cluster.name))?;
        }
    }
    for site in sites {
        for kind in ["ServiceImport", "Service", "EndpointSlice"] {
            let strange = |object: &Value| owner(object).is_none_or(|service| !keys.contains(&service));
            if let Some(ghost) = site.ours(kind).iter().find(|object| strange(object)) {
                return Err(format!("a ghost in {}: {kind} {:?}", site.name, place(ghost)));
            }
        }
    }
    Ok(conflicts)
}

fn compare(
    cluster: &Shown,
    site: &Site,
    service: &ServiceKey,
    expected: Option<&Expected>,
) -> Result<(), String> {
    let key = (service.namespace.to_string(), service.name.to_string());
    for ((kind, of), made) in &site.strangers {
        if of == service {
            let found = site
                .cluster
                .get(kind, &service.namespace, &text(&made["metadata"]["name"]));
            // A type that changes and the like is nobody's business; what its maker wrote is.
            if found.is_none_or(|found| found["spec"] != made["spec"]) {
                return Err(format!("a stranger's {kind} was touched"));
            }
        }
    }
    let stranger = |kind: &str| site.strangers.contains_key(&(kind.to_owned(), service.clone()));
    let (taken, derived_taken) = (stranger("ServiceImport"), stranger("Service"));
    let here = cluster.namespaces.contains(&*service.namespace);
    let expected = expected.filter(|_| here);
    let import = cluster.imports.get(&key).filter(|_| !taken);
    let derived_name = derived_service_name(&service.namespace, &service.name);
    let derived = cluster
        .services
        .get(&(key.0.clone(), derived_name))
        .filter(|_| !derived_taken);
    if let Some(export) = cluster.exports.get(&key) {
        compare_export(cluster, export, &key, expected)?;
    }
    if taken {
        return Ok(());
    }
    let mut slices: Vec<Slice> = cluster
        .slices_of("multicluster.kubernetes.io/service-name", service)
        .map(|slice| {
            slice_of(
                &text(&slice["metadata"]["labels"]["multicluster.kubernetes.io/source-cluster"]),
                slice,
                |_| true,
            )
        })
        .collect();
    slices.sort();
    let Some(expected) = expected else {
        return match (import, derived, slices.is_empty()) {
            (None, None, true) => Ok(()),
            _ => Err(format!(
                "nobody exports it, and there is import {:?} derived {:?} slices {slices:?}",
                import.is_some(),
                derived.is_some()
            )),
        };
    };
    let import = import.ok_or("the import is missing")?;
    compare_import(import, expected)?;
    if derived_taken {
        return Ok(());
    }
    if slices != expected.slices {
        return Err(format!(
            "slices are {slices:?}, they should be {:?}",
            expected.slices
        ));
    }
    match (derived, expected.headless) {
        (None, true) => Ok(()),
        (Some(derived), false) => compare_derived(derived, import, expected),
        (found, _) => Err(format!(
            "derived Service: {}",
            if found.is_some() {
                "there, and headless"
            } else {
                "missing"
            }
        )),
    }
}

fn compare_import(import: &Value, expected: &Expected) -> Result<(), String> {
    let spec = &import["spec"];
    let headless = spec["type"] == "Headless";
    if headless != expected.headless {
        return Err(format!("the import's type is {}", spec["type"]));
    }
    let ports: BTreeSet<Port> = ports_of(&spec["ports"]).into_iter().collect();
    if ports != expected.ports {
        return Err(format!(
            "the import's ports are {ports:?}, they should be {:?}",
            expected.ports
        ));
    }
    if !headless && text(&spec["sessionAffinity"]) != expected.affinity {
        return Err(format!(
            "the import's sessionAffinity is {}",
            spec["sessionAffinity"]
        ));
    }
    let clusters = import["status"]["clusters"].as_array().into_iter().flatten();
    let clusters: BTreeSet<String> = clusters.map(|cluster| text(&cluster["cluster"])).collect();
    if clusters != expected.clusters {
        return Err(format!(
            "status.clusters is {clusters:?}, it should be {:?}",
            expected.clusters
        ));
    }
    Ok(())
}

fn compare_derived(derived: &Value, import: &Value, expected: &Expected) -> Result<(), String> {
    let ports: BTreeSet<Port> = ports_of(&derived["spec"]["ports"]).into_iter().collect();
    if ports != expected.ports {
        return Err(format!(
            "the derived Service's ports are {ports:?}, they should be {:?}",
            expected.ports
        ));
    }
    if derived["spec"]["clusterIPs"] != import["spec"]["ips"] {
        return Err(format!(
            "ips are {}, the derived Service has {}",
            import["spec"]["ips"], derived["spec"]["clusterIPs"]
        ));
    }
    if derived["spec"]["ipFamilies"] != import["spec"]["ipFamilies"] {
        return Err("ipFamilies are not the derived Service's".into());
    }
    if derived["spec"]["sessionAffinity"] != expected.affinity.as_str() {
        return Err(format!(
            "the derived Service's sessionAffinity is {}",
            derived["spec"]["sessionAffinity"]
        ));
    }
    Ok(())
}

fn compare_export(
    cluster: &Shown,
    export: &Value,
    key: &(String, String),
    expected: Option<&Expected>,
) -> Result<(), String> {
    let condition = |kind: &str| {
        let all = export["status"]["conditions"].as_array().into_iter().flatten();
        let found = all.into_iter().find(|condition| condition["type"] == kind);
        found.map(|condition| (text(&condition["status"]), text(&condition["reason"])))
    };
    let valid = match cluster.services.get(key) {
        None => ("False", "NoService"),
        Some(service) if service["spec"]["type"] == "ExternalName" => ("False", "InvalidServiceType"),
        Some(_) => ("True", "Valid"),
    };
    if condition("Valid") != Some((valid.0.into(), valid.1.into())) {
        return Err(format!(
            "Valid is {:?}, it should be {valid:?}",
            condition("Valid")
        ));
    }
    let conflict = expected
        .filter(|_| valid.0 == "True")
        .map(|expected| expected.conflict);
    let found = condition("Conflict").map(|(status, _)| status == "True");
    if conflict != found {
        return Err(format!("Conflict is {found:?}, it should be {conflict:?}"));
    }
    Ok(())
}
