//! The clusters of a clusterset: simulated ones, or real ones of a fleet, behind one face.
//! It gives clients and kubeconfigs; it knows nothing of Tributary.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use kube::{
    Client,
    api::{Api, DeleteParams},
};
use shared::api::{
    ClusterProperty,
    names::{PROPERTY_CLUSTER_ID, PROPERTY_CLUSTERSET, TRIBUTARY_NAMESPACE},
};

use crate::{
    deploy,
    real::{Fleet, User},
    rights::{Account, ask},
};
use sim::{Served, SimCluster, SimConfig};

/// The harness's user agent in requests to a simulated cluster.
pub const USER_AGENT: &str = "e2e";

/// The kind of a clusterset's clusters.
#[derive(Clone)]
pub enum Backend {
    /// In this process, over loopback HTTP.
    Simulated,
    /// Real kube-apiservers.
    Real(Arc<Fleet>),
}

/// One cluster.
pub struct MemberCluster {
    /// Its name, which is its cluster id.
    pub name: String,
    /// For the user: not the agent's rights.
    pub client: Client,
    /// For kubectl.
    pub kubeconfig: PathBuf,
    /// For the agent.
    pub agent_kubeconfig: PathBuf,
    /// The kind of the cluster.
    pub kind: Kind,
}

/// The kind of a cluster.
pub enum Kind {
    /// A simulated one, and its front.
    Simulated(SimCluster, Served),
    /// The one of this name in the fleet, and the agent's account in it.
    Real(Arc<Fleet>, User),
}

impl MemberCluster {
    /// Starts, or takes from the fleet, the cluster `name`, and installs what Tributary's agent needs.
    pub async fn start(backend: &Backend, name: &str, index: usize, dir: &Path) -> anyhow::Result<Self> {
        match backend {
            Backend::Simulated => Self::simulated(name, index, dir).await,
            Backend::Real(fleet) => Self::real(fleet, name, index).await,
        }
    }

    async fn simulated(name: &str, index: usize, dir: &Path) -> anyhow::Result<Self> {
        let config = SimConfig {
            name: name.into(),
            seed: index as u64 + 1,
            // Dual stack, as the shared real fleet.
            service_cidrs: vec![
                format!("10.{}.0.0/16", 96 + index),
                format!("fd00:{}::/112", 96 + index),
            ],
            ..SimConfig::default()
        };
        let cluster = SimCluster::new(config)?;
        cluster.apply_yaml(&format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {TRIBUTARY_NAMESPACE}}}"
        ))?;
        Self::served(cluster, dir).await
    }

    /// A simulated cluster made from a backup of this one, which is kept below `dir` and called `name`: a member of the same
    /// id, if somebody starts an agent there.
    pub async fn restored(&self, name: &str, dir: &Path) -> anyhow::Result<Self> {
        let original = self.sim().context("only a simulated cluster is copied")?;
        Self::served(original.restored(name, original.clock()), dir).await
    }

    async fn served(cluster: SimCluster, dir: &Path) -> anyhow::Result<Self> {
        let name = cluster.name();
        let served = cluster.serve("127.0.0.1:0".parse()?).await?;
        let kubeconfig = dir.join(format!("{name}.kubeconfig"));
        std::fs::write(
            &kubeconfig,
            kubeconfig_text(name, &format!("http://{}", served.address)),
        )?;
        Ok(Self {
            name: name.into(),
            client: cluster.client_named(USER_AGENT),
            agent_kubeconfig: kubeconfig.clone(),
            kubeconfig,
            kind: Kind::Simulated(cluster, served),
        })
    }

    async fn real(fleet: &Arc<Fleet>, name: &str, index: usize) -> anyhow::Result<Self> {
        // The shared fleet has names of its own: the member's name is its cluster id only.
        let cluster = fleet
            .clusters()
            .get(index)
            .with_context(|| format!("the fleet has no cluster {index}"))?;
        let client = cluster.client().await?;
        deploy::install(&client, &["crds", "agent"]).await?;
        forget_membership(&client).await?;
        // The first request of an agent that came before the authorizer has read its roles would be denied.
        ask::until_all(cluster, Account::Agent, None).await?;
        let account = Account::Agent.in_cluster(cluster)?;
        Ok(Self {
            name: name.into(),
            client,
            kubeconfig: cluster.kubeconfig_path().to_owned(),
            agent_kubeconfig: account.kubeconfig_path().to_owned(),
            kind: Kind::Real(fleet.clone(), account),
        })
    }

    /// The simulated cluster, if it is one.
    pub fn sim(&self) -> Option<&SimCluster> {
        match &self.kind {
            Kind::Simulated(cluster, _) => Some(cluster),
            Kind::Real(..) => None,
        }
    }
}

/// Tests share clusters, and each lets one be another member: it has left as what it was.
async fn forget_membership(client: &Client) -> anyhow::Result<()> {
    let properties: Api<ClusterProperty> = Api::all(client.clone());
    for name in [PROPERTY_CLUSTER_ID, PROPERTY_CLUSTERSET] {
        match properties.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            deleted => drop(deleted?),
        }
    }
    Ok(())
}

/// A kubeconfig for an API that asks for no credentials.
fn kubeconfig_text(name: &str, server: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {name}\n\
         clusters:\n- name: {name}\n  cluster: {{server: \"{server}\"}}\n\
         users:\n- name: {name}\n  user: {{}}\n\
         contexts:\n- name: {name}\n  context: {{cluster: {name}, user: {name}}}\n"
    )
}
