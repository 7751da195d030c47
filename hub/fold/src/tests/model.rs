//! "Oldest wins", written a second time from the specification alone and without regard to cost, to hold the
//! fold against. It uses nothing of the fold.

use std::collections::{BTreeMap, BTreeSet};

use model::{ClusterId, ConflictReason, EndpointPort, Export, ServiceKey, ServicePort, SliceKey};

use super::operations::Books;

/// The expected import of one service.
#[derive(Debug, PartialEq)]
pub(super) struct Expected {
    /// The export that every property comes from.
    pub(super) oldest: Export,
    pub(super) ports: Vec<ServicePort>,
    pub(super) eligible: BTreeMap<ClusterId, Vec<ServicePort>>,
    pub(super) reasons: BTreeSet<ConflictReason>,
    /// Ports of every slice that must be imported.
    pub(super) slices: BTreeMap<(ClusterId, SliceKey), Vec<EndpointPort>>,
}

/// The expected imports, by service.
pub(super) fn expected(books: &Books) -> BTreeMap<ServiceKey, Expected> {
    let services: BTreeSet<&ServiceKey> = books.exports.keys().map(|(service, _)| service).collect();
    services
        .into_iter()
        .map(|service| (service.clone(), of_service(books, service)))
        .collect()
}

fn of_service(books: &Books, service: &ServiceKey) -> Expected {
    let mut exports: Vec<(&ClusterId, &Export)> = books
        .exports
        .iter()
        .filter(|((exported, _), _)| exported == service)
        .map(|((_, cluster), export)| (cluster, export))
        .collect();
    exports.sort_by(|(a, one), (b, other)| {
        one.created_at
            .cmp(&other.created_at)
            .then_with(|| a.as_str().cmp(b.as_str()))
    });
    let ports = union(&exports);
    let eligible: BTreeMap<ClusterId, Vec<ServicePort>> = exports
        .iter()
        .map(|(cluster, export)| ((*cluster).clone(), served(&ports, export)))
        .collect();
    Expected {
        oldest: exports[0].1.clone(),
        reasons: ConflictReason::ALL
            .into_iter()
            .filter(|reason| disagreed(*reason, &exports))
            .collect(),
        slices: slices(books, service, &eligible),
        ports,
        eligible,
    }
}

/// A port is taken unless one that is taken before it has its name or its number.
fn union(exports: &[(&ClusterId, &Export)]) -> Vec<ServicePort> {
    let mut union: Vec<ServicePort> = Vec::new();
    for port in exports.iter().flat_map(|(_, export)| &export.ports) {
        let collides = |taken: &ServicePort| {
            taken.name == port.name || (taken.protocol, taken.port) == (port.protocol, port.port)
        };
        if !union.iter().any(collides) {
            union.push(port.clone());
        }
    }
    union
}

fn served(union: &[ServicePort], export: &Export) -> Vec<ServicePort> {
    let same = |a: &ServicePort, b: &ServicePort| a.protocol == b.protocol && a.port == b.port;
    let defined = |port: &&ServicePort| export.ports.iter().any(|own| same(own, port));
    union.iter().filter(defined).cloned().collect()
}

/// Returns true if the exports differ; each is written as a text that hides the order.
fn disagreed(reason: ConflictReason, exports: &[(&ClusterId, &Export)]) -> bool {
    let texts: BTreeSet<String> = exports
        .iter()
        .map(|(_, export)| canonical(reason, export))
        .collect();
    texts.len() > 1
}

fn canonical(reason: ConflictReason, export: &Export) -> String {
    let policies = &export.policies;
    match reason {
        ConflictReason::Port => {
            let mut ports: Vec<String> = export.ports.iter().map(|port| format!("{port:?}")).collect();
            ports.sort();
            ports.join(" ")
        }
        ConflictReason::Type => format!("{:?}", export.service_type),
        ConflictReason::SessionAffinity => format!("{:?}", policies.session_affinity),
        ConflictReason::SessionAffinityConfig => format!("{:?}", policies.session_affinity_timeout_seconds),
        ConflictReason::Labels => format!("{:?}", export.labels),
        ConflictReason::Annotations => format!("{:?}", export.annotations),
        ConflictReason::InternalTrafficPolicy => match &policies.internal_traffic_policy {
            None => "Cluster".to_owned(),
            Some(policy) => policy.to_string(),
        },
        ConflictReason::TrafficDistribution => match policies.traffic_distribution.as_deref() {
            Some("PreferClose") => "PreferSameZone".to_owned(),
            other => other.unwrap_or("unset").to_owned(),
        },
        ConflictReason::IpFamily => {
            let mut families: Vec<String> = export.ip_families.iter().map(|f| format!("{f:?}")).collect();
            families.sort();
            families.join(" ")
        }
    }
}

fn slices(
    books: &Books,
    service: &ServiceKey,
    eligible: &BTreeMap<ClusterId, Vec<ServicePort>>,
) -> BTreeMap<(ClusterId, SliceKey), Vec<EndpointPort>> {
    let (mut slices, mut served, mut served_by_who_is_there) = (BTreeMap::new(), false, false);
    for ((cluster, key), slice) in &books.slices {
        let (true, Some(ports)) = (key.service == *service, eligible.get(cluster)) else {
            continue;
        };
        let exported = &books.exports[&(service.clone(), cluster.clone())].ports;
        let mut kept = Vec::new();
        for port in &slice.ports {
            let own = exported
                .iter()
                .find(|own| own.name == port.name && own.protocol == port.protocol);
            let number = own.map(|own| (own.protocol, own.port));
            if let Some(front) = ports
                .iter()
                .find(|front| Some((front.protocol, front.port)) == number)
            {
                let mut called = port.clone();
                called.name.clone_from(&front.name);
                kept.push(called);
            }
        }
        if slice.ports.is_empty() || !kept.is_empty() {
            let ready = slice
                .endpoints
                .iter()
                .any(|endpoint| endpoint.ready() != Some(false));
            let is_there = !books.withdrawn.contains(cluster);
            served |= ready && is_there && !books.leaving.contains(cluster);
            served_by_who_is_there |= ready && is_there;
            slices.insert((cluster.clone(), key.clone()), kept);
        }
    }
    slices.retain(|(cluster, _), _| {
        let leaves = books.leaving.contains(cluster) && served;
        let withdrawn = books.withdrawn.contains(cluster) && served_by_who_is_there;
        !leaves && !withdrawn
    });
    slices
}
