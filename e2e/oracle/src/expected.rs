//! Owns: what every cluster must hold of one service, from what users declared in all of them.
//! Never: looks at what Tributary made, but for strangers' objects in its place.

use model::{
    ServiceKey,
    derived_name::{derived_service_name, imported_slice_name},
};
use serde_json::Value;

use super::{
    declared::{Exporter, conflicts, exporter, exporters, merged},
    part::{Of, Parts, Port},
    picture::{Picture, is_ours, text},
    pieces,
};

/// The expected result of the members' exports of one service.
pub struct Expected {
    /// Parts that every cluster with the namespace must hold; empty if nobody exports it.
    everywhere: Parts,
    conflicts: Vec<&'static str>,
}

impl Expected {
    /// Works it out from what users declared in these clusters.
    pub fn of<'a>(members: impl Iterator<Item = &'a Picture>, service: &ServiceKey) -> Self {
        let exporters = exporters(members, service);
        Self {
            everywhere: everywhere(&exporters, service),
            conflicts: conflicts(&exporters).into_iter().collect(),
        }
    }

    /// Returns true if the exports disagree.
    pub fn is_conflict(&self) -> bool {
        !self.conflicts.is_empty()
    }

    /// Parts that this cluster must hold of the service. An unmanaged object in the place of ours keeps it, and a
    /// service that it may not import is nowhere in it, whoever exports it.
    pub fn import_in(&self, picture: &Picture, service: &ServiceKey) -> Parts {
        match picture.namespace(service) {
            None => Parts::new(),
            Some(_) if picture.withheld.contains(service) => Parts::new(),
            Some(_) => judged(picture, service, self.everywhere.clone()),
        }
    }

    /// Conditions that this cluster's export must have, if it has one.
    pub fn export_in(&self, picture: &Picture, service: &ServiceKey) -> Option<Parts> {
        let export = exporter(picture, service)?;
        let conflicts = match self.conflicts.as_slice() {
            [] => pieces::condition("Conflict", "False", "NoConflicts"),
            reasons => pieces::condition("Conflict", "True", &reasons.join(",")),
        };
        Some(match export {
            Ok(_) => Parts::from([
                pieces::condition("Valid", "True", "Valid"),
                pieces::condition("Ready", "True", "Exported"),
                conflicts,
            ]),
            Err(reason) => Parts::from([
                pieces::condition("Valid", "False", reason),
                pieces::condition("Ready", "False", "Pending"),
            ]),
        })
    }
}

/// The parts that can be judged: an unmanaged import keeps all our objects from being updated, an unmanaged Service all
/// that need the derived one.
pub(super) fn judged(picture: &Picture, service: &ServiceKey, mut parts: Parts) -> Parts {
    let strange = |object: Option<&Value>| object.is_some_and(|object| !is_ours(object));
    if strange(picture.import(service)) {
        return Parts::new();
    }
    if strange(picture.derived_service(service)) {
        parts.retain(|part| part.of == Of::Import);
    }
    parts
}

/// The known content of an import, without anything beside it.
struct Front<'a> {
    headless: bool,
    ports: Vec<Port>,
    affinity: String,
    clusters: Vec<&'a str>,
}

impl Front<'_> {
    /// The name of the Service that is derived for it, if one is.
    fn derived(&self, service: &ServiceKey) -> Option<String> {
        (!self.headless).then(|| derived_service_name(&service.namespace, &service.name))
    }

    /// The import and its derived Service, in agreement.
    fn parts(&self, service: &ServiceKey) -> Parts {
        let mut parts = Parts::from([pieces::import(), pieces::kind(self.headless), pieces::ready()]);
        parts.extend(self.ports.iter().map(|port| pieces::port(Of::Import, port)));
        parts.extend(self.clusters.iter().map(|cluster| pieces::cluster(cluster)));
        if let Some(derived) = self.derived(service) {
            parts.insert(pieces::affinity(Of::Import, &self.affinity));
            parts.insert(pieces::derived_is(&derived));
            parts.insert(pieces::derived());
            parts.insert(pieces::affinity(Of::Derived, &self.affinity));
            let named = self.ports.iter().map(named_port);
            parts.extend(named.map(|port| pieces::port(Of::Derived, &port)));
            parts.insert(pieces::has_its_ips());
        }
        parts
    }
}

fn everywhere(exporters: &[Exporter<'_>], service: &ServiceKey) -> Parts {
    let Some(oldest) = exporters.first() else {
        return Parts::new();
    };
    let front = Front {
        headless: oldest.is_headless(),
        ports: merged(exporters),
        affinity: oldest.affinity(),
        clusters: exporters.iter().map(Exporter::cluster).collect(),
    };
    let mut parts = front.parts(service);
    let derived = front.derived(service);
    for exporter in exporters {
        slices(exporter, service, &front.ports, derived.as_deref(), &mut parts);
    }
    parts
}

/// Parts that must exist beside the import of a cluster, whatever it was made from: all that it promises, and its
/// slices behind the right Service.
pub(super) fn promised(picture: &Picture, service: &ServiceKey) -> Parts {
    let Some(import) = picture.import(service).filter(|import| is_ours(import)) else {
        return Parts::from([pieces::import()]);
    };
    let spec = &import["spec"];
    let clusters = import["status"]["clusters"].as_array().into_iter().flatten();
    let front = Front {
        headless: spec["type"] == "Headless",
        ports: Port::all(&spec["ports"]),
        affinity: text(&spec["sessionAffinity"]),
        clusters: clusters.filter_map(|one| one["cluster"].as_str()).collect(),
    };
    let mut parts = front.parts(service);
    let derived = front.derived(service).unwrap_or_default();
    for slice in picture.imported_slices(service) {
        parts.extend(pieces::slice_parts(slice, &derived));
    }
    parts
}

/// The name of a port in a derived Service.
fn named_port(port: &Port) -> Port {
    let mut port = port.clone();
    if port.name.is_empty() {
        port.name = format!("unnamed-{}-{}", port.protocol.to_lowercase(), port.number);
    }
    port
}

/// One imported slice for each slice of the exporter, with the ports that it may serve.
fn slices(
    exporter: &Exporter<'_>,
    service: &ServiceKey,
    merged: &[Port],
    derived: Option<&str>,
    parts: &mut Parts,
) {
    // Another name and another appProtocol are conflicts, but the traffic is the same.
    let own_ports = exporter.ports();
    for slice in exporter.picture.local_slices(service) {
        if slice["addressType"] == "FQDN" {
            continue;
        }
        let stated = Port::all(&slice["ports"]);
        let served: Vec<Port> = stated
            .iter()
            .filter_map(|port| {
                let own = |own: &&Port| own.name == port.name && own.protocol == port.protocol;
                let number = own_ports.iter().find(own)?.number();
                let front = merged.iter().find(|front| front.number() == number)?;
                let named = match derived {
                    Some(_) => named_port(front).name,
                    None => front.name.clone(),
                };
                Some(Port {
                    name: named,
                    ..port.clone()
                })
            })
            .collect();
        // A slice that never had a port serves all of them; one that lost its last serves nobody.
        if served.is_empty() && !stated.is_empty() {
            continue;
        }
        let source = exporter.cluster();
        let name = imported_slice_name(
            &service.namespace,
            &service.name,
            source,
            &text(&slice["metadata"]["name"]),
        );
        parts.insert(pieces::slice(&name, source, derived.unwrap_or_default()));
        parts.extend(served.iter().map(|port| pieces::slice_port(&name, source, port)));
        parts.extend(pieces::endpoints(&name, source, slice));
    }
}
