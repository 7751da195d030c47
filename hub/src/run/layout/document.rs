//! Owns: the file of `--clustersets` as it is written, with no word that is not known, and what it says as flags.
//! Never: compares two of its entries.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::{Context, anyhow, ensure};
use clap::ValueEnum;
use serde::Deserialize;
use shared::tls::{ClientFiles, HubAddress, MemberKeys, TlsFiles};

use crate::args::{
    DRAIN_LIMIT, EnrolmentArgs, EnrolmentMode, JoinArgs, MEMBER_CERT_LIFETIME, SetArgs, TOPOLOGY_ROLLOUTS,
    TopologyMode, drain_limit, lifetime,
};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub(super) clustersets: Vec<Entry>,
}

/// One clusterset. Each field is the flag of `serve` of that name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Entry {
    pub(super) name: String,
    data: PathBuf,
    listen: SocketAddr,
    tls: Tls,
    join: Option<Join>,
    clients: Option<Clients>,
    #[serde(default)]
    adopt_epoch: bool,
    inventory_namespace: Option<String>,
    cluster_manager: Option<String>,
    access_providers: Option<PathBuf>,
    topology: Option<TopologyMode>,
    topology_rollouts: Option<u16>,
    topology_enrolment: Option<Enrolment>,
}

/// `--topology-enrolment`, and the flags that go with it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Enrolment {
    mode: EnrolmentMode,
    agent: PathBuf,
    hub_addresses: Vec<String>,
    #[serde(default)]
    join_addresses: Vec<String>,
    drain_limit: Option<String>,
}

/// `--tls-…`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tls {
    ca: PathBuf,
    cert: PathBuf,
    key: PathBuf,
}

/// `--join-…`, and `--member-cert-lifetime`. Without `listen` no cluster joins, and members renew.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Join {
    listen: Option<SocketAddr>,
    cert: PathBuf,
    key: PathBuf,
    member_cert_lifetime: Option<String>,
}

/// Further files about clients' certificates.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Clients {
    member_keys: Option<String>,
    renewal_issuer: Option<PathBuf>,
    client_crl: Option<PathBuf>,
    deny_keys: Option<PathBuf>,
}

/// Reads it. The error names the place of the problem, on one line.
pub(super) fn read(text: &str) -> anyhow::Result<Document> {
    serde_norway::from_str(text).map_err(|error| {
        let said = error.to_string();
        anyhow!("{}", said.split_whitespace().collect::<Vec<_>>().join(" "))
    })
}

impl Entry {
    /// The flags of `serve` for this clusterset alone.
    pub(super) fn flags(self) -> anyhow::Result<SetArgs> {
        let tls = TlsFiles {
            cert: self.tls.cert,
            key: self.tls.key,
            ca: self.tls.ca,
        };
        Ok(SetArgs {
            data: self.data,
            listen: self.listen,
            tls,
            join: join(self.join)?,
            clients: self.clients.map_or_else(|| Ok(ClientFiles::default()), clients)?,
            adopt_epoch: self.adopt_epoch,
            inventory_namespace: self.inventory_namespace,
            cluster_manager: self.cluster_manager,
            access_providers: self.access_providers,
            topology: self.topology,
            topology_rollouts: rollouts(self.topology_rollouts)?,
            enrolment: enrolment(self.topology_enrolment, self.topology)?,
        })
    }
}

fn rollouts(said: Option<u16>) -> anyhow::Result<u16> {
    let count = said.unwrap_or(TOPOLOGY_ROLLOUTS);
    ensure!((1..=1_000).contains(&count), "topologyRollouts: 1 to 1000");
    Ok(count)
}

fn enrolment(said: Option<Enrolment>, topology: Option<TopologyMode>) -> anyhow::Result<EnrolmentArgs> {
    let limit = said.as_ref().and_then(|said| said.drain_limit.as_deref());
    let topology_drain_limit = drain_limit(limit.unwrap_or(DRAIN_LIMIT))
        .map_err(anyhow::Error::msg)
        .context("topologyEnrolment.drainLimit")?;
    ensure!(
        said.is_none() || topology.is_some(),
        "topologyEnrolment: nothing observes Clusters: give topology, too"
    );
    let addresses = |texts: &[String]| -> anyhow::Result<Vec<HubAddress>> {
        let read = texts.iter().map(|text| text.parse());
        Ok(read.collect::<Result<_, _>>()?)
    };
    let (hubs, doors) = match &said {
        Some(said) => (addresses(&said.hub_addresses)?, addresses(&said.join_addresses)?),
        None => Default::default(),
    };
    let (topology_enrolment, topology_agent) = said.map(|said| (said.mode, said.agent)).unzip();
    Ok(EnrolmentArgs {
        topology_enrolment,
        topology_agent,
        topology_hub_addresses: hubs,
        topology_join_addresses: doors,
        topology_drain_limit,
    })
}

fn join(join: Option<Join>) -> anyhow::Result<JoinArgs> {
    let lasting = join
        .as_ref()
        .and_then(|join| join.member_cert_lifetime.as_deref());
    let member_cert_lifetime = lifetime(lasting.unwrap_or(MEMBER_CERT_LIFETIME))
        .map_err(anyhow::Error::msg)
        .context("join.memberCertLifetime")?;
    let (join_listen, files) = match join {
        Some(join) => (join.listen, Some((join.cert, join.key))),
        None => (None, None),
    };
    let (join_cert, join_key) = files.unzip();
    Ok(JoinArgs {
        join_listen,
        join_cert,
        join_key,
        member_cert_lifetime,
    })
}

fn clients(clients: Clients) -> anyhow::Result<ClientFiles> {
    let mode = |word: String| {
        let known = MemberKeys::from_str(&word, false);
        known.map_err(|_| anyhow!("clients.memberKeys: {word:?} is neither pin nor renew"))
    };
    let member_keys = clients.member_keys.map(mode).transpose()?;
    ensure!(
        member_keys != Some(MemberKeys::Renew) || clients.renewal_issuer.is_some(),
        "clients.memberKeys: renew needs a renewalIssuer"
    );
    Ok(ClientFiles {
        member_keys,
        renewal_issuer: clients.renewal_issuer,
        client_crl: clients.client_crl,
        deny_keys: clients.deny_keys,
    })
}
