//! What KEP-1645 says of one service, worked out from all its exports. It knows no rule of the fold.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;
use shared::model::ServiceKey;

use super::{Shown, text};

/// (name, protocol, number) of a port.
pub(super) type Port = (String, String, i64);

/// One valid export.
struct Export {
    created: String,
    cluster: String,
    service: Arc<Value>,
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

pub(super) fn ports_of(ports: &Value) -> Vec<Port> {
    let port = |port: &Value| {
        (
            text(&port["name"]),
            port["protocol"].as_str().unwrap_or("TCP").to_owned(),
            port["port"].as_i64().unwrap_or_default(),
        )
    };
    ports.as_array().into_iter().flatten().map(port).collect()
}

/// What is expected of one service in the whole clusterset.
pub(super) struct Expected {
    pub(super) headless: bool,
    pub(super) affinity: String,
    pub(super) ports: BTreeSet<Port>,
    pub(super) clusters: BTreeSet<String>,
    pub(super) conflict: bool,
    /// Source cluster, addresses and (protocol, number) of the ports of each slice.
    pub(super) slices: Vec<Slice>,
}

/// Source cluster, addresses, (protocol, number) of the ports.
pub(super) type Slice = (String, Vec<String>, Vec<(String, i64)>);

pub(super) fn slice_of(source: &str, slice: &Value, keep: impl Fn(&Port) -> bool) -> Slice {
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

pub(super) fn expected(shown: &[Shown], service: &ServiceKey) -> Option<Expected> {
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
