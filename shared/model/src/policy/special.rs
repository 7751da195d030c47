//! Namespaces and addresses that no cluster serves to others, whatever a policy says: namespaces that Kubernetes keeps
//! for itself, and addresses that lead somewhere else in every network. The hub's derivation leaves them out, and the
//! importing agent refuses them once more: neither relies on the other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The namespaces that Kubernetes keeps for itself. Others that begin with `kube-` are users'.
pub const RESERVED_NAMESPACES: [&str; 3] = ["kube-node-lease", "kube-public", "kube-system"];

/// Cloud providers' metadata services outside the link-local ranges: their answers contain credentials.
const METADATA_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(100, 100, 100, 200)];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
/// Longest prefix of ::/96, the IPv4-compatible addresses.
const V4_COMPATIBLE_BITS: u32 = 32;

/// Returns true if Kubernetes keeps the namespace for itself: nothing is exported from it, and nothing imported into
/// it.
pub fn is_reserved_namespace(namespace: &str) -> bool {
    RESERVED_NAMESPACES.contains(&namespace)
}

/// The kind of an address that no endpoint of a cluster can have; `None`: it may be an endpoint's.
pub fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    if METADATA_V4.contains(&address) {
        return Some("the address of a cloud's metadata service");
    }
    match address.octets() {
        [0, ..] => Some("an address of \"this\" network (0.0.0.0/8)"),
        [127, ..] => Some("a loopback address"),
        [169, 254, ..] => Some("a link-local address"),
        [224..=239, ..] => Some("a multicast address"),
        [240..=255, ..] => Some("a reserved address (240.0.0.0/4)"),
        _ => None,
    }
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    if address == METADATA_V6 {
        return Some("the address of a cloud's metadata service");
    }
    if address.is_loopback() {
        return Some("a loopback address");
    }
    if u128::from(address) >> V4_COMPATIBLE_BITS == 0 {
        return Some("an IPv4-compatible address (::/96)");
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] => Some("an IPv4 address in IPv6 form"),
        [0x64, 0xff9b, 0 | 1, ..] => Some("an address that is translated to IPv4 (NAT64)"),
        [0x2002, ..] => Some("an address that is tunnelled to IPv4 (6to4)"),
        [first, ..] if first & 0xffc0 == 0xfe80 => Some("a link-local address"),
        [first, ..] if first & 0xff00 == 0xff00 => Some("a multicast address"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_lead_elsewhere_are_special() {
        for (text, what) in [
            ("168.63.129.16", "metadata"),
            ("100.100.100.200", "metadata"),
            ("fd00:ec2::254", "metadata"),
            ("169.254.169.254", "link-local"),
            ("0.0.0.0", "\"this\""),
            ("0.1.2.3", "\"this\""),
            ("127.0.0.53", "loopback"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "reserved"),
            ("::", "compatible"),
            ("::1", "loopback"),
            ("::10.0.0.1", "compatible"),
            ("::ffff:10.0.0.1", "in IPv6 form"),
            ("64:ff9b::a9fe:a9fe", "NAT64"),
            ("64:ff9b:1::1", "NAT64"),
            ("2002:a9fe:a9fe::1", "6to4"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("ff02::1", "multicast"),
        ] {
            let said = special(text.parse().expect("an address"));
            assert!(said.is_some_and(|said| said.contains(what)), "{text}: {said:?}");
        }
    }

    #[test]
    fn their_neighbours_are_not() {
        for text in [
            "168.63.129.15",
            "168.63.129.17",
            "100.100.100.199",
            "100.100.100.201",
            "100.64.0.1",
            "1.0.0.0",
            "10.0.0.1",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "169.255.0.0",
            "223.255.255.255",
            "fd00:ec2::253",
            "fd00:ec2::255",
            "64:ff9a::1",
            "64:ff9b:2::1",
            "2001:db8::1",
            "2003::1",
            "fec0::1",
            "fe7f::1",
            "fd00::1",
            "::1:0:0",
        ] {
            assert_eq!(special(text.parse().expect("an address")), None, "{text}");
        }
    }

    #[test]
    fn namespaces_of_kubernetes_itself_are_reserved() {
        for reserved in ["kube-system", "kube-public", "kube-node-lease"] {
            assert!(is_reserved_namespace(reserved), "{reserved}");
        }
        for free in ["kube", "kube-", "kube-prometheus-stack", "shop-kube-system"] {
            assert!(!is_reserved_namespace(free), "{free}");
        }
    }
}
