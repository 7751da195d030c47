//! Owns: the flags of `corefile`, and what its help teaches.
//! Never: does anything.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use shared::{
    api::names::KUBE_SYSTEM_NAMESPACE,
    model::name::{is_dns_label, is_dns_subdomain},
};

use super::edit::{Refusal, Zone};

/// The argument that means standard input.
pub const STANDARD_INPUT: &str = "-";
/// The zone that the Multi-Cluster Services API names.
pub const ZONE: &str = "clusterset.local";
/// The ConfigMap in which kubeadm and most distributions keep the Corefile.
pub const CONFIGMAP: &str = "coredns";
/// Its key there.
pub const KEY: &str = "Corefile";

/// Subcommands of `corefile`.
#[derive(Debug, Clone, Subcommand)]
pub enum CorefileCommand {
    /// Add the clusterset's zone to the Corefile
    #[command(long_about = "Add the clusterset's zone to a Corefile.\n\n\
        The zone is added to the zones of the one `kubernetes` directive, and the line `multicluster ZONE` to its \
        options. If both are there already, nothing changes.\n\n\
        CoreDNS must be 1.12.2 or later, and have the right to read ServiceImports (deploy/coredns): without that \
        right it becomes not ready, and answers nothing at all.\n\n\
        Example:\n  \
        tributary-agent corefile add\n  \
        tributary-agent corefile add --apply")]
    Add(CorefileArgs),
    /// Remove the clusterset's zone from the Corefile
    #[command(long_about = "Remove the clusterset's zone from a Corefile.\n\n\
        The zone is removed from the zones of the one `kubernetes` directive, and the line `multicluster ZONE` from \
        its options, with the braces if nothing else is in them. If neither is there, nothing changes.\n\n\
        Example:\n  \
        tributary-agent corefile remove\n  \
        tributary-agent corefile remove --apply")]
    Remove(CorefileArgs),
}

/// The flags of `corefile add` and `corefile remove`.
#[derive(Debug, Clone, Args)]
pub struct CorefileArgs {
    /// Change the Corefile. Without this flag the command only shows the lines that would change
    #[arg(long)]
    pub apply: bool,
    /// The zone of the clusterset
    #[arg(
        long,
        env = "TRIBUTARY_ZONE",
        value_name = "ZONE",
        default_value = ZONE,
        value_parser = zone
    )]
    pub zone: Zone,
    /// Kubeconfig of the cluster; unless given, the one that kubectl uses, or in a pod the service account. Not used
    /// with --file
    #[arg(long, env = "TRIBUTARY_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the ConfigMap that CoreDNS reads
    #[arg(
        long,
        env = "TRIBUTARY_COREDNS_NAMESPACE",
        value_name = "NAMESPACE",
        default_value = KUBE_SYSTEM_NAMESPACE,
        value_parser = namespace
    )]
    pub namespace: String,
    /// Name of the ConfigMap
    #[arg(
        long,
        env = "TRIBUTARY_COREDNS_CONFIGMAP",
        value_name = "NAME",
        default_value = CONFIGMAP,
        value_parser = configmap
    )]
    pub configmap: String,
    /// Key of the ConfigMap that holds the Corefile
    #[arg(long, env = "TRIBUTARY_COREDNS_KEY", value_name = "KEY", default_value = KEY)]
    pub key: String,
    /// File instead of a cluster's ConfigMap; `-` is standard input. The new Corefile goes to standard output, or with
    /// --apply into the file; messages go to standard error
    #[arg(
        long,
        env = "TRIBUTARY_COREFILE",
        value_name = "FILE",
        conflicts_with_all = ["namespace", "configmap", "key"]
    )]
    pub file: Option<PathBuf>,
}

impl CorefileArgs {
    /// The zone of the Multi-Cluster Services API, where kubeadm and most distributions keep the Corefile.
    pub fn usual(apply: bool) -> Result<Self, Refusal> {
        Ok(Self {
            apply,
            zone: Zone::new(ZONE)?,
            kubeconfig: None,
            namespace: KUBE_SYSTEM_NAMESPACE.to_owned(),
            configmap: CONFIGMAP.to_owned(),
            key: KEY.to_owned(),
            file: None,
        })
    }
}

fn zone(text: &str) -> Result<Zone, Refusal> {
    Zone::new(text)
}

fn namespace(text: &str) -> Result<String, String> {
    if !is_dns_label(text) {
        return Err("a namespace is an RFC 1123 DNS label, such as kube-system".to_owned());
    }
    Ok(text.to_owned())
}

fn configmap(text: &str) -> Result<String, String> {
    if !is_dns_subdomain(text) {
        return Err("a ConfigMap's name is an RFC 1123 DNS subdomain, such as coredns".to_owned());
    }
    Ok(text.to_owned())
}
