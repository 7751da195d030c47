//! Owns: the addresses of clusters with nodes: who has which, in both families. Pure.
//! Never: gives one to a device.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Clusters on one machine: each takes about half a gigabyte.
pub(super) const CLUSTERS_MAX: u8 = 3;
/// Nodes of one cluster.
pub(super) const NODES_MAX: u8 = 2;
/// The port of the first cluster's API server; the others' follow.
const API_PORT: u16 = 6441;

/// Address of the control planes: the other end of everybody's default route.
pub(super) const CONTROL_V4: Ipv4Addr = Ipv4Addr::new(172, 31, 0, 1);
/// The same in IPv6.
pub(super) const CONTROL_V6: Ipv6Addr = Ipv6Addr::new(0xfd31, 0, 0, 0, 0, 0, 0, 1);

/// The families that a cluster's pods and Services have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
pub enum Families {
    /// IPv4 and IPv6, IPv4 first.
    Dual,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// A cluster by its place among the others, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClusterAddresses {
    number: u8,
    families: Families,
}

impl ClusterAddresses {
    /// Of the cluster with this number.
    pub(super) fn of(number: u8, families: Families) -> Self {
        debug_assert!((1..=CLUSTERS_MAX).contains(&number));
        Self { number, families }
    }

    /// Port of its API server.
    pub(super) fn api_port(self) -> u16 {
        API_PORT + u16::from(self.number) - 1
    }

    /// The ranges of its Services, as the API server takes them.
    pub(super) fn service_ranges(self) -> String {
        let number = self.number;
        self.each(format!("10.9{number}.0.0/16"), format!("fd9{number}::/112"))
            .join(",")
    }

    /// The range of all its pods.
    pub(super) fn pod_ranges(self) -> String {
        let number = self.number;
        self.each(format!("10.1{number}.0.0/16"), format!("fd1{number}::/32"))
            .join(",")
    }

    /// The first address of its Services: `kubernetes.default`.
    pub(super) fn api_service(self) -> Vec<String> {
        let number = self.number;
        self.each(format!("10.9{number}.0.1"), format!("fd9{number}::1"))
    }

    /// Address of its CoreDNS.
    pub(super) fn dns(self) -> String {
        let number = self.number;
        self.each(format!("10.9{number}.0.10"), format!("fd9{number}::a"))
            .remove(0)
    }

    /// One of its nodes, from 1 on.
    pub(super) fn node(self, node: u8) -> NodeAddresses {
        debug_assert!((1..=NODES_MAX).contains(&node));
        NodeAddresses { cluster: self, node }
    }

    fn each(self, v4: String, v6: String) -> Vec<String> {
        match self.families {
            Families::Dual => vec![v4, v6],
            Families::V4 => vec![v4],
            Families::V6 => vec![v6],
        }
    }
}

/// A node of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeAddresses {
    cluster: ClusterAddresses,
    node: u8,
}

impl NodeAddresses {
    fn host(self) -> u8 {
        10 * self.cluster.number + self.node
    }

    /// On the network between the nodes; every node has both families there.
    pub(super) fn v4(self) -> Ipv4Addr {
        let [a, b, c, _] = CONTROL_V4.octets();
        Ipv4Addr::new(a, b, c, self.host())
    }

    /// The same in IPv6.
    pub(super) fn v6(self) -> Ipv6Addr {
        let mut segments = CONTROL_V6.segments();
        segments[7] = 0x100 * u16::from(self.cluster.number) + u16::from(self.node);
        Ipv6Addr::from(segments)
    }

    /// As the kubelet says it to its API server, which takes the families of the cluster.
    pub(super) fn node_ips(self) -> String {
        self.cluster
            .each(self.v4().to_string(), self.v6().to_string())
            .join(",")
    }

    /// The ranges of its pods, one for each family.
    pub(super) fn pod_ranges(self) -> Vec<String> {
        self.cluster.each(self.pods_v4(), self.pods_v6())
    }

    /// Destinations of routes to its pods, in both families, whatever the cluster has.
    pub(super) fn routes(self) -> [(String, String); 2] {
        [
            (self.pods_v4(), self.v4().to_string()),
            (self.pods_v6(), self.v6().to_string()),
        ]
    }

    fn pods_v4(self) -> String {
        format!("10.1{}.{}.0/24", self.cluster.number, self.node)
    }

    fn pods_v6(self) -> String {
        format!("fd1{}:{}::/64", self.cluster.number, self.node)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all() -> impl Iterator<Item = NodeAddresses> {
        (1..=CLUSTERS_MAX).flat_map(|number| {
            (1..=NODES_MAX).map(move |node| ClusterAddresses::of(number, Families::Dual).node(node))
        })
    }

    #[test]
    fn no_two_nodes_share_an_address_or_a_range() {
        let count = usize::from(CLUSTERS_MAX * NODES_MAX);
        let v4: BTreeSet<_> = all().map(NodeAddresses::v4).chain([CONTROL_V4]).collect();
        let v6: BTreeSet<_> = all().map(NodeAddresses::v6).chain([CONTROL_V6]).collect();
        let pods: BTreeSet<_> = all().flat_map(NodeAddresses::pod_ranges).collect();
        assert_eq!(
            (v4.len(), v6.len(), pods.len()),
            (count + 1, count + 1, 2 * count)
        );
    }

    #[test]
    fn a_cluster_has_the_families_that_it_is_asked_for() {
        let of = |families| ClusterAddresses::of(2, families);
        assert_eq!(of(Families::Dual).service_ranges(), "10.92.0.0/16,fd92::/112");
        assert_eq!(of(Families::V4).service_ranges(), "10.92.0.0/16");
        assert_eq!(of(Families::V6).dns(), "fd92::a");
        assert_eq!(of(Families::V6).node(1).pod_ranges(), ["fd12:1::/64"]);
        assert_eq!(of(Families::Dual).node(2).node_ips(), "172.31.0.22,fd31::202");
        assert_eq!(of(Families::Dual).api_port(), 6442);
    }
}
