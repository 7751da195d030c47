//! Owns: the admission webhook of classes and clusters on the command line of `serve`: it belongs to the process,
//! because the cluster that it runs in is one, whatever clustersets it serves.
//! Never: opens a file or a port.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

/// Address and certificate of the webhook. Without these flags there is none.
#[derive(Debug, Clone, Args)]
pub struct WebhookArgs {
    /// Address of the port at which the hub's own API server asks whether a ClusterClass or a Cluster (Cluster API) may be
    /// made, changed or deleted: HTTPS, path /validate. Needs a --kubeconfig, or the service account of a pod
    #[arg(
        long,
        env = "TRIBUTARY_TOPOLOGY_WEBHOOK",
        value_name = "ADDR",
        requires_all = ["topology_webhook_cert", "topology_webhook_key"]
    )]
    pub topology_webhook: Option<SocketAddr>,
    /// Certificate of that port for the name that the API server dials, with its intermediates (PEM), of an authority
    /// that the webhook's configuration names. The hub reads the file every ten seconds
    #[arg(
        long,
        env = "TRIBUTARY_TOPOLOGY_WEBHOOK_CERT",
        value_name = "FILE",
        requires = "topology_webhook"
    )]
    pub topology_webhook_cert: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(
        long,
        env = "TRIBUTARY_TOPOLOGY_WEBHOOK_KEY",
        value_name = "FILE",
        requires = "topology_webhook"
    )]
    pub topology_webhook_key: Option<PathBuf>,
}
