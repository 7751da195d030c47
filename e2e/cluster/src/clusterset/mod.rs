//! A whole clusterset on this machine: one hub, some clusters, an agent in each, as real processes.
//!
//! * `child.rs`, `process.rs`: the two programs, as children of this binary. `programs.rs`: or those of an image.
//! * `clusters.rs`: simulated or real clusters behind one face.
//! * `inspect.rs`: the hub's inspection services with an operator's certificate.
//! * `variants.rs`: programs that are not started as usual: a second agent, a hub that is to fail.
//! * `address.rs`: where a hub listens; `admin.rs`: the programs' admin ports; `questions.rs`: what is often asked of the hub.
//! * `shop.rs`: services that clusters export; `picture.rs`: what the oracle is asked about; `guard.rs`: what went.
//! * `eventually.rs`: waiting for conditions.
//!
//! Scenarios, the demo and crash tests are written against it. It judges nothing but what it is asked about.

mod address;
pub mod admin;
pub mod child;
mod clusters;
pub mod eventually;
pub mod guard;
mod inspect;
pub mod picture;
mod process;
pub mod programs;
pub mod questions;
pub mod shop;
mod variants;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::Context;
use hub::certs::{CertificateAuthority, Issued, Subject, Validity};
use shared::model::{ClusterId, Clusterset};

use crate::files::write_private;

pub use self::{
    child::Role,
    clusters::{Backend, Kind, MemberCluster, USER_AGENT},
    inspect::Inspection,
    process::{Program, signal},
    variants::{AgentVariant, DISK_RESERVE_FLAG, POD_UID_FLAG},
};

/// A running clusterset.
pub struct LocalClusterset {
    dir: PathBuf,
    /// Name in certificates.
    pub name: String,
    /// Issues what a scenario needs beside the usual certificates.
    pub authority: CertificateAuthority,
    hub: Option<Program>,
    /// The hub's gRPC address: the same after every restart.
    pub hub_address: SocketAddr,
    /// The clusters, by name.
    pub clusters: BTreeMap<String, MemberCluster>,
    agents: BTreeMap<String, Program>,
}

impl LocalClusterset {
    /// Starts clusters with these names, a hub, and an agent in each cluster. Everything is kept below `dir`.
    pub async fn start(dir: &Path, backend: &Backend, names: &[&str]) -> anyhow::Result<Self> {
        let mut clusterset = Self::without_agents(dir, backend, names).await?;
        for name in names {
            clusterset.start_agent(name).await?;
        }
        Ok(clusterset)
    }

    /// The same without agents.
    pub async fn without_agents(dir: &Path, backend: &Backend, names: &[&str]) -> anyhow::Result<Self> {
        let mut clusterset = Self::without_hub(dir, backend, names, "default").await?;
        clusterset.start_hub().await?;
        Ok(clusterset)
    }

    /// Clusters and certificates of a clusterset with this name, whose hub is the caller's affair, and so its address.
    pub async fn without_hub(
        dir: &Path,
        backend: &Backend,
        names: &[&str],
        clusterset: &str,
    ) -> anyhow::Result<Self> {
        Self::without_hub_beside(dir, backend, names, (clusterset, 0)).await
    }

    /// The same beside other clustersets, which have so many of the clusters of a shared fleet.
    pub async fn without_hub_beside(
        dir: &Path,
        backend: &Backend,
        names: &[&str],
        (clusterset, taken): (&str, usize),
    ) -> anyhow::Result<Self> {
        let dir = dir.to_owned();
        fs::create_dir_all(dir.join("certs"))?;
        let clusterset = Clusterset::new("e2e.tributary.test", clusterset)?;
        let authority = CertificateAuthority::generate(&clusterset, Validity::days_from_now(365))?;
        let mut clusters = BTreeMap::new();
        for (index, name) in names.iter().enumerate() {
            let cluster = MemberCluster::start(backend, name, taken + index, &dir).await;
            let cluster = cluster.with_context(|| format!("cannot start cluster {name}"))?;
            clusters.insert((*name).to_owned(), cluster);
        }
        let clusterset = Self {
            dir,
            name: clusterset.name().to_owned(),
            authority,
            hub: None,
            hub_address: address::unused(),
            clusters,
            agents: BTreeMap::new(),
        };
        clusterset.write_certificates()?;
        Ok(clusterset)
    }

    fn write_certificates(&self) -> anyhow::Result<()> {
        fs::write(self.certificate("ca.crt"), self.authority.certificate_pem())?;
        let loopback = [127, 0, 0, 1].into();
        self.issue(
            "hub",
            &Subject::Hub {
                name: "hub".into(),
                dns_names: Vec::new(),
                ips: vec![loopback],
            },
        )?;
        self.issue("operator", &Subject::Operator("e2e".into()))?;
        for name in self.clusters.keys() {
            self.issue(name, &Subject::Member(ClusterId::new(name)?))?;
        }
        Ok(())
    }

    /// Issues a certificate into `NAME.crt` and `NAME.key`.
    pub fn issue(&self, name: &str, subject: &Subject) -> anyhow::Result<()> {
        self.keep(name, &self.authority.issue(subject, Validity::days_from_now(30))?)
    }

    /// Writes a certificate, of whatever authority, into `NAME.crt` and `NAME.key`.
    pub fn keep(&self, name: &str, issued: &Issued) -> anyhow::Result<()> {
        fs::write(self.certificate(&format!("{name}.crt")), &issued.certificate_pem)?;
        write_private(
            &self.certificate(&format!("{name}.key")),
            issued.key_pem.as_bytes(),
        )
    }

    /// A file of the certificate directory.
    pub fn certificate(&self, file: &str) -> PathBuf {
        self.dir.join("certs").join(file)
    }

    /// The hub's data directory.
    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The log file of the hub, or of the agent of a cluster.
    pub fn log(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.log"))
    }

    /// A cluster by name.
    pub fn cluster(&self, name: &str) -> anyhow::Result<&MemberCluster> {
        self.clusters
            .get(name)
            .with_context(|| format!("there is no cluster {name}"))
    }

    fn tls(&self, name: &str) -> Vec<OsString> {
        let file = |flag: &str, file: String| [OsString::from(flag), self.certificate(&file).into()];
        [
            file("--tls-ca", "ca.crt".into()),
            file("--tls-cert", format!("{name}.crt")),
            file("--tls-key", format!("{name}.key")),
        ]
        .concat()
    }

    /// Starts the hub on its address, or on a free one the first time, and waits until it serves.
    pub async fn start_hub(&mut self) -> anyhow::Result<()> {
        self.start_hub_with(&[]).await
    }

    /// The same with further flags.
    pub async fn start_hub_with(&mut self, flags: &[&str]) -> anyhow::Result<()> {
        let arguments = self.hub_arguments(self.data(), flags);
        let mut hub = Program::start(Role::Hub, arguments, &self.log("hub"))?;
        self.hub_address = hub.serving().await.context("the hub does not start")?;
        self.hub = Some(hub);
        Ok(())
    }

    /// Kills the hub.
    pub async fn kill_hub(&mut self) -> anyhow::Result<()> {
        self.hub.take().context("the hub does not run")?.kill().await
    }

    /// Lets the hub drain.
    pub async fn stop_hub(&mut self) -> anyhow::Result<()> {
        self.hub.take().context("the hub does not run")?.stop().await
    }

    /// The hub's program.
    pub fn hub(&mut self) -> anyhow::Result<&mut Program> {
        self.hub.as_mut().context("the hub does not run")
    }

    /// Starts the agent of a cluster.
    pub async fn start_agent(&mut self, name: &str) -> anyhow::Result<()> {
        self.start_agent_with(name, &[]).await
    }

    /// The same with further flags.
    pub async fn start_agent_with(&mut self, name: &str, flags: &[&str]) -> anyhow::Result<()> {
        let mut agent = self.spawn_agent(&AgentVariant {
            certificate: name,
            cluster: name,
            log: name,
            flags,
        })?;
        agent
            .admin()
            .await
            .with_context(|| format!("the agent of {name} does not start"))?;
        self.agents.insert(name.to_owned(), agent);
        Ok(())
    }

    /// Kills the agent of a cluster.
    pub async fn kill_agent(&mut self, name: &str) -> anyhow::Result<()> {
        self.take_agent(name)?.kill().await
    }

    /// Lets the agent of a cluster drain.
    pub async fn stop_agent(&mut self, name: &str) -> anyhow::Result<()> {
        self.take_agent(name)?.stop().await
    }

    fn take_agent(&mut self, name: &str) -> anyhow::Result<Program> {
        self.agents
            .remove(name)
            .with_context(|| format!("the agent of {name} does not run"))
    }

    /// The agent of a cluster.
    pub fn agent(&mut self, name: &str) -> anyhow::Result<&mut Program> {
        self.agents
            .get_mut(name)
            .with_context(|| format!("the agent of {name} does not run"))
    }

    /// Waits until a program ends that nobody stopped: the hub (`None`) or the agent of a cluster. It counts as
    /// not running from then on; the text is the end of its log.
    pub async fn fallen(&mut self) -> (Option<String>, String) {
        let hub = self.hub.iter().map(|hub| (None, hub));
        let agents = self
            .agents
            .iter()
            .map(|(name, agent)| (Some(name.clone()), agent));
        let ends = hub.chain(agents).map(|(name, program)| {
            let gone = program.gone();
            Box::pin(async move {
                gone.await;
                name
            })
        });
        let ends: Vec<_> = ends.collect();
        if ends.is_empty() {
            return std::future::pending().await;
        }
        let (name, ..) = futures::future::select_all(ends).await;
        let program = match &name {
            None => self.hub.take(),
            Some(cluster) => self.agents.remove(cluster),
        };
        (name, program.map(|program| program.tail()).unwrap_or_default())
    }

    /// The hub's inspection services, as an operator.
    pub async fn inspect(&self) -> anyhow::Result<Inspection> {
        Inspection::connect(self, "operator").await
    }

    /// Ends every program in good order.
    pub async fn end(mut self) -> anyhow::Result<()> {
        for (name, agent) in std::mem::take(&mut self.agents) {
            agent
                .stop()
                .await
                .with_context(|| format!("the agent of {name}"))?;
        }
        match self.hub.take() {
            Some(hub) => hub.stop().await.context("the hub"),
            None => Ok(()),
        }
    }
}
