//! Owns: what belongs to one clusterset on the command line of `serve`; the file of `--clustersets` says the same of each.
//! Never: opens a file or a port.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use client::duration;
use serde::Deserialize;
use shared::{
    model::validate,
    tls::{ClientFiles, TlsFiles},
};

use super::EnrolmentArgs;

/// Flags of one clusterset.
#[derive(Debug, Clone, Args)]
pub struct SetArgs {
    /// Directory of the event log; made if missing. One process may use it at a time
    #[arg(long, env = "TRIBUTARY_DATA", value_name = "DIR")]
    pub data: PathBuf,
    /// Address of the gRPC port
    #[arg(
        long,
        env = "TRIBUTARY_LISTEN",
        value_name = "ADDR",
        default_value = "0.0.0.0:8443"
    )]
    pub listen: SocketAddr,
    /// Certificate, key and trust roots.
    #[command(flatten)]
    pub tls: TlsFiles,
    /// Flags for joining clusters.
    #[command(flatten)]
    pub join: JoinArgs,
    /// Further files about clients' certificates.
    #[command(flatten)]
    pub clients: ClientFiles,
    /// Take over members that know a later epoch than this log's, although the log holds facts. Use it only for a hub
    /// that replaces one which is stopped for good
    #[arg(long, env = "TRIBUTARY_ADOPT_EPOCH")]
    pub adopt_epoch: bool,
    /// Namespace of the ClusterProfiles in the hub's own cluster; tributary-<clusterset> unless given. The hub makes it
    /// if it is missing and its rights allow that
    #[arg(long, env = "TRIBUTARY_INVENTORY_NAMESPACE", value_name = "NAME")]
    pub inventory_namespace: Option<String>,
    /// Name of the cluster manager in ClusterProfiles that are made; tributary-<clusterset> unless given. Hubs of
    /// clustersets with the same name need different ones if one program reads the profiles of both
    #[arg(long, env = "TRIBUTARY_CLUSTER_MANAGER", value_name = "NAME", value_parser = manager_name)]
    pub cluster_manager: Option<String>,
    /// File with the ways to reach the members' API servers (YAML or JSON), which their ClusterProfiles show as
    /// accessProviders: servers and their authorities, without credentials. It is read at the start
    #[arg(long, env = "TRIBUTARY_ACCESS_PROVIDERS", value_name = "FILE")]
    pub access_providers: Option<PathBuf>,
    /// Handling of the topologies of Clusters (Cluster API) in the hub's own cluster; nothing unless given. Needs a
    /// --kubeconfig, or the service account of a pod
    #[arg(long, env = "TRIBUTARY_TOPOLOGY", value_name = "MODE")]
    pub topology: Option<TopologyMode>,
    /// With --topology own: number of Clusters of a ClusterClass whose machines are replaced at once. Further ones wait
    /// until these are done; while one fails, no other begins
    #[arg(long, env = "TRIBUTARY_TOPOLOGY_ROLLOUTS", value_name = "COUNT", default_value_t = TOPOLOGY_ROLLOUTS,
        value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub topology_rollouts: u16,
    /// Flags of enrolment.
    #[command(flatten)]
    pub enrolment: EnrolmentArgs,
}

/// Default number of Clusters of a class whose machines are replaced at once.
pub(crate) const TOPOLOGY_ROLLOUTS: u16 = 5;

/// A hub's handling of topologies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TopologyMode {
    /// Read Clusters and their classes, and say in ClusterProfiles what they say; write nothing else
    Observe,
    /// The same, and compare at times the objects of Cluster API with the plan; differences are reported, nothing is
    /// written
    Shadow,
    /// Keep the topologies: create, change and delete the objects of Clusters For clusters in which no other controller
    /// does; beside one the hub does not start
    Own,
}

/// Shortest life of a member's certificate: renewing takes a few tries when the hub is restarted meanwhile.
const MEMBER_CERT_LIFETIME_MIN: Duration = Duration::from_secs(30);
/// Longest one.
const MEMBER_CERT_LIFETIME_MAX: Duration = Duration::from_secs(3_650 * 24 * 60 * 60);

/// Default lifetime of certificates.
pub(crate) const MEMBER_CERT_LIFETIME: &str = "365d";

/// Flags of joining with a token. Without these flags no cluster can join.
#[derive(Debug, Clone, Args)]
pub struct JoinArgs {
    /// Address of the port at which clusters join with a token. It asks for no client certificate and serves nothing
    /// else
    #[arg(
        long,
        env = "TRIBUTARY_JOIN_LISTEN",
        value_name = "ADDR",
        requires_all = ["join_cert", "join_key"]
    )]
    pub join_listen: Option<SocketAddr>,
    /// Certificate of the authority that signs for clusters that join, and for members that renew their certificates (PEM).
    /// `tributary-hub certs joining` makes it
    #[arg(long, env = "TRIBUTARY_JOIN_CERT", value_name = "FILE", requires = "join_key")]
    pub join_cert: Option<PathBuf>,
    /// Private key of that authority (PEM, PKCS#8)
    #[arg(long, env = "TRIBUTARY_JOIN_KEY", value_name = "FILE", requires = "join_cert")]
    pub join_key: Option<PathBuf>,
    /// Lifetime of the certificates that this authority signs, as 12h or 90d: 30s to 3650d, and never beyond the
    /// authority's own end. Agents renew them after two thirds of it
    #[arg(
        long,
        env = "TRIBUTARY_MEMBER_CERT_LIFETIME",
        value_name = "TIME",
        default_value = MEMBER_CERT_LIFETIME,
        value_parser = lifetime
    )]
    pub member_cert_lifetime: Duration,
}

/// Parses the lifetime of members' certificates.
pub(crate) fn lifetime(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if (MEMBER_CERT_LIFETIME_MIN..=MEMBER_CERT_LIFETIME_MAX).contains(&time) {
        return Ok(time);
    }
    Err("certificates of members are good for 30s to 3650d".to_owned())
}

/// The name is the value of a label, too.
fn manager_name(text: &str) -> Result<String, String> {
    match validate::label_value("x-k8s.io/cluster-manager", text) {
        Ok(()) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err("use 1 to 63 of A-Z, a-z, 0-9, '-', '_' and '.', alphanumeric at both ends".to_owned()),
    }
}
