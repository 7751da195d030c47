//! Owns: one cluster with all that the charts install, a hub, an agent's place, a namespace, and waiting under the
//! scenario's own deadline.
//! Never: plays anything.

use std::{fmt::Display, future::Future, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, bail, ensure};
use kube::{
    Client,
    api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use shared::api::names::{
    AGENT_LEASE, LABEL_KUBERNETES_SERVICE_NAME, MULTICLUSTER_API_VERSION, TRIBUTARY_NAMESPACE,
};
use tempfile::TempDir;
use tokio::time::Instant;

use cluster::{
    clusterset::{Backend, LocalClusterset, picture::picture, questions, shop::unique_name},
    deploy,
    real::{Cluster, Fleet},
    rights::{
        Account, Right, ask,
        denied::{Asked, Watched},
    },
};
use oracle::wrong_in;

/// The member's id.
pub(super) const MEMBER: &str = "east";
/// The installed charts, in this order.
pub(super) const INSTALLED: [&str; 3] = ["crds", "hub", "agent"];
/// The charts' default namespace of ClusterProfiles.
pub(super) const INVENTORY: &str = "tributary-default";
/// Interval of checking a condition.
const POLL: Duration = Duration::from_millis(50);
/// The objects that export services, and their results; exports first.
const CONTENTS: [(&str, &str); 4] = [
    (MULTICLUSTER_API_VERSION, "ServiceExport"),
    (MULTICLUSTER_API_VERSION, "ServiceImport"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
    ("v1", "Service"),
];
/// Whoever makes what is not Tributary's.
const USER: &str = "user";

/// The stage of a scenario.
pub(super) struct Stage {
    /// A hub, and the cluster as its member; no agent yet.
    pub(super) clusterset: LocalClusterset,
    /// As an administrator: a user, not a program.
    pub(super) client: Client,
    /// Namespace of the exported services.
    pub(super) namespace: String,
    /// All that it made.
    namespaces: Vec<String>,
    fleet: Arc<Fleet>,
    deadline: Duration,
    directory: TempDir,
}

impl Stage {
    /// Installs everything in the first cluster of a fleet, starts a hub, makes a namespace.
    pub(super) async fn set(fleet: &Arc<Fleet>, deadline: Duration) -> anyhow::Result<Self> {
        let client = fleet.clusters()[0].client().await?;
        deploy::install(&client, &INSTALLED).await?;
        let directory = tempfile::tempdir()?;
        let backend = Backend::Real(fleet.clone());
        let clusterset = LocalClusterset::without_agents(directory.path(), &backend, &[MEMBER]).await?;
        let mut stage = Self {
            clusterset,
            client,
            namespace: String::new(),
            namespaces: Vec::new(),
            fleet: fleet.clone(),
            deadline,
            directory,
        };
        stage.clear().await?;
        stage.make_namespace().await?;
        Ok(stage)
    }

    /// Makes another namespace, and exports from it from then on.
    pub(super) async fn make_namespace(&mut self) -> anyhow::Result<()> {
        let name = unique_name("rights");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.apply("", namespace).await?;
        self.namespaces.push(name.clone());
        self.namespace = name;
        Ok(())
    }

    /// Takes away what other agents and hubs left: whoever is first here makes it.
    async fn clear(&self) -> anyhow::Result<()> {
        let leases = api(
            &self.client,
            "coordination.k8s.io/v1",
            "Lease",
            TRIBUTARY_NAMESPACE,
        );
        match leases.delete(AGENT_LEASE, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            deleted => drop(deleted?),
        }
        self.profiles()
            .delete_collection(&DeleteParams::default(), &ListParams::default())
            .await?;
        Ok(())
    }

    /// Waits until the cluster's authorizer knows all that is installed, except perhaps one right.
    pub(super) async fn everything_in_force(&self, except: Option<&Right>) -> anyhow::Result<()> {
        for account in Account::ALL {
            ask::until_all(self.cluster(), account, except).await?;
        }
        Ok(())
    }

    /// The one cluster.
    pub(super) fn cluster(&self) -> &Cluster {
        &self.fleet.clusters()[0]
    }

    /// ClusterProfiles, where the charts put them.
    pub(super) fn profiles(&self) -> Api<DynamicObject> {
        let version = "multicluster.x-k8s.io/v1alpha1";
        api(&self.client, version, "ClusterProfile", INVENTORY)
    }

    /// The kubeconfig of an account.
    pub(super) fn kubeconfig(&self, account: Account) -> anyhow::Result<PathBuf> {
        Ok(account.in_cluster(self.cluster())?.kubeconfig_path().to_owned())
    }

    /// A file of the stage's own.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts the agent and waits until the hub has all that it listed.
    pub(super) async fn start_agent(&mut self) -> anyhow::Result<()> {
        self.clusterset.start_agent(MEMBER).await?;
        let clusterset = &self.clusterset;
        self.until("the hub has the member's listing", async || {
            let state = questions::state(clusterset).await?;
            let listed = state
                .members
                .iter()
                .any(|member| member.connected && member.listed);
            Ok(listed.then_some(()))
        })
        .await
    }

    /// Applies an object as a user, in the namespace of the scenario or in another one.
    pub(super) async fn apply(&self, namespace: &str, mut object: Value) -> anyhow::Result<()> {
        let word = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let name = object["metadata"]["name"].as_str().context("a name")?.to_owned();
        let api = api(&self.client, &word("apiVersion"), &word("kind"), namespace);
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        api.patch(&name, &PatchParams::apply(USER).force(), &Patch::Apply(&object))
            .await?;
        Ok(())
    }

    /// Exports a service with one endpoint, on this port.
    pub(super) async fn export(&self, service: &str, address: &str, port: u16) -> anyhow::Result<()> {
        let ports = json!([{"name": "http", "port": port, "protocol": "TCP"}]);
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": slice_name(service), "labels": {LABEL_KUBERNETES_SERVICE_NAME: service}},
            "addressType": "IPv4", "ports": ports,
            "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
        });
        let spec = json!({"ports": ports, "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]});
        let objects = [
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": service}, "spec": spec}),
            slice,
            json!({"apiVersion": MULTICLUSTER_API_VERSION, "kind": "ServiceExport",
                "metadata": {"name": service}}),
        ];
        for object in objects {
            self.apply(&self.namespace, object).await?;
        }
        Ok(())
    }

    /// Objects of a kind in the namespace of the scenario.
    pub(super) fn api(&self, version: &str, kind: &str) -> Api<DynamicObject> {
        api(&self.client, version, kind, &self.namespace)
    }

    /// Waits until the cluster holds what its exports say, by the oracle.
    pub(super) async fn arrived(&self) -> anyhow::Result<()> {
        self.until("the cluster holds what the exports say", async || {
            let picture = picture(&self.client, MEMBER, &self.namespace).await?;
            let wrong = wrong_in(&[&picture], &picture);
            ensure!(wrong.is_empty(), "{}", wrong.join("; "));
            Ok(Some(()))
        })
        .await
    }

    /// Waits for a condition; its error is one of the moment, and the last is shown when the time is up.
    pub(super) async fn until<T, F, Look>(&self, what: impl Display, mut look: F) -> anyhow::Result<T>
    where
        F: FnMut() -> Look,
        Look: Future<Output = anyhow::Result<Option<T>>>,
    {
        let began = Instant::now();
        let mut poll = tokio::time::interval(POLL);
        loop {
            poll.tick().await;
            let last = match look().await {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => None,
                Err(error) => Some(error),
            };
            if began.elapsed() >= self.deadline {
                let late = format!("not after {} s: {what}", self.deadline.as_secs());
                return match last {
                    Some(error) => Err(error).context(late),
                    None => bail!(late),
                };
            }
        }
    }

    /// Ends the programs in good order, installs again what is missing, and leaves nothing behind that the agents of
    /// the next scenario would export too. Who asked for that is not looked at any more.
    pub(super) async fn end(self, watched: &Watched) -> anyhow::Result<(anyhow::Result<()>, Asked)> {
        let ended = self.clusterset.end().await;
        let asked = watched.asked(&self.fleet).await?;
        deploy::install(&self.client, &INSTALLED).await?;
        for namespace in &self.namespaces {
            for (version, kind) in CONTENTS {
                api(&self.client, version, kind, namespace)
                    .delete_collection(&DeleteParams::default(), &ListParams::default())
                    .await?;
            }
            api(&self.client, "v1", "Namespace", "")
                .delete(namespace, &DeleteParams::default())
                .await?;
        }
        Ok((ended, asked))
    }
}

/// The name of the slice behind an exported service.
pub(super) fn slice_name(service: &str) -> String {
    format!("{service}-1")
}

/// Objects of a kind; an empty namespace: of the whole cluster.
pub(super) fn api(client: &Client, version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        "" => Api::all_with(client.clone(), &resource),
        _ => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}
