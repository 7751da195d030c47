//! ClusterProfiles (KEP-4322) in the hub's own Kubernetes cluster: one per member, in the inventory namespace.
//!
//! * `wanted.rs`: what the state says, and what was observed of topologies. `object.rs`: a profile as a Kubernetes object, and how two differ.
//! * `budget.rs`, `inventory.rs`: when which object is written or deleted; pure.
//! * `access/`: the access providers that an operator names.
//! * `namespace.rs`, `api.rs`: the requests. `run.rs`: the loop around them.
//!
//! The hub serves without Kubernetes as well as with it: nothing here ever stops it, and nothing reads back from
//! Kubernetes into the state.

mod access;
mod api;
mod budget;
mod inventory;
mod metrics;
mod namespace;
mod object;
mod run;
mod wanted;

#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::Context;
use kube::{Client, Config, config::KubeConfigOptions};
use shared::{
    api::names::{CLUSTER_MANAGER, INVENTORY_NAMESPACE_PREFIX},
    api_client::{self, api_client},
    model::Clusterset,
};

pub use access::AccessProviders;
pub use budget::{BURST_MAX, Budget, FLIP_DEBT_MAX, MILLIS_PER_WRITE, Urgency};
pub use metrics::ProfileMetrics;
pub use run::ProfileWriter;

/// A client for the hub's own cluster: from the kubeconfig if one is named, else from the pod's service account.
/// `None`: there is neither.
pub async fn client(kubeconfig: Option<&Path>, metrics: &ProfileMetrics) -> anyhow::Result<Option<Client>> {
    let config = match kubeconfig {
        Some(path) => {
            let read = api_client::kubeconfig("--kubeconfig", path)?;
            let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
            config.with_context(|| format!("--kubeconfig {} names no cluster to use", path.display()))?
        }
        None => match Config::incluster() {
            Ok(config) => config,
            Err(_) => return Ok(None),
        },
    };
    let client =
        api_client(config, metrics.api.clone()).context("no client can be made for the hub's own cluster")?;
    Ok(Some(client))
}

/// The inventory namespace unless another is asked for.
pub fn default_namespace(clusterset: &Clusterset) -> String {
    format!("{INVENTORY_NAMESPACE_PREFIX}{}", clusterset.name())
}

/// Longest name of a cluster manager: it is the value of a label, too.
const MANAGER_CHARACTERS_MAX: usize = 63;

/// The cluster manager that profiles name unless another is asked for: `tributary-` and the clusterset's name.
/// KEP-4322 wants each manager in one inventory to have a name of its own.
pub fn default_manager(clusterset: &Clusterset) -> String {
    let name = format!("{CLUSTER_MANAGER}-{}", clusterset.name());
    let name: String = name.chars().take(MANAGER_CHARACTERS_MAX).collect();
    name.trim_end_matches(['-', '.']).to_owned()
}

/// An API server's refusal in its own words: printed as it is, kube's error is a Rust value.
fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} (HTTP {})", status.message, status.code),
        other => other.to_string(),
    }
}
