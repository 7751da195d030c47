//! Owns: a hub that keeps topologies with the rights of its chart: through an edit of a class, through its end in the middle
//! of that, and not beside another controller.
//! Never: runs Cluster API; who says that it is one here is a Lease.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use cluster::{
    clusterset::{
        Backend, LocalClusterset, admin,
        eventually::{eventually, holds_for},
    },
    deploy,
    pretend::{self, Machines, resource},
    rights::{Account, ask},
};
use k8s_openapi::{
    api::{coordination::v1::Lease, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use libtest_mimic::Trial;
use proto::v1;
use serde::Deserialize;
use serde_json::{Value, json};
use tributary_e2e::suite::test_with_own_clusters;

use crate::charts::{fresh, topology_rights};

/// A class, its templates and two Clusters.
const ESTATE: &str = include_str!("../../fixtures/cluster-api/estate.yaml");
/// Time for a pretended machine to come up.
const MACHINE_TAKES: Duration = Duration::from_millis(700);
/// It is played in real time: two rollouts after another, twice.
const LIMIT: Duration = Duration::from_secs(300);
/// Time without writes beside another controller: longer than the hub waits from one look to the next.
const QUIET: Duration = Duration::from_secs(6);

pub(crate) fn trials() -> Vec<Trial> {
    vec![test_with_own_clusters(
        "real::owned_topologies::a_hub_keeps_them_through_its_end_and_not_beside_another",
        LIMIT,
        owned,
    )]
}

async fn owned() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut stage = Stage::set(dir.path()).await?;
    let provider = Machines::new(stage.client.clone());
    tokio::select! {
        played = play(&mut stage) => played?,
        ended = provider.run(MACHINE_TAKES) => ended.context("the provider")?,
    }
    stage.clusterset.end().await
}

async fn play(stage: &mut Stage) -> anyhow::Result<()> {
    stage.start_hub().await?;
    let documents = serde_norway::Deserializer::from_str(ESTATE);
    let mut objects: Vec<DynamicObject> = documents
        .map(DynamicObject::deserialize)
        .collect::<Result<_, _>>()?;
    objects.insert(0, class_of_nowhere()?);
    for object in &mut objects {
        if object.name_any() == "edge" {
            let variables = object.data["spec"]["variables"].as_array_mut();
            variables.context("no variables")?.push(with_default());
        }
        deploy::apply(&stage.client, object).await?;
    }
    let first = stage.rolled_out("debian-12").await?;
    ensure!(
        first.len() == 4,
        "{} templates of machines, not two of each Cluster",
        first.len()
    );
    stage.keeps_the_default().await?;
    stage.explains().await?;
    stage
        .tells("TopologyCreate", "Created MachineDeployment ")
        .await?;
    stage.edit("debian-13").await?;
    eventually("machines are being replaced", async || {
        Ok((stage.list("MachineSet").await?.len() > 2).then_some(()))
    })
    .await?;
    stage.clusterset.kill_hub().await?;
    stage.start_hub().await?;
    let second = stage.rolled_out("debian-13").await?;
    ensure!(
        second.len() == 4 && second.is_disjoint(&first),
        "there are {} templates, which are to be others",
        second.len()
    );
    stage.tells("TopologyCreate", " in the place of ").await?;
    stage
        .tells("TopologyUpdate", "Updated MachineDeployment ")
        .await?;
    stage.tells("TopologyDelete", "Deleted HostTemplate ").await?;
    stage.gives_way().await
}

/// A class whose templates are of a kind that the API server does not serve. It concerns nobody but its own Clusters.
fn class_of_nowhere() -> anyhow::Result<DynamicObject> {
    let template = |kind: &str| json!({"templateRef": {"apiVersion": "nowhere.example.org/v1", "kind": kind, "name": "x"}});
    Ok(serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "ClusterClass",
        "metadata": {"name": "nowhere", "namespace": "default"},
        "spec": {"infrastructure": template("NowhereTemplate"), "controlPlane": template("NobodyTemplate")},
    }))?)
}

/// A variable that no Cluster sets.
fn with_default() -> Value {
    json!({"name": "tier", "required": false, "schema": {"openAPIV3Schema": {"type": "string", "default": "small"}}})
}

/// A management cluster, and a hub with the account of the chart.
struct Stage {
    clusterset: LocalClusterset,
    client: Client,
    kubeconfig: String,
}

impl Stage {
    async fn set(dir: &Path) -> anyhow::Result<Self> {
        let fleet = Arc::new(fresh(&["management"]).await?);
        let backend = Backend::Real(fleet.clone());
        let clusterset = LocalClusterset::without_hub(dir, &backend, &["east"], "default").await?;
        let client = clusterset.cluster("east")?.client.clone();
        pretend::install(&client).await?;
        deploy::install(&client, &["hub"]).await?;
        let values = [
            "--set=topology=own",
            "--set=topologyProviders={pretend.example.org}",
        ];
        deploy::install_objects(&client, &topology_rights(&values)?).await?;
        let cluster = &fleet.clusters()[0];
        ask::until_all(cluster, Account::Hub, None).await?;
        let account = Account::Hub.in_cluster(cluster)?;
        let kubeconfig = account.kubeconfig_path().to_string_lossy().into_owned();
        Ok(Self {
            clusterset,
            client,
            kubeconfig,
        })
    }

    async fn start_hub(&mut self) -> anyhow::Result<()> {
        let flags = [
            "--topology",
            "own",
            "--topology-rollouts",
            "1",
            "--kubeconfig",
            &self.kubeconfig,
        ];
        self.clusterset.start_hub_with(&flags).await
    }

    /// The hub's explanation of a Cluster for an operator.
    async fn explains(&self) -> anyhow::Result<()> {
        let mut inspection = self.clusterset.inspect().await?;
        let asked = |name: &str| v1::ExplainRequest {
            namespace: "default".into(),
            name: name.into(),
            subject: v1::ExplainSubject::ClusterTopology.into(),
            ..Default::default()
        };
        let answer = inspection.state.explain(asked("eu")).await?.into_inner();
        let topology = answer.topology.context("no topology is explained")?;
        ensure!(topology.cluster_class == "default/edge", "{topology:?}");
        let region = topology.variables.iter().find(|one| one.name == "region");
        ensure!(
            region.is_some_and(|one| one.published && one.value == "\"eu-central\""),
            "{topology:?}"
        );
        let machines = topology.objects.iter().find(|one| one.kind == "HostTemplate");
        let patches = &machines.context("templates of machines")?.patches;
        ensure!(
            patches.iter().any(|patch| patch.name == "image" && patch.changed),
            "{topology:?}"
        );
        let unknown = inspection.state.explain(asked("asia")).await;
        let unknown = unknown
            .err()
            .context("a Cluster that is not there is explained")?;
        ensure!(unknown.code() == tonic::Code::NotFound, "{unknown}");
        Ok(())
    }

    /// The value of a variable that nobody set stands in each Cluster, so that another default changes nothing there.
    async fn keeps_the_default(&self) -> anyhow::Result<()> {
        for cluster in self.list("Cluster").await? {
            let variables = &cluster.data["spec"]["topology"]["variables"];
            let kept = json!({"name": "tier", "value": "small"});
            ensure!(
                variables.as_array().is_some_and(|all| all.contains(&kept)),
                "{}: {variables}",
                cluster.name_any()
            );
        }
        Ok(())
    }

    /// Events of a Cluster say what was done.
    async fn tells(&self, reason: &str, note: &str) -> anyhow::Result<()> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let listed = events.list(&ListParams::default()).await?;
        let about = |event: &&Event| {
            let of = event.regarding.as_ref().and_then(|one| one.kind.as_deref());
            of == Some("Cluster") && event.reason.as_deref() == Some(reason)
        };
        let mut of_clusters = listed.items.iter().filter(about);
        let says = |event: &Event| event.note.as_ref().is_some_and(|said| said.contains(note));
        ensure!(of_clusters.any(says), "no Event {reason} says {note:?}");
        Ok(())
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), "default", &resource(kind))
    }

    async fn list(&self, kind: &str) -> anyhow::Result<Vec<DynamicObject>> {
        Ok(self.api(kind).list(&ListParams::default()).await?.items)
    }

    async fn edit(&self, image: &str) -> anyhow::Result<()> {
        let edit = json!([{
            "op": "replace",
            "path": "/spec/patches/1/definitions/0/jsonPatches/0/value",
            "value": image,
        }]);
        let patch: Patch<DynamicObject> = Patch::Json(serde_json::from_value(edit)?);
        self.api("ClusterClass")
            .patch("edge", &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Waits until all machines of both Clusters have this image, and nothing is there twice or left; the templates of
    /// machines that there are then.
    async fn rolled_out(&self, image: &str) -> anyhow::Result<BTreeSet<String>> {
        eventually(&format!("all machines have {image}"), async || {
            for cluster in self.list("Cluster").await? {
                let said = cluster.data["status"]["conditions"].to_string();
                ensure!(
                    said.contains("ReconcileSucceeded"),
                    "{}: {said}",
                    cluster.name_any()
                );
            }
            let of_clusters = |one: &DynamicObject| !one.owner_references().is_empty();
            let mut templates = self.list("HostTemplate").await?;
            templates.retain(of_clusters);
            let other = templates
                .iter()
                .find(|one| one.data["spec"]["template"]["spec"]["image"] != image);
            ensure!(other.is_none(), "a template has another image");
            for (kind, count) in [
                ("Cloud", 2),
                ("Plane", 2),
                ("MachineDeployment", 2),
                ("MachineHealthCheck", 2),
                ("MachineSet", 2),
            ] {
                let there = self.list(kind).await?.len();
                ensure!(there == count, "{there} {kind}, not {count}");
            }
            Ok(Some(templates.iter().map(ResourceExt::name_any).collect()))
        })
        .await
    }

    /// Beside another controller a hub that runs writes nothing more, and one that starts ends; when it is gone, one goes on.
    async fn gives_way(&mut self) -> anyhow::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "default");
        let name = "controller-leader-election-capi";
        let lease: Lease = serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"holderIdentity": "capi", "leaseDurationSeconds": 3_600, "renewTime": MicroTime(jiff::Timestamp::now())},
        }))?;
        leases.create(&PostParams::default(), &lease).await?;
        self.edit("debian-14").await?;
        let address = self.clusterset.hub()?.admin().await?;
        eventually("the hub gives way", async || {
            let shown = admin::metric_at(address, "tributary_hub_topology_own_fell_back", "").await?;
            Ok((shown == 1.0).then_some(()))
        })
        .await?;
        let before = self.list("HostTemplate").await?.len();
        holds_for(QUIET, async || {
            let there = self.list("HostTemplate").await?.len();
            ensure!(there == before, "{there} templates, where there were {before}");
            Ok(())
        })
        .await?;
        self.clusterset.stop_hub().await?;
        let refused = self
            .start_hub()
            .await
            .err()
            .context("it starts beside another controller")?;
        let said = format!("{refused:#}{}", fs::read_to_string(self.clusterset.log("hub"))?);
        ensure!(
            said.contains("another controller keeps topologies here"),
            "it says: {said}"
        );
        leases.delete(name, &Default::default()).await?;
        self.start_hub().await?;
        self.rolled_out("debian-14").await.map(drop)
    }
}
