//! Ports of several exports merged into one list, and who may serve which of them.

use std::collections::{BTreeMap, BTreeSet};

use shared::model::{Protocol, ServicePort, protocol::SERVICE_PORTS_MAX};

/// Most ports of an import. What is beyond is left out (and is a conflict anyway): younger exports lose.
const MERGED_PORTS_MAX: usize = SERVICE_PORTS_MAX;

/// The union, older exports first: of ports of one name the oldest is taken, then of those with one protocol
/// and port the oldest. So no name and no (protocol, port) is there twice, as in every Service.
pub(super) fn merge<'a>(by_precedence: impl Iterator<Item = &'a [ServicePort]>) -> Vec<ServicePort> {
    let mut names = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    let mut merged: Vec<ServicePort> = by_precedence
        .flatten()
        .filter(|port| names.insert(&port.name))
        .filter(|port| numbers.insert((port.protocol, port.port)))
        .take(MERGED_PORTS_MAX)
        .cloned()
        .collect();
    merged.shrink_to_fit();
    merged
}

/// Indexes of the merged ports that an export defines in the same way: name, protocol and port.
/// Another appProtocol is a conflict, but the traffic is the same.
pub(super) fn eligible(merged: &[ServicePort], export: &[ServicePort]) -> Vec<u16> {
    let defined: BTreeMap<&str, (Protocol, u16)> = export
        .iter()
        .map(|port| (&*port.name, (port.protocol, port.port)))
        .collect();
    let same = |port: &ServicePort| defined.get(&*port.name) == Some(&(port.protocol, port.port));
    let indexed = (0u16..).zip(merged);
    indexed
        .filter(|(_, port)| same(port))
        .map(|(index, _)| index)
        .collect()
}
