//! Ports of several exports merged into one list, and who may serve which of them.

use std::collections::{BTreeMap, BTreeSet};

use model::{Protocol, ServicePort, protocol::SERVICE_PORTS_MAX};

use super::rules::InForce;

/// Most ports of an import. Ports beyond the bound are left out (and are a conflict anyway): younger exports lose.
const MERGED_PORTS_MAX: usize = SERVICE_PORTS_MAX;

/// The union, older exports first: a port is taken unless one that is taken already has its name, or its protocol and
/// number. So no name and no (protocol, port) is there twice, as in every Service.
pub(super) fn merge<'a>(
    by_precedence: impl Iterator<Item = &'a [ServicePort]>,
    rules: InForce,
) -> Vec<ServicePort> {
    let mut names = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    let mut merged = Vec::new();
    for port in by_precedence.flatten() {
        let number = (port.protocol, port.port);
        let is_free = !names.contains(&port.name) && !numbers.contains(&number);
        if !rules.ports_by_number() && !names.insert(&port.name) {
            continue; // until version 3 a port that lost kept its name from others
        }
        if is_free && merged.len() < MERGED_PORTS_MAX {
            names.insert(&port.name);
            numbers.insert(number);
            merged.push(port.clone());
        }
    }
    merged.shrink_to_fit();
    merged
}

/// Indexes of the merged ports that an export serves: those of its protocols and numbers, because clients connect to
/// these. It serves them under the name of the merged port, and whatever appProtocol it states.
pub(super) fn eligible(merged: &[ServicePort], export: &[ServicePort], rules: InForce) -> Vec<u16> {
    let number = |port: &ServicePort| (port.protocol, port.port);
    let defined: BTreeMap<(Protocol, u16), &str> =
        export.iter().map(|port| (number(port), &*port.name)).collect();
    let serves = |port: &ServicePort| match defined.get(&number(port)) {
        Some(name) => rules.ports_by_number() || **name == *port.name,
        None => false,
    };
    let indexed = (0u16..).zip(merged);
    indexed
        .filter(|(_, port)| serves(port))
        .map(|(index, _)| index)
        .collect()
}

/// The ports of an export that no import has: nobody can reach them.
pub(super) fn unserved(merged: &[ServicePort], export: &[ServicePort]) -> Vec<ServicePort> {
    let numbers: BTreeSet<(Protocol, u16)> = merged.iter().map(|port| (port.protocol, port.port)).collect();
    let lost = export
        .iter()
        .filter(|port| !numbers.contains(&(port.protocol, port.port)));
    lost.cloned().collect()
}
