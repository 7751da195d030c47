//! Owns: the flags of `leave`.
//! Never: does anything.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use shared::tls::{HubAddress, TlsFiles};

/// The longest that another agent's Lease is waited for, in seconds.
const WAIT_LONGEST: u64 = 600;

/// The flags of `leave`.
#[derive(Debug, Clone, Args)]
pub struct LeaveArgs {
    /// Address of the hub, as https://HOST:PORT; several, with commas or by repeating the flag, are tried in turn. The
    /// hub is told first, so that the other clusters remove what came from this one
    #[arg(
        long = "hub",
        env = "TRIBUTARY_HUB",
        value_name = "URL",
        value_delimiter = ',',
        required_unless_present = "without_hub"
    )]
    pub hubs: Vec<HubAddress>,
    /// Leave without telling the hub, because it is gone or does not answer. If it still runs, an operator ends the
    /// membership there (`tributary member evict`)
    #[arg(long, env = "TRIBUTARY_WITHOUT_HUB")]
    pub without_hub: bool,
    /// Certificate of this cluster, with its intermediates (PEM)
    #[arg(
        long,
        env = "TRIBUTARY_TLS_CERT",
        value_name = "FILE",
        required_unless_present = "without_hub"
    )]
    pub tls_cert: Option<PathBuf>,
    /// Private key of that certificate (PEM, PKCS#8)
    #[arg(
        long,
        env = "TRIBUTARY_TLS_KEY",
        value_name = "FILE",
        required_unless_present = "without_hub"
    )]
    pub tls_key: Option<PathBuf>,
    /// Certificates of the trusted authorities (PEM)
    #[arg(
        long,
        env = "TRIBUTARY_TLS_CA",
        value_name = "FILE",
        required_unless_present = "without_hub"
    )]
    pub tls_ca: Option<PathBuf>,
    /// Kubeconfig of the cluster that leaves. In a pod the service account is used instead
    #[arg(long, env = "TRIBUTARY_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the agent and its Leases; in a pod the pod's, unless given
    #[arg(long, env = "TRIBUTARY_AGENT_NAMESPACE", value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Objects to keep; several with commas
    #[arg(
        long,
        env = "TRIBUTARY_LEAVE_KEEP",
        value_name = "WHAT",
        value_delimiter = ',',
        value_enum
    )]
    pub keep: Vec<Keep>,
    /// Delete the cluster's id too (the ClusterProperty cluster.clusterset.k8s.io, if an agent made it); otherwise it
    /// stays
    #[arg(long, env = "TRIBUTARY_FORGET_ID")]
    pub forget_id: bool,
    /// Time to wait for a running agent to stop, in seconds: an agent that runs would make the objects again
    #[arg(
        long,
        env = "TRIBUTARY_LEAVE_WAIT",
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(0..=WAIT_LONGEST)
    )]
    pub wait: u64,
    /// Leave. Without this flag the command only shows what would happen
    #[arg(long)]
    pub confirm: bool,
}

/// Objects that may stay in a cluster that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Keep {
    /// ServiceImports with their derived Services and EndpointSlices: clients keep their endpoints, which nobody
    /// updates any more
    Imports,
    /// The conditions of ServiceExports
    Conditions,
}

impl LeaveArgs {
    /// Certificate, key and trust roots, if the hub is to be told.
    pub fn tls(&self) -> Option<TlsFiles> {
        if self.without_hub {
            return None;
        }
        Some(TlsFiles {
            cert: self.tls_cert.clone()?,
            key: self.tls_key.clone()?,
            ca: self.tls_ca.clone()?,
        })
    }
}
