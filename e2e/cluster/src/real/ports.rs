//! Owns: ports on the loopback address that stay ours while a component comes and goes.
//! Never: listens.

use super::Error;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpSocket;

/// A port that is bound but not listened on, so that the kernel gives it to nobody else.
/// The component binds it as well (both sides set `SO_REUSEPORT`) and alone gets the connections:
/// there is no moment at which the port is free, neither before the first start nor during a restart.
pub(super) struct ReservedPort {
    _socket: TcpSocket,
    port: u16,
}

impl ReservedPort {
    pub(super) fn reserve() -> Result<Self, Error> {
        let reserve = || {
            let socket = TcpSocket::new_v4()?;
            socket.set_reuseport(true)?;
            socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
            let port = socket.local_addr()?.port();
            Ok(Self {
                _socket: socket,
                port,
            })
        };
        reserve().map_err(|source| Error::Io {
            action: "reserve a port on 127.0.0.1".to_owned(),
            source,
        })
    }

    pub(super) fn number(&self) -> u16 {
        self.port
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn reserved_ports_are_distinct_and_closed_to_others() {
        let ports: Vec<ReservedPort> = (0..64)
            .map(|_| ReservedPort::reserve().expect("a port"))
            .collect();
        let numbers: BTreeSet<u16> = ports.iter().map(ReservedPort::number).collect();
        assert_eq!(numbers.len(), ports.len());
        std::net::TcpListener::bind(("127.0.0.1", ports[0].number())).expect_err("the port is reserved");
    }
}
