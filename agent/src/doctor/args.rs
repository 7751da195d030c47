//! Owns: the flags of `doctor` and `gather`.
//! Never: does anything.

use std::path::PathBuf;

use clap::Args;
use shared::{
    doctor::Output,
    model::{ClusterId, ServiceKey},
    tls::{HubAddress, TlsFiles},
};

/// The objects to look at.
#[derive(Debug, Clone, Args)]
pub struct LookArgs {
    /// Address of the hub, as https://HOST:PORT; several, with commas or by repeating the flag: each is looked at
    #[arg(
        long = "hub",
        env = "TRIBUTARY_HUB",
        value_name = "URL",
        value_delimiter = ',',
        required = true
    )]
    pub hubs: Vec<HubAddress>,
    /// The agent's certificate, key and trust roots.
    #[command(flatten)]
    pub tls: TlsFiles,
    /// Kubeconfig of the member cluster. In a pod the service account is used instead, so that the agent's own rights
    /// are checked
    #[arg(long, env = "TRIBUTARY_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Expected id of this cluster
    #[arg(long, env = "TRIBUTARY_CLUSTER_ID", value_name = "ID", value_parser = ClusterId::new)]
    pub cluster_id: Option<ClusterId>,
    /// Dial an endpoint of each source cluster and ask DNS, although this is not a pod: for a machine in the cluster's
    /// network
    #[arg(long, env = "TRIBUTARY_DIAL_ENDPOINTS")]
    pub dial_endpoints: bool,
}

/// The flags of `doctor`.
#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    /// The objects to look at.
    #[command(flatten)]
    pub look: LookArgs,
    /// Output format
    #[arg(long, env = "TRIBUTARY_OUTPUT", value_name = "FORM", default_value = "text")]
    pub output: Output,
}

/// The flags of `gather`.
#[derive(Debug, Clone, Args)]
pub struct GatherArgs {
    /// The objects to look at.
    #[command(flatten)]
    pub look: LookArgs,
    /// New directory for the result
    #[arg(long, env = "TRIBUTARY_OUT", value_name = "DIR")]
    pub out: PathBuf,
    /// Explain this service, as NAMESPACE/NAME
    #[arg(long, env = "TRIBUTARY_SERVICE", value_name = "SERVICE", value_parser = service)]
    pub service: Option<ServiceKey>,
}

fn service(text: &str) -> Result<ServiceKey, String> {
    let (namespace, name) = text.split_once('/').ok_or("write it as NAMESPACE/NAME")?;
    ServiceKey::new(namespace, name).map_err(|error| error.to_string())
}
