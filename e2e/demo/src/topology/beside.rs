//! `clusterclass rebase` beside Cluster API's own manager: the Clusters that it keeps go from one class to another, one after
//! the other, with no hub.

use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use clap::Parser;
use clusterclass_program::command::{self, Cli};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::columns::columns;
use tokio::time::{Instant, interval, sleep};

use super::{CLUSTERS, ESTATE, IMAGE, edited};
use cluster::{
    deploy,
    pretend::{KINDS, definition, resource},
    real::{
        Fleet, Options, build,
        cluster_api::{ClusterApi, Manager},
        module::Module,
    },
};

/// The class that the Clusters go to: the same, with another image.
const NEXT: &str = "edge-next";
/// Longest time until Cluster API says that all is well: it probes each cluster now and then.
const PATIENCE: Duration = Duration::from_secs(180);
/// Interval of looks, and of the provider's reports.
const LOOK: Duration = Duration::from_millis(500);

/// Plays it from its start to its end.
pub(super) async fn rebased() -> anyhow::Result<()> {
    println!(
        "\nStarting a management cluster without a hub, where Cluster API's own manager keeps topologies ..."
    );
    let stage = Stage::start().await?;
    let played = tokio::select! {
        played = stage.play() => played,
        ended = stage.provide() => ended.context("the provider"),
    };
    played.with_context(|| format!("the manager's log is {}", stage.manager.log().display()))
}

/// Everything that runs.
struct Stage {
    client: Client,
    kubeconfig: String,
    manager: Manager,
    // Drop ends it, after what uses it.
    _fleet: Fleet,
}

/// The status of a Cluster: its class, and three conditions.
type Said = [String; 4];

impl Stage {
    async fn start() -> anyhow::Result<Self> {
        let upstream = match ClusterApi::find() {
            Ok(upstream) => upstream,
            Err(_) => {
                build::cluster_api(&Module::of_this_workspace())?;
                ClusterApi::find()?
            }
        };
        let fleet = Fleet::start(&["cluster-api"], Options::default()).await;
        let fleet = fleet.map_err(|error| anyhow!("{error}"))?;
        let cluster = &fleet.clusters()[0];
        let client = cluster.client().await?;
        let mut definitions = upstream.definitions()?;
        for kind in KINDS {
            definitions.push(definition(kind)?);
        }
        let definitions = definitions.into_iter().map(|mut one| {
            one.status = None;
            anyhow::Ok(serde_json::from_value::<DynamicObject>(serde_json::to_value(
                one,
            )?)?)
        });
        let definitions: Vec<_> = definitions.collect::<Result<_, _>>()?;
        deploy::install_objects(&client, &definitions).await?;
        let kubeconfig = std::fs::read(cluster.kubeconfig_path())?;
        for name in CLUSTERS {
            deploy::apply(&client, &secret(name, &kubeconfig)?).await?;
        }
        for document in serde_norway::Deserializer::from_str(ESTATE) {
            let mut object = Value::deserialize(document)?;
            if object["kind"] == "ClusterClass" {
                let mut next = edited(&object, IMAGE)?;
                next["metadata"]["name"] = json!(NEXT);
                deploy::apply(&client, &serde_json::from_value(next)?).await?;
            }
            if object["kind"] == "Cluster" {
                // Nobody makes machines here, and Cluster API waits for those of workers.
                let topology = object["spec"]["topology"].as_object_mut();
                topology.context("a topology")?.remove("workers");
            }
            deploy::apply(&client, &serde_json::from_value(object)?).await?;
        }
        Ok(Self {
            manager: upstream.start(cluster)?,
            kubeconfig: cluster.kubeconfig_path().display().to_string(),
            client,
            _fleet: fleet,
        })
    }

    async fn play(&self) -> anyhow::Result<()> {
        self.healthy("edge").await?;
        print!("{}", table(&self.look().await?));
        println!("\n$ clusterclass rebase --from edge --to {NEXT} --clusters '' --at-once 1 --confirm");
        let words = [
            "clusterclass",
            "rebase",
            "--from",
            "edge",
            "--to",
            NEXT,
            "--clusters",
            "",
            "--at-once",
            "1",
            "--confirm",
            "--kubeconfig",
            &self.kubeconfig,
        ];
        let cli = Cli::try_parse_from(words)?;
        // It makes a runtime of its own, as a program does.
        let mut rebase = tokio::task::spawn_blocking(|| command::run(cli));
        let mut was_alone = false;
        let said = loop {
            tokio::select! {
                ended = &mut rebase => break ended??.0,
                () = sleep(LOOK) => {
                    let classes: Vec<String> = self.look().await?.into_iter().map(|(_, [class, ..])| class).collect();
                    was_alone |= classes == [NEXT, "edge"];
                    ensure!(classes != ["edge", NEXT], "us went before eu");
                }
            }
        };
        print!("{said}");
        ensure!(was_alone, "both Clusters went at once");
        ensure!(
            said.contains("2 Clusters have class edge-next and are healthy"),
            "it says {said}"
        );
        self.healthy(NEXT).await?;
        for cluster in CLUSTERS {
            let image = self.image(cluster).await?;
            ensure!(
                image == IMAGE,
                "the control plane of {cluster} has the image {image}"
            );
        }
        print!("{}", table(&self.look().await?));
        println!(
            "Done: Cluster API's manager carried out two edits of two Clusters, the second once the first was healthy."
        );
        Ok(())
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), "default", &resource(kind))
    }

    async fn list(&self, kind: &str) -> anyhow::Result<Vec<DynamicObject>> {
        Ok(self.api(kind).list(&ListParams::default()).await?.items)
    }

    async fn look(&self) -> anyhow::Result<Vec<(String, Said)>> {
        let clusters = self.list("Cluster").await?;
        let said = clusters.iter().map(|cluster| {
            let class = cluster.data["spec"]["topology"]["classRef"]["name"].as_str();
            let conditions = cluster.data["status"]["conditions"].as_array();
            let status = |name: &str| {
                let found = conditions.into_iter().flatten().find(|one| one["type"] == name);
                let status = found.and_then(|one| one["status"].as_str());
                status.unwrap_or("-").to_owned()
            };
            let [reconciled, rolling, available] =
                ["TopologyReconciled", "RollingOut", "Available"].map(status);
            let class = class.unwrap_or_default().to_owned();
            (cluster.name_any(), [class, reconciled, rolling, available])
        });
        Ok(said.collect())
    }

    /// Waits until both have a class and Cluster API says that all is well.
    async fn healthy(&self, class: &str) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let said = self.look().await?;
            if said
                .iter()
                .all(|(_, said)| *said == [class, "True", "False", "True"])
            {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                let clusters = self.list("Cluster").await?;
                let conditions = clusters
                    .iter()
                    .map(|one| one.data["status"]["conditions"].to_string());
                let conditions: Vec<String> = conditions.collect();
                return Err(anyhow!("the Clusters are not healthy: {}", conditions.join("\n")));
            }
            sleep(LOOK).await;
        }
    }

    /// The image of a control plane's machines.
    async fn image(&self, cluster: &str) -> anyhow::Result<String> {
        let owned = self.api("Cluster").get(cluster).await?;
        let plane = owned.data["spec"]["controlPlaneRef"]["name"]
            .as_str()
            .context("a control plane")?;
        let plane = self.api("Plane").get(plane).await?;
        let template = plane.data["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"].as_str();
        let template = self
            .api("HostTemplate")
            .get(template.context("a template")?)
            .await?;
        let image = template.data["spec"]["template"]["spec"]["image"].as_str();
        Ok(image.unwrap_or_default().to_owned())
    }

    /// Reports what a provider would, until something cannot be written.
    async fn provide(&self) -> anyhow::Result<()> {
        let mut reports = interval(LOOK);
        loop {
            reports.tick().await;
            for cloud in self.list("Cloud").await? {
                let api = self.api("Cloud");
                if cloud.data["spec"]["controlPlaneEndpoint"].is_null() {
                    let endpoint =
                        json!({"spec": {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}}});
                    let (by, patch) = (PatchParams::default(), Patch::Merge(&endpoint));
                    api.patch(&cloud.name_any(), &by, &patch).await?;
                }
                report(&api, &cloud, json!({"initialization": {"provisioned": true}})).await?;
            }
            for plane in self.list("Plane").await? {
                report(&self.api("Plane"), &plane, plane_says(&plane)).await?;
            }
        }
    }
}

/// The status of a control plane whose machines are all there.
fn plane_says(plane: &DynamicObject) -> Value {
    let (version, replicas) = (&plane.data["spec"]["version"], &plane.data["spec"]["replicas"]);
    json!({
        "version": version,
        "initialization": {"controlPlaneInitialized": true},
        "observedGeneration": plane.metadata.generation,
        "replicas": replicas,
        "readyReplicas": replicas,
        "availableReplicas": replicas,
        "upToDateReplicas": replicas,
    })
}

/// Writes a status that is another one.
async fn report(api: &Api<DynamicObject>, object: &DynamicObject, said: Value) -> anyhow::Result<()> {
    if object.data["status"] != said {
        let (by, patch) = (PatchParams::default(), json!({"status": said}));
        api.patch_status(&object.name_any(), &by, &Patch::Merge(&patch))
            .await?;
    }
    Ok(())
}

/// The Secret by which Cluster API reaches a Cluster: here all of them are the management cluster.
fn secret(cluster: &str, kubeconfig: &[u8]) -> anyhow::Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "cluster.x-k8s.io/secret",
        "metadata": {
            "name": format!("{cluster}-kubeconfig"),
            "namespace": "default",
            "labels": {"cluster.x-k8s.io/cluster-name": cluster},
        },
        "data": {"value": BASE64_STANDARD.encode(kubeconfig)},
    }))?)
}

fn table(said: &[(String, Said)]) -> String {
    let header = ["CLUSTER", "CLASS", "RECONCILED", "ROLLING-OUT", "AVAILABLE"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(said.iter().map(|(name, said)| {
        let mut row = vec![name.clone()];
        row.extend(said.iter().cloned());
        row
    }));
    columns(&rows).join("\n") + "\n"
}
