//! Owns: an etcd of its own, of one member or several, for tests of engines.
//! Never: knows what is stored in it.

use super::Error;
use super::directory::FleetDirectory;
use super::fleet::wait_listening;
use super::ports::ReservedPort;
use super::process::Process;
use super::programs::Programs;
use std::path::Path;

/// A running etcd. Dropping it stops every member and removes its files.
pub struct Etcd {
    // Dropped in this order: the files go last.
    members: Vec<Process>,
    ports: Vec<[ReservedPort; 2]>,
    _directory: FleetDirectory,
}

impl Etcd {
    /// Starts so many members and waits until they listen.
    pub async fn start(members: usize) -> Result<Self, Error> {
        let program = Programs::find()?.program("etcd");
        let directory = FleetDirectory::create(false)?;
        let reserve = |_| Ok([ReservedPort::reserve()?, ReservedPort::reserve()?]);
        let ports: Vec<[ReservedPort; 2]> = (0..members).map(reserve).collect::<Result<_, Error>>()?;
        let mut etcd = Self {
            members: Vec::new(),
            ports,
            _directory: directory,
        };
        let path = etcd._directory.path().to_path_buf();
        for member in 0..members {
            let flags = etcd.flags(&path, member);
            let log = path.join(format!("{member}.log"));
            etcd.members.push(Process::start("etcd", &program, &flags, &log)?);
        }
        for (process, [client, _]) in etcd.members.iter_mut().zip(&etcd.ports) {
            wait_listening(process, client.number()).await?;
        }
        Ok(etcd)
    }

    /// The URLs of its members for clients.
    pub fn endpoints(&self) -> Vec<String> {
        (0..self.ports.len())
            .map(|member| self.client_url(member))
            .collect()
    }

    /// Stops a member at once, as a crash would.
    pub fn stop(&mut self, member: usize) {
        self.members[member].stop();
    }

    fn client_url(&self, member: usize) -> String {
        format!("http://127.0.0.1:{}", self.ports[member][0].number())
    }

    fn peer_url(&self, member: usize) -> String {
        format!("http://127.0.0.1:{}", self.ports[member][1].number())
    }

    fn flags(&self, directory: &Path, member: usize) -> Vec<String> {
        let (client, peer) = (self.client_url(member), self.peer_url(member));
        let peers = (0..self.ports.len()).map(|member| format!("m{member}={}", self.peer_url(member)));
        let file = |name: &str| directory.join(name).display().to_string();
        vec![
            format!("--name=m{member}"),
            format!("--data-dir={}", file(&format!("m{member}"))),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster={}", peers.collect::<Vec<_>>().join(",")),
            "--socket-reuse-port=true".to_owned(),
            "--unsafe-no-fsync=true".to_owned(),
            "--log-level=warn".to_owned(),
        ]
    }
}
