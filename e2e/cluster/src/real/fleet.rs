//! Owns: several real clusters on one etcd, from the first process to the last.
//! Never: knows what runs in the clusters.

use super::cluster::Cluster;
use super::components;
use super::directory::FleetDirectory;
use super::ports::ReservedPort;
use super::process::Process;
use super::programs::Programs;
use super::{Error, Options};
use crate::cost;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// Clusters in one fleet: each costs about 400 MB.
pub const CLUSTERS_MAX: usize = 16;
/// An etcd that does not listen after this long never will.
const LISTEN_WAIT: Duration = Duration::from_secs(60);
/// Interval of trying that.
const LISTEN_POLL: Duration = Duration::from_millis(10);

/// Running clusters. Dropping the fleet stops every process and removes its directory.
pub struct Fleet {
    // Fields are dropped in this order: whoever writes to etcd before etcd, the files last.
    clusters: Vec<Cluster>,
    etcd: Mutex<Process>,
    _etcd_ports: [ReservedPort; 2],
    directory: FleetDirectory,
    start_took: Duration,
}

impl Fleet {
    /// Starts a cluster for every name and waits until all are ready to serve.
    pub async fn start(names: &[&str], options: Options) -> Result<Self, Error> {
        let began = Instant::now();
        check_names(names)?;
        let programs = Programs::find()?;
        let directory = FleetDirectory::create(options.keep_directory)?;
        let [client, peer] = [ReservedPort::reserve()?, ReservedPort::reserve()?];
        let flags = components::etcd(directory.path(), client.number(), peer.number(), &options);
        let log = directory.path().join("etcd.log");
        let mut etcd = Process::start("etcd", &programs.program("etcd"), &flags, &log)?;
        // An API server whose first dial is refused backs off for a second.
        wait_listening(&mut etcd, client.number()).await?;
        let mut clusters = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            let cluster = Cluster::launch(
                name,
                index,
                directory.path(),
                &programs,
                client.number(),
                &options,
            )?;
            clusters.push(cluster);
        }
        let mut fleet = Self {
            clusters,
            etcd: Mutex::new(etcd),
            _etcd_ports: [client, peer],
            directory,
            start_took: Duration::ZERO,
        };
        let completing = fleet
            .clusters
            .iter_mut()
            .map(|cluster| cluster.complete(&options.crds));
        let completed = futures::future::try_join_all(completing).await;
        // An etcd that has ended is the cause, whatever the API servers complain about.
        fleet.check_etcd()?;
        completed?;
        fleet.start_took = began.elapsed();
        Ok(fleet)
    }

    /// The clusters, in the order of their names at the start.
    pub fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    /// The cluster of this name.
    pub fn cluster(&self, name: &str) -> Result<&Cluster, Error> {
        let found = self.clusters.iter().find(|cluster| cluster.name() == name);
        found.ok_or_else(|| Error::Usage(format!("no cluster named {name} was started")))
    }

    /// Every component that runs, with its process id.
    pub fn processes(&self) -> Vec<(String, u32)> {
        let etcd = self
            .etcd
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .who();
        let clusters = self.clusters.iter().flat_map(Cluster::processes);
        std::iter::once(etcd).chain(clusters).collect()
    }

    /// The processor time of every component that runs.
    pub fn spent(&self) -> Duration {
        let processes = self.processes().into_iter();
        processes.filter_map(|(_, id)| cost::of_process(id)).sum()
    }

    /// The directory with everything the components write.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Time of the start until every cluster was ready.
    pub fn start_took(&self) -> Duration {
        self.start_took
    }

    /// An error with the end of the log when a component has ended by itself.
    pub fn check(&self) -> Result<(), Error> {
        self.check_etcd()?;
        self.clusters.iter().try_for_each(Cluster::check)
    }

    /// Lets every component but etcd end without waiting for it.
    pub(super) fn close(&self) {
        self.clusters.iter().for_each(Cluster::close);
    }

    fn check_etcd(&self) -> Result<(), Error> {
        self.etcd
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .check()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // All end at the same time; the fields' own drops then wait for each.
        self.close();
    }
}

pub(super) async fn wait_listening(etcd: &mut Process, port: u16) -> Result<(), Error> {
    let deadline = Instant::now() + LISTEN_WAIT;
    let mut poll = tokio::time::interval(LISTEN_POLL);
    loop {
        poll.tick().await;
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok() {
            return Ok(());
        }
        etcd.check()?;
        if Instant::now() >= deadline {
            return Err(etcd.failure(format!("does not listen after {} s", LISTEN_WAIT.as_secs())));
        }
    }
}

/// Names become directories, etcd prefixes and contexts.
fn check_names(names: &[&str]) -> Result<(), Error> {
    if names.is_empty() || names.len() > CLUSTERS_MAX {
        let count = names.len();
        return Err(Error::Usage(format!(
            "a fleet has 1 to {CLUSTERS_MAX} clusters, not {count}"
        )));
    }
    let mut seen = BTreeSet::new();
    for name in names {
        let label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 63 || !name.chars().all(label) || !seen.insert(name) {
            return Err(Error::Usage(format!(
                "{name:?} cannot name a cluster: use a DNS label that no other cluster of the fleet has"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_labels() {
        check_names(&["east", "west-1"]).expect("two labels");
        for refused in [&["east", "east"][..], &["../etc"], &[""], &[]] {
            check_names(refused).expect_err("not usable");
        }
        check_names(&vec!["x"; CLUSTERS_MAX + 1]).expect_err("too many");
    }
}
