//! The stage of the demo of topologies: three real API servers, a hub and two agents, and the kinds of Cluster API and
//! of a provider that pretends.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, anyhow};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
};
use serde::Deserialize;
use serde_json::Value;

use crate::directory::DemoDirectory;
use cluster::{
    clusterset::{Backend, LocalClusterset, admin, eventually::eventually},
    deploy,
    files::write_private,
    pretend::{self, Machines, resource},
    real::{Fleet, Options, build, module::Module},
};

/// Field manager of the demo's objects.
const MANAGER: &str = "demo";

/// Everything that runs.
pub(super) struct Stage {
    pub(super) client: Client,
    kubeconfig: PathBuf,
    /// The hub's admin port.
    admin: SocketAddr,
    clusterset: LocalClusterset,
    // Drop ends it, after what uses it.
    _fleet: Arc<Fleet>,
}

impl Stage {
    /// Starts all of it; the control plane is built if it is not there yet.
    pub(super) async fn start(place: &DemoDirectory, members: &[&str]) -> anyhow::Result<Self> {
        let module = Module::of_this_workspace();
        if build::assets().is_none() && module.built().is_err() {
            build::control_plane(&module)?;
        }
        let names: Vec<&str> = ["management"].iter().chain(members).copied().collect();
        // The first line of such an error says all; its causes repeat it.
        let fleet = Fleet::start(&names, Options::default())
            .await
            .map_err(|error| anyhow!("{error}"))?;
        let fleet = Arc::new(fleet);
        let management = &fleet.clusters()[0];
        let client = management.client().await?;
        pretend::install(&client).await?;
        deploy::install(&client, &["crds", "hub"]).await?;
        write_private(&place.kubeconfig(), &std::fs::read(management.kubeconfig_path())?)?;
        let backend = Backend::Real(fleet.clone());
        let named = ("default", 1);
        let mut clusterset =
            LocalClusterset::without_hub_beside(&place.clusterset(), &backend, members, named).await?;
        let kubeconfig = management.kubeconfig_path().to_owned();
        let shown = kubeconfig.to_str().context("a path of text")?;
        clusterset
            .start_hub_with(&[
                "--topology",
                "own",
                "--topology-rollouts",
                "1",
                "--kubeconfig",
                shown,
            ])
            .await?;
        for member in members {
            clusterset.start_agent(member).await?;
        }
        Ok(Self {
            client,
            kubeconfig,
            admin: clusterset.hub()?.admin().await?,
            clusterset,
            _fleet: fleet,
        })
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(super) fn provider(&self) -> Machines {
        Machines::new(self.client.clone())
    }

    /// Waits until the hub counts this many Clusters as they should be: what it has not counted yet is still on its way.
    pub(super) async fn counted_as_settled(&self, clusters: usize) -> anyhow::Result<()> {
        eventually("the hub counts all Clusters as settled", async || {
            let labels = "state=\"settled\"";
            let settled = admin::metric_at(self.admin, "tributary_hub_topology_own_clusters", labels).await?;
            Ok((settled == clusters as f64).then_some(()))
        })
        .await
    }

    /// A program that has ended, once one has.
    pub(super) async fn fallen(&mut self) -> String {
        let (name, said) = self.clusterset.fallen().await;
        format!("{} ended: {said}", name.unwrap_or_else(|| "the hub".to_owned()))
    }

    /// Ends it in good order.
    pub(super) async fn end(self) -> anyhow::Result<()> {
        self.clusterset.end().await
    }

    /// Applies the objects of a text.
    pub(super) async fn apply(&self, text: &str) -> anyhow::Result<()> {
        for document in serde_norway::Deserializer::from_str(text) {
            self.apply_object(Value::deserialize(document)?).await?;
        }
        Ok(())
    }

    /// Applies an object.
    pub(super) async fn apply_object(&self, mut object: Value) -> anyhow::Result<()> {
        if let Some(about) = object["metadata"].as_object_mut() {
            for name in [
                "managedFields",
                "resourceVersion",
                "generation",
                "creationTimestamp",
            ] {
                about.remove(name);
            }
        }
        let of = |place: &str| object.pointer(place).and_then(Value::as_str).map(str::to_owned);
        let (kind, name) = of("/kind")
            .zip(of("/metadata/name"))
            .context("a kind and a name")?;
        let (api, by) = (self.api(&kind), PatchParams::apply(MANAGER).force());
        let applied = api.patch(&name, &by, &Patch::Apply(&object)).await;
        applied.with_context(|| format!("apply {kind} {name}"))?;
        Ok(())
    }

    /// An object of the management cluster.
    pub(super) async fn get(&self, kind: &str, name: &str) -> anyhow::Result<Value> {
        let object = self.api(kind).get(name).await?;
        let mut value = serde_json::to_value(object)?;
        value["apiVersion"] = resource(kind).api_version.into();
        value["kind"] = kind.into();
        Ok(value)
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), "default", &resource(kind))
    }
}
