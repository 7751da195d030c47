//! The flags.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use shared::{
    model::{ClusterId, name::is_dns_label},
    tls::HubAddress,
};

use super::image::Image;

/// Files of the directory of a clusterset that are not an operator's.
const OTHER_KEYS: [&str; 3] = ["ca", "joining.ca", "hub"];

/// The commands that make a clusterset, add clusters to it, and remove both.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a clusterset: keys, and a hub in a cluster
    #[command(long_about = "Make a clusterset: keys, and a hub in a cluster.\n\n\
        The authority, the authority with which clusters join, and the certificates of the hub and an operator are made on \
        this machine and kept beside the contexts; they are never made twice. Then the namespace, the Secrets, the \
        definitions and the hub go into the cluster, and the command waits until the hub answers.\n\n\
        Run it again to continue, or to update the hub to the version of this client.\n\n\
        Example:\n  tributary init --context hub --image-registry registry.example.org/team")]
    Init(Box<InitArgs>),
    /// Add a cluster to the clusterset
    #[command(long_about = "Add a cluster to the clusterset.\n\n\
        The command makes a token at the hub, then the namespace, the Secret with the join string, the definitions and the \
        agent in the cluster, and lets CoreDNS answer clusterset.local after asking. It waits until the member is live and \
        its ClusterProfile is Joined.\n\n\
        Run it again to continue, or to update the agent to the version of this client.\n\n\
        Example:\n  tributary join east --context east --image-registry registry.example.org/team")]
    Join(Box<JoinArgs>),
    /// Export a Service to the other clusters
    #[command(
        long_about = "Export a Service to the other clusters: makes its ServiceExport. With --wait the command \
            prints the clusters in which the export arrived, and when.\n\n\
        Example:\n  tributary export shop/cart --context east --wait"
    )]
    Export(ExportArgs),
    /// Take a cluster out of the clusterset
    #[command(long_about = "Take a cluster out of the clusterset: the reverse of join.\n\n\
        Before the first change the command asks the hub if the cluster is this member. It uninstalls the agent and tells \
        the hub, so that the other clusters drop what came from this one. Then it removes what the agent wrote, the DNS zone \
        that join made, the Secrets and the namespace. Deleting the definitions would delete all ServiceExports, so they \
        stay.\n\n\
        Example:\n  tributary leave east")]
    Leave(LeaveArgs),
    /// Remove the hub from its cluster
    #[command(
        long_about = "Remove the hub from its cluster: the reverse of init. All members must have left.\n\n\
        The command deletes the event log with its volume. A hub that Helm did not install, or that serves further \
        clustersets, is left as it is. The keys on this machine stay; with them `init` makes the same clusterset again.\n\n\
        Example:\n  tributary uninstall --context hub"
    )]
    Uninstall(UninstallArgs),
}

/// A cluster, as a kubeconfig names it.
#[derive(Debug, Clone, Args)]
pub(super) struct ClusterArgs {
    /// Context of the kubeconfig
    #[arg(long, env = "TRIBUTARY_KUBE_CONTEXT", value_name = "CONTEXT")]
    pub(super) context: String,
    /// Kubeconfig; unless given, the one that kubectl uses
    #[arg(long, env = "TRIBUTARY_KUBECONFIG", value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Namespace for Tributary in the cluster
    #[arg(long, env = "TRIBUTARY_NAMESPACE", value_name = "NAMESPACE", default_value = "tributary-system", value_parser = label)]
    pub(super) namespace: String,
}

/// Flags for Helm.
#[derive(Debug, Clone, Args)]
pub(super) struct ChartArgs {
    /// Helm 3.14 or newer
    #[arg(long, env = "TRIBUTARY_HELM", value_name = "PROGRAM", default_value = "helm")]
    pub(super) helm: PathBuf,
    /// Charts instead of those of this client: a directory with crds, hub and agent, or oci://REGISTRY/PATH
    #[arg(long, env = "TRIBUTARY_CHARTS", value_name = "DIR|oci://…")]
    pub(super) charts: Option<String>,
    /// Registry of the image
    #[arg(long, env = "TRIBUTARY_IMAGE_REGISTRY", value_name = "REGISTRY")]
    pub(super) image_registry: Option<String>,
    /// Image, without its registry: REPOSITORY, REPOSITORY:TAG or REPOSITORY@DIGEST
    #[arg(long, env = "TRIBUTARY_IMAGE", value_name = "IMAGE")]
    pub(super) image: Option<Image>,
    /// Value of the hub's or agent's chart, as Helm's --set
    #[arg(long = "set", env = "TRIBUTARY_SET", value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,
    /// File with values of the hub's or agent's chart, as Helm's --values
    #[arg(long = "values", env = "TRIBUTARY_VALUES", value_name = "FILE")]
    pub(super) values: Vec<PathBuf>,
}

/// Flags of every command.
#[derive(Debug, Clone, Args)]
pub(super) struct CommonArgs {
    /// Longest wait for one step, as 90s, 10m or 1h
    #[arg(long, env = "TRIBUTARY_TIMEOUT", value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub(super) timeout: Duration,
    /// Format of the result; progress goes to standard error
    #[arg(
        long,
        short = 'o',
        env = "TRIBUTARY_OUTPUT",
        value_name = "FORM",
        default_value = "text"
    )]
    pub(super) output: Form,
}

/// Format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The flags of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    /// Name of the clusterset
    #[arg(long, env = "TRIBUTARY_CLUSTERSET", value_name = "NAME", default_value = "default", value_parser = label)]
    pub(super) clusterset: String,
    /// Name of the operator whose certificate is made; unless given, the one of the run before, or admin
    #[arg(long, env = "TRIBUTARY_OPERATOR_NAME", value_name = "NAME", value_parser = operator_name)]
    pub(super) operator: Option<String>,
    /// Address at which members reach the hub, unless its Service has one
    #[arg(long, env = "TRIBUTARY_ADDRESS", value_name = "HOST:PORT", value_parser = host_port)]
    pub(super) address: Option<HubAddress>,
    /// Address at which clusters join; unless given, the host of the hub's address and the Service's join port
    #[arg(long, env = "TRIBUTARY_JOIN_ADDRESS", value_name = "HOST:PORT", value_parser = host_port)]
    pub(super) join_address: Option<HubAddress>,
    /// Type of the hub's Service; unless given, the one of the run before, or LoadBalancer
    #[arg(long, env = "TRIBUTARY_SERVICE_TYPE", value_name = "TYPE")]
    pub(super) service_type: Option<ServiceType>,
    #[command(flatten)]
    pub(super) charts: ChartArgs,
    /// Write what would be applied into this directory, for GitOps, and change no cluster
    #[arg(long, env = "TRIBUTARY_PRINT", value_name = "DIR")]
    pub(super) print: Option<PathBuf>,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

/// Type of the hub's Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
pub(super) enum ServiceType {
    /// The cluster provides a load balancer.
    #[default]
    #[value(name = "LoadBalancer", alias = "loadbalancer")]
    LoadBalancer,
    /// Members reach the addresses of nodes.
    #[value(name = "NodePort", alias = "nodeport")]
    NodePort,
    /// Something else leads to the hub; needs --address.
    #[value(name = "ClusterIP", alias = "clusterip")]
    ClusterIp,
}

/// The flags of `join`.
#[derive(Debug, Args)]
pub struct JoinArgs {
    /// Id of the cluster, unique in the clusterset
    #[arg(value_name = "ID", value_parser = cluster_id)]
    pub(super) id: ClusterId,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    /// Name of the clusterset
    #[arg(long, env = "TRIBUTARY_CLUSTERSET", value_name = "NAME", default_value = "default", value_parser = label)]
    pub(super) clusterset: String,
    /// Let CoreDNS answer clusterset.local
    #[arg(long, env = "TRIBUTARY_DNS", value_name = "CHOICE", default_value = "ask")]
    pub(super) dns: Dns,
    #[command(flatten)]
    pub(super) charts: ChartArgs,
    /// Write what would be applied into this directory, for GitOps, and change nothing
    #[arg(long, env = "TRIBUTARY_PRINT", value_name = "DIR")]
    pub(super) print: Option<PathBuf>,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

/// Choice to change CoreDNS or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Dns {
    /// Change it.
    Yes,
    /// Leave it.
    No,
    /// Show the change and ask; without a terminal, leave it.
    Ask,
}

/// The flags of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Namespace and name of the Service
    #[arg(value_name = "NAMESPACE/SERVICE", value_parser = service)]
    pub(super) service: (String, String),
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    /// Name of the clusterset
    #[arg(long, env = "TRIBUTARY_CLUSTERSET", value_name = "NAME", default_value = "default", value_parser = label)]
    pub(super) clusterset: String,
    /// Wait until every live member has applied it
    #[arg(long, env = "TRIBUTARY_WAIT")]
    pub(super) wait: bool,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

/// The flags of `leave`.
#[derive(Debug, Args)]
pub struct LeaveArgs {
    /// Id of the cluster
    #[arg(value_name = "ID", value_parser = cluster_id)]
    pub(super) id: ClusterId,
    /// Context of the kubeconfig; the one that the cluster joined with unless given
    #[arg(long, env = "TRIBUTARY_KUBE_CONTEXT", value_name = "CONTEXT")]
    pub(super) context: Option<String>,
    /// Kubeconfig
    #[arg(long, env = "TRIBUTARY_KUBECONFIG", value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Namespace of Tributary in the cluster; the one that the cluster joined with, or tributary-system, unless given
    #[arg(long, env = "TRIBUTARY_NAMESPACE", value_name = "NAMESPACE", value_parser = label)]
    pub(super) namespace: Option<String>,
    /// Name of the clusterset
    #[arg(long, env = "TRIBUTARY_CLUSTERSET", value_name = "NAME", default_value = "default", value_parser = label)]
    pub(super) clusterset: String,
    /// Helm 3.14 or newer
    #[arg(long, env = "TRIBUTARY_HELM", value_name = "PROGRAM", default_value = "helm")]
    pub(super) helm: PathBuf,
    /// Leave without telling the hub, because it is gone
    #[arg(long, env = "TRIBUTARY_WITHOUT_HUB")]
    pub(super) without_hub: bool,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

/// The flags of `uninstall`.
#[derive(Debug, Args)]
pub struct UninstallArgs {
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    /// Name of the clusterset
    #[arg(long, env = "TRIBUTARY_CLUSTERSET", value_name = "NAME", default_value = "default", value_parser = label)]
    pub(super) clusterset: String,
    /// Helm 3.14 or newer
    #[arg(long, env = "TRIBUTARY_HELM", value_name = "PROGRAM", default_value = "helm")]
    pub(super) helm: PathBuf,
    #[command(flatten)]
    pub(super) common: CommonArgs,
}

fn label(text: &str) -> Result<String, String> {
    if is_dns_label(text) {
        return Ok(text.to_owned());
    }
    Err("write a DNS label: a-z, 0-9 and '-', at most 63 characters".to_owned())
}

/// An operator's certificate lies beside those of the authority and the hub.
fn operator_name(text: &str) -> Result<String, String> {
    if OTHER_KEYS.contains(&text) {
        return Err(format!(
            "{text} names other keys in the directory: choose another name"
        ));
    }
    label(text)
}

fn cluster_id(text: &str) -> Result<ClusterId, String> {
    ClusterId::new(text).map_err(|error| error.to_string())
}

fn service(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_dns_label(namespace) && is_dns_label(name) => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("write NAMESPACE/SERVICE, such as shop/cart".to_owned()),
    }
}

fn host_port(text: &str) -> Result<HubAddress, String> {
    let address = text.strip_prefix("https://").unwrap_or(text);
    let address = format!("https://{address}").parse();
    address.map_err(|_| "write HOST:PORT, such as hub.example.org:8443".to_owned())
}

/// A time with its unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "write it as 90s, 10m or 1h".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return Err(wrong()),
    };
    let count: u64 = digits.parse().map_err(|_| wrong())?;
    count
        .checked_mul(seconds)
        .map(Duration::from_secs)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_has_keys_of_its_own() {
        assert_eq!(operator_name("alice"), Ok("alice".to_owned()));
        for name in OTHER_KEYS {
            let why = operator_name(name).expect_err(name);
            assert!(why.contains("names other keys"), "{why}");
        }
        operator_name("a b").expect_err("no label");
    }

    #[test]
    fn words_are_read_or_refused() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7_200)));
        assert!(duration("90").is_err() && duration("m").is_err() && duration("").is_err());
        assert_eq!(service("shop/cart"), Ok(("shop".to_owned(), "cart".to_owned())));
        assert!(service("cart").is_err() && service("a/b/c").is_err());
        assert_eq!(
            host_port("hub.example.org:8443").map(|at| at.to_string()),
            Ok("https://hub.example.org:8443".to_owned())
        );
        assert_eq!(host_port("[fd00::1]:1").map(|at| at.port), Ok(1));
        assert!(host_port("hub.example.org").is_err());
    }
}
