//! Owns: a real API server with upstream's manager, the kinds of a provider that is none, a class with its templates and
//! a Cluster; and everything that is there, as files.

use std::{collections::BTreeMap, io::Write};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use clusterclass_program::command::{self, Cli};
use hub::topology::{
    desired::{
        change::{Changes, Plan},
        offline::plans,
    },
    shadow::{self, Differing},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::older;
use cluster::{
    deploy,
    pretend::{KINDS, definition, resource},
    real::{
        Fleet, Options,
        cluster_api::{ClusterApi, Manager},
    },
};

/// The Cluster.
pub(super) const CLUSTER: &str = "c";
/// The class, and another that is like it.
pub(super) const CLASS: &str = "standard";
pub(super) const OTHER_CLASS: &str = "other";
const OWN_KINDS: [&str; 6] = [
    "ClusterClass",
    "Cluster",
    "MachineDeployment",
    "MachinePool",
    "Machine",
    "MachineHealthCheck",
];
/// Number of attempts at an edit after conflicts.
const CONFLICTS_MAX: u32 = 20;
/// Most of our findings, or of the manager's errors, that are shown.
const FINDINGS_SHOWN: usize = 5;
/// The manager's words about health checks, because there is nothing behind a Cluster.
const NOT_REACHED: &str = "connection to the workload cluster is down";
/// Annotation that makes the manager look at the Cluster again: it does not watch templates.
const NUDGE: &str = "example.org/nudge";
/// The class, its templates and the Cluster.
const OBJECTS: &str = include_str!("objects.yaml");

pub(super) struct ManagementCluster {
    client: Client,
    /// Upstream's, where it is the one that works here.
    manager: Option<Manager>,
    namespaces: Vec<String>,
    nudges: u64,
    // Drop ends it, after what uses it.
    fleet: Fleet,
}

/// Everything that is there, by namespace, kind and name.
pub(super) type Export = BTreeMap<(String, String, String), Value>;

impl ManagementCluster {
    /// A world in which nothing happens yet: the manager stands still.
    pub(super) async fn start(upstream: &ClusterApi, namespaces: Vec<String>) -> anyhow::Result<Self> {
        let mut world = Self::without_manager(upstream, namespaces).await?;
        let mut manager = upstream.start(&world.fleet.clusters()[0])?;
        manager.pause()?;
        world.manager = Some(manager);
        Ok(world)
    }

    /// A world in which nobody works.
    pub(super) async fn without_manager(
        upstream: &ClusterApi,
        namespaces: Vec<String>,
    ) -> anyhow::Result<Self> {
        let fleet = Fleet::start(&["topology"], Options::default()).await?;
        let cluster = &fleet.clusters()[0];
        let client = cluster.client().await?;
        let mut definitions = upstream.definitions()?;
        for kind in KINDS {
            definitions.push(definition(kind)?);
        }
        let definitions = definitions.into_iter().map(|mut one| {
            one.status = None;
            let value = serde_json::to_value(one)?;
            anyhow::Ok(serde_json::from_value::<DynamicObject>(value)?)
        });
        let definitions: Vec<_> = definitions.collect::<Result<_, _>>()?;
        deploy::install_objects(&client, &definitions).await?;
        let world = Self {
            client,
            manager: None,
            namespaces,
            nudges: 0,
            fleet,
        };
        let documents = serde_norway::Deserializer::from_str(OBJECTS);
        let objects: Vec<Value> = documents.map(Value::deserialize).collect::<Result<_, _>>()?;
        for namespace in &world.namespaces {
            world.furnish(namespace, &objects).await?;
        }
        Ok(world)
    }

    /// A client of its API server.
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The manager ends, wherever it is.
    pub(super) fn end_manager(&mut self) {
        self.manager = None;
    }

    /// The manager stands still.
    pub(super) fn pause(&mut self) -> anyhow::Result<()> {
        self.manager.as_mut().map_or(Ok(()), Manager::pause)
    }

    /// The manager goes on.
    pub(super) fn go_on(&mut self) -> anyhow::Result<()> {
        self.manager.as_mut().map_or(Ok(()), Manager::go_on)
    }

    async fn furnish(&self, namespace: &str, objects: &[Value]) -> anyhow::Result<()> {
        let made: Namespace = serde_json::from_value(json!({"metadata": {"name": namespace}}))?;
        Api::all(self.client.clone())
            .create(&PostParams::default(), &made)
            .await?;
        for object in objects {
            if object["kind"] == "ClusterClass" {
                let mut other = object.clone();
                other["metadata"]["name"] = json!(OTHER_CLASS);
                self.create(namespace, other).await?;
            }
            self.create(namespace, object.clone()).await?;
        }
        Ok(())
    }

    fn api(&self, namespace: &str, kind: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &resource(kind))
    }

    async fn all(&self, kind: &str) -> anyhow::Result<Vec<DynamicObject>> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource(kind));
        let listed = api.list(&ListParams::default()).await;
        Ok(listed.with_context(|| format!("list {kind}"))?.items)
    }

    async fn create(&self, namespace: &str, object: Value) -> anyhow::Result<()> {
        let kind = object["kind"].as_str().context("a kind")?.to_owned();
        let object: DynamicObject = serde_json::from_value(object)?;
        let created = self
            .api(namespace, &kind)
            .create(&PostParams::default(), &object)
            .await;
        created.with_context(|| format!("create a {kind}"))?;
        Ok(())
    }

    /// Changes an object as a person does.
    pub(super) async fn edit(
        &self,
        namespace: &str,
        (kind, name): (&str, &str),
        edit: impl Fn(&mut Value),
    ) -> anyhow::Result<()> {
        let api = self.api(namespace, kind);
        for _ in 0..CONFLICTS_MAX {
            let object = api
                .get(name)
                .await
                .with_context(|| format!("get {kind} {name}"))?;
            let mut value = serde_json::to_value(object)?;
            edit(&mut value);
            let object: DynamicObject = serde_json::from_value(value)?;
            match api.replace(name, &PostParams::default(), &object).await {
                // What the manager had sent when it was stopped came in between; it sends nothing more.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                replaced => {
                    replaced.with_context(|| format!("change {kind} {name}"))?;
                    return Ok(());
                }
            }
        }
        bail!("{kind} {name} was changed by somebody else {CONFLICTS_MAX} times")
    }

    /// Changes what the Cluster says of its topology.
    pub(super) async fn topology(&self, namespace: &str, edit: impl Fn(&mut Value)) -> anyhow::Result<()> {
        let cluster = ("Cluster", CLUSTER);
        self.edit(namespace, cluster, |cluster| {
            edit(&mut cluster["spec"]["topology"])
        })
        .await
    }

    /// Lets the manager look again.
    pub(super) async fn nudge(&mut self) -> anyhow::Result<()> {
        self.nudges += 1;
        let patch = json!({"metadata": {"annotations": {NUDGE: self.nudges.to_string()}}});
        for namespace in &self.namespaces {
            let (parameters, patch) = (PatchParams::default(), Patch::Merge(&patch));
            self.api(namespace, "Cluster")
                .patch(CLUSTER, &parameters, &patch)
                .await?;
        }
        Ok(())
    }

    /// Everything that is there.
    pub(super) async fn export(&self) -> anyhow::Result<Export> {
        let mut all = Export::new();
        for kind in OWN_KINDS.into_iter().chain(KINDS) {
            for object in self.all(kind).await? {
                let name = object.metadata.name.clone().unwrap_or_default();
                let namespace = object.metadata.namespace.clone().unwrap_or_default();
                let mut value = serde_json::to_value(object)?;
                value["apiVersion"] = json!(resource(kind).api_version);
                value["kind"] = json!(kind);
                all.insert((namespace, kind.to_owned(), name), value);
            }
        }
        Ok(all)
    }

    /// The namespaces, each with a Cluster.
    pub(super) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.namespaces.iter().map(String::as_str)
    }

    /// Our present plans, by namespace.
    pub(super) async fn plans(&self) -> anyhow::Result<BTreeMap<String, Plan>> {
        self.plans_of(&self.namespaces().collect::<Vec<_>>()).await
    }

    /// The same for some of them.
    pub(super) async fn plans_of(&self, namespaces: &[&str]) -> anyhow::Result<BTreeMap<String, Plan>> {
        let export = self.export().await?;
        let planned = plans_by(&export, namespaces, Value::clone)?;
        let older = plans_by(&export, namespaces, older::spelled).context("in the spelling of v1beta1")?;
        for (namespace, plan) in &planned {
            let of_older = older.get(namespace);
            ensure!(
                of_older.is_some_and(|of_older| of_older.changes == plan.changes),
                "{namespace}: from the spelling of v1beta1 it is another plan: {}; not: {}",
                of_older.map(places).unwrap_or_default(),
                places(plan)
            );
        }
        Ok(planned)
    }

    /// The output of `clusterclass diff` for the whole cluster, with an object of a file edited, if one is given.
    pub(super) async fn diff(&self, edited: Option<&Value>) -> anyhow::Result<(String, Changes)> {
        let mut file = tempfile::NamedTempFile::new()?;
        let kubeconfig = self.fleet.clusters()[0].kubeconfig_path().display().to_string();
        let mut words = ["clusterclass", "diff", "--kubeconfig"]
            .map(str::to_owned)
            .to_vec();
        words.push(kubeconfig);
        if let Some(edited) = edited {
            file.write_all(edited.to_string().as_bytes())?;
            words.extend(["-f".to_owned(), file.path().display().to_string()]);
        }
        let cli = Cli::try_parse_from(words)?;
        // It makes a runtime of its own, as a program does.
        tokio::task::spawn_blocking(|| command::run(cli)).await?
    }

    /// The comparison of a hub in shadow mode.
    pub(super) async fn compared(&self) -> anyhow::Result<Differing> {
        shadow::compare(&self.client).await
    }

    /// Reports what a provider would: control planes have the version that they were told. Whether that is news.
    pub(super) async fn provide(&self) -> anyhow::Result<bool> {
        let mut news = false;
        for plane in self.all("Plane").await? {
            let wanted = &plane.data["spec"]["version"];
            if plane.data["status"]["version"] == *wanted {
                continue;
            }
            news = true;
            let status =
                json!({"status": {"version": wanted, "initialization": {"controlPlaneInitialized": true}}});
            let (name, namespace) = (plane.metadata.name.unwrap_or_default(), plane.metadata.namespace);
            let api = self.api(&namespace.unwrap_or_default(), "Plane");
            api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
                .await?;
        }
        Ok(news)
    }

    /// Clusters' conditions of their topologies that are not well.
    pub(super) async fn conditions(&self) -> anyhow::Result<Vec<String>> {
        let mut said = Vec::new();
        for cluster in self.all("Cluster").await? {
            let namespace = cluster.metadata.namespace.unwrap_or_default();
            let all = cluster.data["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let wrong = all
                .iter()
                .filter(|one| one["type"] == "TopologyReconciled" && one["status"] != "True");
            said.extend(wrong.map(|one| format!("{namespace}: {} {}", one["reason"], one["message"])));
        }
        said.truncate(FINDINGS_SHOWN);
        Ok(said)
    }

    /// Machine deployments and pools of which their controller has not yet said anything about the `spec` that they have now.
    pub(super) async fn unobserved(&self) -> anyhow::Result<Vec<String>> {
        let export = self.export().await?;
        let is_behind = |one: &Value| {
            let observed = one["status"]["observedGeneration"].as_i64();
            observed.is_some_and(|observed| Some(observed) < one["metadata"]["generation"].as_i64())
        };
        let workers = export.iter().filter(|((_, kind, _), one)| {
            ["MachineDeployment", "MachinePool"].contains(&kind.as_str()) && is_behind(one)
        });
        Ok(workers
            .map(|((namespace, _, name), _)| format!("{namespace}/{name}"))
            .collect())
    }

    /// The last errors in the manager's log.
    pub(super) fn manager_says(&self) -> String {
        let log = self.manager.as_ref().map(Manager::log);
        let text = log
            .and_then(|log| std::fs::read_to_string(log).ok())
            .unwrap_or_default();
        // Health checks ask for clusters that are none, and say so all the time.
        let is_one = |line: &&str| line.starts_with('E') && !line.contains(NOT_REACHED);
        let errors: Vec<&str> = text.lines().filter(is_one).collect();
        let last = &errors[errors.len().saturating_sub(FINDINGS_SHOWN)..];
        format!("errors of the manager: {}", last.join("\n"))
    }
}

/// The places of a plan, each with what happens there and in which fields.
fn places(plan: &Plan) -> String {
    let each = plan.changes.iter().map(|change| {
        let fields: Vec<&str> = change.fields.iter().map(|one| one.field.as_str()).collect();
        format!(
            "{} {} [{}]",
            change.action.name(),
            change.place,
            fields.join(", ")
        )
    });
    each.collect::<Vec<_>>().join("; ")
}

/// Our plans of objects in some spelling.
fn plans_by(
    export: &Export,
    namespaces: &[&str],
    spelled: impl Fn(&Value) -> Value,
) -> anyhow::Result<BTreeMap<String, Plan>> {
    let files: Vec<(String, Vec<u8>)> = export
        .iter()
        .filter(|((namespace, ..), _)| namespaces.contains(&namespace.as_str()))
        .map(|((namespace, kind, name), value)| {
            let file = format!("{namespace}/{kind}/{name}");
            (file, spelled(value).to_string().into_bytes())
        })
        .collect();
    let planned = plans(&files, None).map_err(anyhow::Error::msg)?;
    let findings: Vec<String> = planned
        .findings
        .iter()
        .take(FINDINGS_SHOWN)
        .map(ToString::to_string)
        .collect();
    ensure!(findings.is_empty(), "our findings: {}", findings.join("; "));
    let plans: BTreeMap<String, Plan> = planned
        .plans
        .into_iter()
        .map(|plan| (plan.namespace.clone(), plan))
        .collect();
    ensure!(plans.len() == namespaces.len(), "not every Cluster has a plan");
    Ok(plans)
}
