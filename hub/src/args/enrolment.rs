//! Owns: how Clusters of Cluster API become members, on the command line of `serve`.
//! Never: opens a file.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use client::duration;
use serde::Deserialize;
use shared::tls::HubAddress;

/// Default of the longest pause of a deleted Cluster.
pub(crate) const DRAIN_LIMIT: &str = "2m";
/// Longest such time.
const DRAIN_LIMIT_MAX: Duration = Duration::from_secs(60 * 60);

/// Flags of enrolment: Clusters that become members, and leave. Without these flags nothing is done about either.
#[derive(Debug, Clone, Args)]
pub struct EnrolmentArgs {
    /// With --topology: Clusters (Cluster API) with a topology become members without a human step, and a deleted
    /// Cluster goes once its member has left. Needs --join-listen
    #[arg(
        long,
        env = "TRIBUTARY_TOPOLOGY_ENROLMENT",
        value_name = "MODE",
        requires_all = ["topology", "topology_agent", "topology_hub_addresses", "join_listen"]
    )]
    pub topology_enrolment: Option<EnrolmentMode>,
    /// File (YAML) with the agent's objects, as its chart renders them with join.secretName. For Clusters without the
    /// definitions of tributary-crds, put these first. It is read at the start
    #[arg(
        long,
        env = "TRIBUTARY_TOPOLOGY_AGENT",
        value_name = "FILE",
        requires = "topology_enrolment"
    )]
    pub topology_agent: Option<PathBuf>,
    /// Address at which the members that Clusters become reach this hub
    #[arg(
        long = "topology-hub-address",
        env = "TRIBUTARY_TOPOLOGY_HUB_ADDRESS",
        value_name = "https://HOST:PORT",
        value_delimiter = ',',
        requires = "topology_enrolment"
    )]
    pub topology_hub_addresses: Vec<HubAddress>,
    /// Address at which they join; unless given, the same hosts and the port of --join-listen
    #[arg(
        long = "topology-join-address",
        env = "TRIBUTARY_TOPOLOGY_JOIN_ADDRESS",
        value_name = "https://HOST:PORT",
        value_delimiter = ',',
        requires = "topology_enrolment"
    )]
    pub topology_join_addresses: Vec<HubAddress>,
    /// Longest time for which a deleted Cluster is paused while its member leaves, as 90s or 5m: 1s to 1h
    #[arg(
        long,
        env = "TRIBUTARY_TOPOLOGY_DRAIN_LIMIT",
        value_name = "TIME",
        default_value = DRAIN_LIMIT,
        value_parser = drain_limit
    )]
    pub topology_drain_limit: Duration,
}

/// The way in which a Cluster gets the means to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnrolmentMode {
    /// As a Secret beside the Cluster, NAME-tributary-join, with all objects: for who applies them, or a ClusterResourceSet
    Manifest,
    /// The agent is installed once, through the kubeconfig that Cluster API keeps in the Secret NAME-kubeconfig
    Install,
}

/// Parses the longest pause of a deleted Cluster.
pub(crate) fn drain_limit(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if (Duration::from_secs(1)..=DRAIN_LIMIT_MAX).contains(&time) {
        return Ok(time);
    }
    Err("a Cluster that is deleted is paused for 1s to 1h".to_owned())
}
