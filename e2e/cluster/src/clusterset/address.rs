//! Owns: where on the loopback a hub listens that is ended and started again.
//! Never: listens.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// Linux gives the ports from 32768 on to connections. A hub that is away for a moment would not get back one of those
/// when a connection of anybody took it meanwhile; nor can one be kept for it as for components of Kubernetes
/// (`ReservedPort`), since a hub shares its port with nobody.
const PORTS: std::ops::Range<u32> = 12_000..32_000;

/// Number of ports of [`PORTS`] that this process has tried.
static LOOKED_AT: AtomicU32 = AtomicU32::new(0);

/// An address on the loopback that nobody uses, and that no other caller of this process is given; port 0 if there is none.
pub(super) fn unused() -> SocketAddr {
    let many = PORTS.end - PORTS.start;
    // Processes that run beside each other begin at different places.
    let first = process::id().wrapping_mul(7_919) % many;
    let loopback =
        |port: u32| SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port).unwrap_or_default()));
    (0..many)
        .map(|_| LOOKED_AT.fetch_add(1, Ordering::Relaxed).wrapping_add(first) % many)
        .map(|offset| loopback(PORTS.start + offset))
        .find(|address| TcpListener::bind(address).is_ok())
        .unwrap_or_else(|| loopback(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn everybody_is_given_an_address_that_no_connection_gets() {
        let given: Vec<SocketAddr> = (0..64).map(|_| unused()).collect();
        let distinct: BTreeSet<SocketAddr> = given.iter().copied().collect();
        assert_eq!(distinct.len(), given.len());
        assert!(
            given
                .iter()
                .all(|address| PORTS.contains(&u32::from(address.port())))
        );
        let taken: Vec<TcpListener> = given
            .iter()
            .filter_map(|address| TcpListener::bind(address).ok())
            .collect();
        assert!(!taken.is_empty(), "nobody listens there");
    }
}
