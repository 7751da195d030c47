//! Owns: looking at a hub's place: files, disk, log, ports, its own cluster. Every question has a time.
//! Never: judges, or leaves anything behind.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};
use rustix::fs::{Access, access};
use shared::{api::names::LABEL_CLUSTERSET, doctor::ask::within};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::judge::{DataSeen, LogSeen, PortProblem, PortSeen};
use crate::log::{OpenError, contents, space_of};

/// Longest wait for the admin port.
const ADMIN_WAIT: Duration = Duration::from_secs(4);
/// Most bytes of an answer that are read there.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;
/// The log's words for rows of a later release.
const LATER: &str = "a newer tributary-hub wrote it";

/// The data directory, its disk and its log.
pub(super) fn data(directory: &Path) -> DataSeen {
    // One that is missing is made, in a directory that must be there.
    let there = directory
        .ancestors()
        .find(|path| path.exists())
        .unwrap_or(Path::new("."));
    let writable = access(there, Access::WRITE_OK | Access::EXEC_OK);
    let writable = writable.map_err(|error| error.to_string()).and_then(|()| {
        if there.is_dir() {
            Ok(())
        } else {
            Err("it is no directory".to_owned())
        }
    });
    let log = if writable.is_ok() || directory.exists() {
        log(directory)
    } else {
        LogSeen::None
    };
    DataSeen {
        directory: directory.display().to_string(),
        writable,
        space: space_of(there).map(|space| (space.free, space.total)),
        log,
    }
}

fn log(directory: &Path) -> LogSeen {
    // Nothing is opened, and no lock made, where nothing is.
    if !directory.is_dir() {
        return LogSeen::None;
    }
    match contents(directory) {
        Ok(logs) => {
            let of = |log: &crate::log::Contents| {
                format!(
                    "{}: {} segments, head at revision {}",
                    log.clusterset,
                    log.segments.len(),
                    log.head.1
                )
            };
            LogSeen::Read(logs.iter().map(of).collect::<Vec<_>>().join("; "))
        }
        Err(OpenError::Missing { .. }) => LogSeen::None,
        Err(OpenError::Locked { .. }) => LogSeen::InUse,
        Err(error @ OpenError::Io { .. }) => LogSeen::Unread(error.to_string()),
        Err(error) if error.to_string().contains(LATER) => LogSeen::Later(error.to_string()),
        Err(error) => LogSeen::Refused(error.to_string()),
    }
}

/// Takes a port for a moment, and gives it back.
pub(super) async fn port(flag: &'static str, address: SocketAddr) -> PortSeen {
    let taken = match TcpListener::bind(address).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(PortProblem::InUse),
        Err(error) => Err(PortProblem::Other(error.to_string())),
    };
    PortSeen {
        flag,
        address: address.to_string(),
        taken,
    }
}

/// The answer of this machine's admin port at a path: code and body.
pub(super) async fn admin(address: SocketAddr, path: &str) -> Result<(u16, String), String> {
    let asked = async {
        let mut socket = TcpStream::connect(at_this_machine(address)).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        socket.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = match timeout(ADMIN_WAIT, asked).await {
        Ok(Ok(answer)) => String::from_utf8_lossy(&answer).into_owned(),
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(format!("no answer within {} s", ADMIN_WAIT.as_secs())),
    };
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    let code = code.ok_or("what answers speaks no HTTP")?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok((code, body.trim().to_owned()))
}

fn at_this_machine(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The namespace of the inventory, and its label.
pub(super) async fn namespace(client: &Client, name: &str) -> Result<Option<Option<String>>, String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let found = within(namespaces.get_opt(name)).await?;
    Ok(found.map(|namespace| namespace.labels().get(LABEL_CLUSTERSET).cloned()))
}
