//! Owns: the flags of `run`, and what mistakes in them are refused.
//! Never: opens a file or a socket.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use shared::{
    model::{
        ClusterId, name,
        policy::{BRAKE_LONGEST_MILLIS, Brake, Pattern},
        validate,
    },
    tls::{HubAddress, TlsFiles},
};

use crate::{
    expiry::upkeep::{self, DURATION_DEFAULT, RENEW_DEFAULT, Settings},
    health::nodes::TOLERANCE_DEFAULT,
    join::JoinArgs,
    plan::IMPORTS_MAX,
};

/// The flags of `run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Address of the hub, as https://HOST:PORT; several, with commas or by repeating the flag, are tried in turn.
    /// Names are resolved at every attempt. A join string names them too
    #[arg(
        long = "hub",
        env = "TRIBUTARY_HUB",
        value_name = "URL",
        value_delimiter = ',',
        required_unless_present_any = ["join", "join_file"]
    )]
    pub hubs: Vec<HubAddress>,
    /// Flags of joining, for a cluster that is not a member yet.
    #[command(flatten)]
    pub join: JoinArgs,
    /// Certificate, key and trust roots.
    #[command(flatten)]
    pub tls: TlsFiles,
    /// Kubeconfig of the member cluster. In a pod the service account is used instead
    #[arg(long, env = "TRIBUTARY_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// UID of the agent's pod, from the downward API: the holder's name in the cluster's Lease, so that a restarted
    /// container continues at once. Outside pods the name is the host's name and the process id
    #[arg(long, env = "TRIBUTARY_POD_UID", value_name = "UID")]
    pub pod_uid: Option<String>,
    /// Expected id of this cluster. The certificate decides; if the two differ, the agent does not start
    #[arg(long, env = "TRIBUTARY_CLUSTER_ID", value_name = "ID", value_parser = cluster_id)]
    pub cluster_id: Option<ClusterId>,
    /// Address of the admin port (/livez, /readyz, /metrics): plain HTTP, no cluster state
    #[arg(
        long,
        env = "TRIBUTARY_ADMIN",
        value_name = "ADDR",
        default_value = "127.0.0.1:9091"
    )]
    pub admin: SocketAddr,
    /// Namespaces to hold imports for. `all` also serves namespaces that appear while the hub is away, for more memory
    #[arg(
        long,
        env = "TRIBUTARY_INTEREST",
        value_name = "INTEREST",
        value_enum,
        default_value_t = Interest::Namespaces
    )]
    pub interest: Interest,
    /// Namespaces whose exports are refused (condition Valid=False, NamespaceDenied), besides Kubernetes' own; several with
    /// commas
    #[arg(
        long,
        env = "TRIBUTARY_DENY_NAMESPACES",
        value_name = "NAMESPACE",
        value_delimiter = ',',
        value_parser = namespace
    )]
    pub deny_namespaces: Vec<String>,
    /// Namespaces into which this cluster imports, by name or pattern (`*` stands for any characters); several with
    /// commas; all unless given. Imports in other namespaces are removed. Kubernetes' own namespaces never receive
    /// imports
    #[arg(
        long,
        env = "TRIBUTARY_IMPORT_NAMESPACES",
        value_name = "PATTERN",
        value_delimiter = ','
    )]
    pub import_namespaces: Vec<Pattern>,
    /// Domains of exported labels and annotations that imports carry, by name or pattern (`*` stands for any characters);
    /// several with commas. Unless given, all but those by which other controllers act on an object, such as
    /// argocd.argoproj.io, meta.helm.sh or networking.istio.io. Keys without a domain are always carried
    #[arg(
        long,
        env = "TRIBUTARY_IMPORT_METADATA",
        value_name = "PATTERN",
        value_delimiter = ','
    )]
    pub import_metadata: Vec<Pattern>,
    /// Largest number of imports in this cluster, whatever the hub sends. Existing imports are not removed because of
    /// it
    #[arg(long, env = "TRIBUTARY_IMPORTS_MAX", value_name = "COUNT", default_value_t = IMPORTS_MAX)]
    pub imports_max: usize,
    /// Labels of every Service, EndpointSlice and ServiceImport that the agent makes, as KEY=VALUE; several with commas. For
    /// clusters whose policies demand a label. They win over exported labels of the same key
    #[arg(
        long,
        env = "TRIBUTARY_OBJECT_LABELS",
        value_name = "KEY=VALUE",
        value_delimiter = ',',
        value_parser = object_label
    )]
    pub object_labels: Vec<(Box<str>, Box<str>)>,
    /// Fate of the Leases of source clusters while no hub confirms them: with `retain` the agent goes on renewing them
    /// and everything stays; with `expire` they run out, and imports are then withdrawn as the clusterset's policy on
    /// lost members says
    #[arg(
        long,
        env = "TRIBUTARY_ON_HUB_LOSS",
        value_name = "WHAT",
        value_enum,
        default_value_t = OnHubLoss::Retain
    )]
    pub on_hub_loss: OnHubLoss,
    /// Duration of a source cluster's Lease without renewal, in seconds: 5 to 86400
    #[arg(
        long,
        env = "TRIBUTARY_SOURCE_LEASE_DURATION",
        value_name = "SECONDS",
        default_value_t = DURATION_DEFAULT.as_secs()
    )]
    pub source_lease_duration: u64,
    /// Interval at which the agent renews the Leases of source clusters, in seconds: at most half of their duration
    #[arg(
        long,
        env = "TRIBUTARY_SOURCE_LEASE_RENEW",
        value_name = "SECONDS",
        default_value_t = RENEW_DEFAULT.as_secs()
    )]
    pub source_lease_renew: u64,
    /// Time in seconds for which imports stay when the hub removes most of this cluster's imports at once (at least
    /// half, and at least five, within 30 seconds), unless an operator confirms the removal earlier: 0 to 86400; 0: no
    /// hold
    #[arg(
        long,
        env = "TRIBUTARY_WITHDRAWAL_HOLD",
        value_name = "SECONDS",
        default_value_t = BRAKE_LONGEST_MILLIS / 1_000,
        value_parser = clap::value_parser!(u64).range(..=86_400)
    )]
    pub withdrawal_hold: u64,
    /// Time for which a node may be not ready before AllNodesHealthy of this cluster is False, in seconds: 0 to 86400
    #[arg(
        long,
        env = "TRIBUTARY_NODE_TOLERANCE",
        value_name = "SECONDS",
        default_value_t = TOLERANCE_DEFAULT.as_secs(),
        value_parser = clap::value_parser!(u64).range(..=86_400)
    )]
    pub node_tolerance: u64,
}

impl RunArgs {
    /// Settings of the Leases of source clusters; inconsistent ones are refused before anything starts.
    pub fn source_leases(&self) -> anyhow::Result<Settings> {
        let settings = Settings {
            duration: Duration::from_secs(self.source_lease_duration),
            renew: Duration::from_secs(self.source_lease_renew),
            on_hub_loss: match self.on_hub_loss {
                OnHubLoss::Retain => upkeep::OnHubLoss::Retain,
                OnHubLoss::Expire => upkeep::OnHubLoss::Expire,
            },
        };
        match settings.problem() {
            Some(problem) => anyhow::bail!(problem),
            None => Ok(settings),
        }
    }
}

impl RunArgs {
    /// Returns the number of imports above which the hub's removals are put on hold, and the time of the hold.
    pub fn withdrawals(&self) -> Brake {
        Brake {
            enabled: self.withdrawal_hold > 0,
            longest_millis: Some(self.withdrawal_hold * 1_000),
            ..Brake::default()
        }
    }
}

/// Fate of the Leases of source clusters while no hub confirms them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnHubLoss {
    /// They are renewed.
    Retain,
    /// They are not.
    Expire,
}

/// The namespaces for which an agent holds imports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Interest {
    /// The namespaces that exist in the cluster.
    Namespaces,
    /// All of the clusterset.
    All,
}

fn cluster_id(text: &str) -> Result<ClusterId, String> {
    ClusterId::new(text).map_err(|error| error.to_string())
}

fn object_label(text: &str) -> Result<(Box<str>, Box<str>), String> {
    let Some((key, value)) = text.split_once('=') else {
        return Err("a label is written as KEY=VALUE".to_owned());
    };
    validate::object_label(key, value).map_err(|invalid| invalid.problem)?;
    Ok((key.into(), value.into()))
}

fn namespace(text: &str) -> Result<String, String> {
    if !name::is_dns_label(text) {
        return Err("a namespace is an RFC 1123 DNS label; patterns are not supported".to_owned());
    }
    Ok(text.to_owned())
}
