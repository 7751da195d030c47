//! Owns: Clusters of Cluster API that become members without a human step, by a hub with the rights of its chart, and that go
//! when their member has left; the hub ends before it has delivered what it is to deliver.
//! Never: runs Cluster API, or pods: who makes the Clusters here plays the one, and the agent runs beside, with what was
//! installed.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use cluster::{
    charts::Charts,
    clusterset::{
        AgentVariant, Backend, LocalClusterset, Program, admin, eventually::eventually, questions, shop::Shop,
    },
    deploy,
    pretend::{self, resource},
    real::Fleet,
    rights::{Account, ask},
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
    config::Kubeconfig,
};
use libtest_mimic::Trial;
use serde::Deserialize;
use serde_json::{Value, json};
use shared::model::JoinString;
use tributary_e2e::suite::test_with_own_clusters;

use crate::{
    charts::{fresh, topology_rights},
    join,
};

/// It is played in real time, two departures among it.
const LIMIT: Duration = Duration::from_secs(300);
/// Longest pause of a deleted Cluster here.
const DRAIN_LIMIT: &str = "15s";
/// The namespace of the agent, and the Secret that its pods wait for.
const NAMESPACE: &str = "tributary-system";
const JOIN_SECRET: &str = "tributary-agent-join";

pub(crate) fn trials() -> Vec<Trial> {
    vec![test_with_own_clusters(
        "real::enrolled_clusters::a_cluster_joins_when_it_is_made_and_leaves_before_it_goes",
        LIMIT,
        enrolled,
    )]
}

async fn enrolled() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut stage = Stage::set(dir.path()).await?;
    let mut shop = Shop::open(&stage.clusterset).await?;
    let agent = stage.joins().await?;
    shop.export(&stage.clusterset, "guest", "cart", &["10.0.0.7"])
        .await?;
    shop.arrived(&stage.clusterset).await?;
    stage.leaves(&mut shop).await?;
    agent.stop().await?;
    stage.is_prepared_as_a_manifest().await?;
    stage.clusterset.end().await
}

/// A management cluster, which is the member hq as well, another cluster that is to be one, and a hub with the account of the
/// chart.
struct Stage {
    clusterset: LocalClusterset,
    fleet: Arc<Fleet>,
    management: Client,
    guest: Client,
    kubeconfig: String,
    manifests: String,
}

impl Stage {
    async fn set(dir: &Path) -> anyhow::Result<Self> {
        let fleet = Arc::new(fresh(&["management", "guest"]).await?);
        let backend = Backend::Real(fleet.clone());
        let mut clusterset = join::joinable_on(dir, &backend, &["hq", "guest"], &[]).await?;
        clusterset.stop_hub().await?;
        let management = clusterset.cluster("hq")?.client.clone();
        pretend::install(&management).await?;
        deploy::install(&management, &["hub"]).await?;
        let cluster = &fleet.clusters()[0];
        ask::until_all(cluster, Account::Hub, None).await?;
        let account = Account::Hub.in_cluster(cluster)?;
        let manifests = dir.join("agent.yaml");
        let values = format!("--set=join.secretName={JOIN_SECRET},namespace.create=true");
        let flags = ["--skip-tests", &values];
        std::fs::write(&manifests, Charts::new()?.render("agent", &flags)?)?;
        Ok(Self {
            kubeconfig: account.kubeconfig_path().to_string_lossy().into_owned(),
            manifests: manifests.to_string_lossy().into_owned(),
            guest: clusterset.cluster("guest")?.client.clone(),
            clusterset,
            fleet,
            management,
        })
    }

    /// The hub in this mode, with what the chart gives it for that and no more.
    async fn start_hub(&mut self, mode: &str) -> anyhow::Result<()> {
        deploy::install_objects(&self.management, &rights(mode)?).await?;
        let address = format!("https://{}", self.clusterset.hub_address);
        let (kubeconfig, manifests) = (self.kubeconfig.clone(), self.manifests.clone());
        let flags = [
            ["--topology", "observe"],
            ["--kubeconfig", &kubeconfig],
            ["--topology-enrolment", mode],
            ["--topology-agent", &manifests],
            ["--topology-hub-address", &address],
            ["--topology-drain-limit", DRAIN_LIMIT],
        ];
        join::start_hub(&mut self.clusterset, "127.0.0.1:0".parse()?, &flags.concat()).await
    }

    fn clusters(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.management.clone(), "default", &resource("Cluster"))
    }

    /// A Cluster that is said to be the member guest is given what it needs when its control plane answers, and not before.
    async fn joins(&mut self) -> anyhow::Result<Program> {
        self.start_hub("install").await?;
        self.clusterset.start_agent("hq").await?;
        let cluster = cluster("guest", json!({"tributary.dev/member-id": "guest"}));
        deploy::apply(&self.management, &cluster).await?;
        self.waits_for("control_plane").await?;
        ensure!(!self.is_installed().await?, "it is installed");
        self.is_initialized("guest").await?;
        // It answers, but there is no kubeconfig yet: that is said, and costs no token.
        questions::said(
            &self.clusterset.log("hub"),
            "there is no Secret guest-kubeconfig yet",
        )
        .await?;
        ensure!(self.count("join_token_created").await? == 0, "a token was made");
        self.clusterset.kill_hub().await?;
        self.keep_kubeconfig("guest").await?;
        self.start_hub("install").await?;
        let secrets: Api<Secret> = Api::namespaced(self.guest.clone(), NAMESPACE);
        let secret = eventually("the join string is there", async || {
            Ok(secrets.get_opt(JOIN_SECRET).await?)
        });
        let secret = secret.await?;
        ensure!(self.is_installed().await?, "no agent is installed");
        let (join, id) = (text(&secret, "join")?, text(&secret, "clusterId")?);
        ensure!(id == "guest", "it is for {id}");
        let log = std::fs::read_to_string(self.clusterset.log("hub"))?;
        ensure!(!log.contains(&join), "the join string is in the hub's log");
        let agent = self.agent(&join, &id)?;
        questions::listed(&self.clusterset, &["hq", "guest"]).await?;
        self.is_held("guest").await?;
        self.takes_nobody_with_it().await?;
        ensure!(
            self.count("join_token_created").await? == 1,
            "more tokens than one"
        );
        Ok(agent)
    }

    /// A Cluster that says that it is a member which joined otherwise goes alone.
    async fn takes_nobody_with_it(&mut self) -> anyhow::Result<()> {
        let thief = cluster("thief", json!({"tributary.dev/member-id": "hq"}));
        deploy::apply(&self.management, &thief).await?;
        // What is made later is seen later: the hub has looked at the thief by then.
        deploy::apply(&self.management, &cluster("zebra", json!({}))).await?;
        self.waits_for("control_plane").await?;
        for name in ["thief", "zebra"] {
            let there = self.clusters().get(name).await?;
            ensure!(there.finalizers().is_empty(), "{name} is held");
            self.clusters().delete(name, &DeleteParams::default()).await?;
        }
        self.waiting("control_plane", 0.0).await?;
        ensure!(
            self.count("member_leaving").await? == 0,
            "somebody else's member was told to leave"
        );
        Ok(())
    }

    /// A Cluster that is deleted stays, paused, until its member has left.
    async fn leaves(&mut self, shop: &mut Shop) -> anyhow::Result<()> {
        self.clusters().delete("guest", &DeleteParams::default()).await?;
        self.recorded("member_leaving").await?;
        let there = self.clusters().get("guest").await?;
        ensure!(
            there.data["spec"]["paused"] == true,
            "it is not paused: {:?}",
            there.data
        );
        self.recorded("member_left").await?;
        eventually("the Cluster is gone", async || {
            Ok(self.clusters().get_opt("guest").await?.is_none().then_some(()))
        })
        .await?;
        ensure!(
            self.count("member_leaving").await? == 1,
            "it was told to leave more than once"
        );
        shop.forget_cluster("guest");
        shop.arrived_in(&self.clusterset, "hq").await
    }

    /// A hub that may not reach Clusters puts what they need beside them, before they answer; what is applied joins.
    async fn is_prepared_as_a_manifest(&mut self) -> anyhow::Result<()> {
        self.clusterset.stop_hub().await?;
        self.start_hub("manifest").await?;
        deploy::apply(&self.management, &cluster("later", json!({}))).await?;
        let secrets: Api<Secret> = Api::namespaced(self.management.clone(), "default");
        let secret = eventually("the manifests are there", async || {
            Ok(secrets.get_opt("later-tributary-join").await?)
        });
        let secret = secret.await?;
        let there = self.clusters().get("later").await?;
        let uid = there.uid().context("a uid")?;
        ensure!(
            secret.owner_references()[0].uid == uid,
            "it does not go with the Cluster"
        );
        let documents = text(&secret, "tributary-agent.yaml")?;
        let documents = serde_norway::Deserializer::from_str(&documents).map(Value::deserialize);
        let documents: Vec<Value> = documents.collect::<Result<_, _>>()?;
        ensure!(
            documents.iter().any(|one| one["kind"] == "Deployment"),
            "no agent is in it"
        );
        let last = documents.last().context("documents")?;
        let given = |key: &str| last["stringData"][key].as_str().unwrap_or_default();
        ensure!(given("clusterId") == uid, "it is for {}", given("clusterId"));
        JoinString::parse(given("join"))?;
        self.is_held("later").await?;
        self.waits_for("join").await?;
        // It never joined: it goes at once, and nobody joins with what it was given.
        self.clusters().delete("later", &DeleteParams::default()).await?;
        self.recorded("join_token_revoked").await?;
        eventually("the Cluster is gone", async || {
            Ok(self.clusters().get_opt("later").await?.is_none().then_some(()))
        })
        .await
    }

    /// The agent that the installed pod would run.
    fn agent(&self, join: &str, id: &str) -> anyhow::Result<Program> {
        self.clusterset.spawn_agent(&AgentVariant {
            certificate: "joined",
            cluster: "guest",
            log: "joined",
            flags: &["--join", join, "--cluster-id", id],
        })
    }

    /// Returns true if there is an agent that waits for the join string: what was there before has another Deployment.
    async fn is_installed(&self) -> anyhow::Result<bool> {
        let deployments: Api<Deployment> = Api::namespaced(self.guest.clone(), NAMESPACE);
        let there = deployments.get_opt("tributary-agent").await?;
        let pod = there
            .and_then(|there| there.spec)
            .and_then(|spec| spec.template.spec);
        let mut volumes = pod.and_then(|pod| pod.volumes).into_iter().flatten();
        Ok(volumes.any(|volume| volume.name == "join"))
    }

    async fn is_initialized(&self, name: &str) -> anyhow::Result<()> {
        let status = json!({"status": {"initialization": {"controlPlaneInitialized": true}}});
        let patch = Patch::Merge(&status);
        self.clusters()
            .patch_status(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// As Cluster API keeps it, with everything in it.
    async fn keep_kubeconfig(&self, name: &str) -> anyhow::Result<()> {
        let path = self.fleet.clusters()[1].kubeconfig_path();
        let text = std::fs::read_to_string(path)?;
        Kubeconfig::from_yaml(&text)?;
        let secret = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {"name": format!("{name}-kubeconfig"), "namespace": "default"},
            "stringData": {"value": text},
        }))?;
        deploy::apply(&self.management, &secret).await.map(drop)
    }

    async fn is_held(&self, name: &str) -> anyhow::Result<()> {
        eventually("the Cluster does not go before its member left", async || {
            let cluster = self.clusters().get(name).await?;
            let held = cluster
                .finalizers()
                .iter()
                .any(|one| one == "tributary.dev/member");
            Ok((held && cluster.annotations().contains_key("tributary.dev/enrolled")).then_some(()))
        })
        .await
    }

    async fn waits_for(&mut self, what: &str) -> anyhow::Result<()> {
        self.waiting(what, 1.0).await
    }

    async fn waiting(&mut self, what: &str, count: f64) -> anyhow::Result<()> {
        let address = self.clusterset.hub()?.admin().await?;
        let label = format!("for=\"{what}\"");
        eventually(&format!("{count} Clusters wait for {what}"), async || {
            let shown = admin::metric_at(address, "tributary_hub_topology_enrolment_waiting", &label).await?;
            Ok((shown == count).then_some(()))
        })
        .await
    }

    async fn count(&self, kind: &str) -> anyhow::Result<usize> {
        let events = questions::events(&self.clusterset).await?;
        Ok(events.iter().filter(|event| event.kind == kind).count())
    }

    async fn recorded(&self, kind: &str) -> anyhow::Result<()> {
        eventually(&format!("{kind} is recorded"), async || {
            Ok((self.count(kind).await? == 1).then_some(()))
        })
        .await
    }
}

fn text(secret: &Secret, key: &str) -> anyhow::Result<String> {
    let value = secret.data.as_ref().and_then(|data| data.get(key));
    let value = value.with_context(|| format!("the Secret has no {key}"))?;
    Ok(String::from_utf8(value.0.clone())?)
}

fn cluster(name: &str, annotations: Value) -> DynamicObject {
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"topology": {"classRef": {"name": "edge"}, "version": "v1.34.1"}},
    });
    serde_json::from_value(cluster).expect("an object")
}

/// The chart's additional rights for this mode.
fn rights(mode: &str) -> anyhow::Result<Vec<DynamicObject>> {
    topology_rights(&[
        "--set=topology=observe,join.secretName=joining",
        &format!("--set=topologyEnrolment.mode={mode},topologyEnrolment.configMapName=agent"),
        "--set=topologyEnrolment.hubs={https://hub.example.org:8443}",
    ])
}
