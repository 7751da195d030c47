//! Owns: a hub that observes Clusters of Cluster API: what the profile of the member says that one of them is, from before
//! there is Cluster API until the Cluster is gone.
//! Never: runs Cluster API; whoever makes the Clusters here plays it.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use anyhow::ensure;
use cluster::{
    clusterset::{
        Backend, LocalClusterset, admin,
        eventually::{eventually, holds_for},
    },
    deploy,
    rights::{Account, ask},
};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject},
};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use shared::api::{cluster_profile::ClusterProfile, names::PROPERTY_TOPOLOGY_PREFIX};
use tributary_e2e::suite::{SCENARIO_WAIT, test_with_own_clusters};

use crate::charts::{fresh, topology_rights};

/// The value of a variable that no class lists.
const SECRET: &str = "hunter2";
/// Time for which nothing may change while nothing is known.
const QUIET: std::time::Duration = std::time::Duration::from_secs(3);

pub(crate) fn trials() -> Vec<Trial> {
    vec![test_with_own_clusters(
        "real::observed_clusters::a_profile_says_what_the_cluster_of_its_member_says",
        SCENARIO_WAIT,
        observed,
    )]
}

async fn observed() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut stage = Stage::set(dir.path()).await?;
    let real = stage.begins_before_there_is_cluster_api().await?;
    let wanted = stage.appears(&real).await?;
    let wanted = stage.changes(&real, wanted).await?;
    stage.is_claimed_twice(&wanted).await?;
    stage.survives_a_hub_that_may_not_read(&wanted).await?;
    stage.goes_with_the_cluster().await?;
    stage.clusterset.end().await
}

/// Names without their common beginning, and values.
type Told = BTreeMap<String, String>;

/// A management cluster that is the member east as well, and a hub with the account of the chart.
struct Stage {
    clusterset: LocalClusterset,
    client: Client,
    profiles: Api<ClusterProfile>,
    /// The role and its binding that the chart adds for observing.
    rights: Vec<DynamicObject>,
    kubeconfig: String,
}

impl Stage {
    async fn set(dir: &Path) -> anyhow::Result<Self> {
        let fleet = Arc::new(fresh(&["management"]).await?);
        let backend = Backend::Real(fleet.clone());
        let clusterset = LocalClusterset::without_hub(dir, &backend, &["east"], "default").await?;
        let client = clusterset.cluster("east")?.client.clone();
        deploy::install(&client, &["hub"]).await?;
        let cluster = &fleet.clusters()[0];
        ask::until_all(cluster, Account::Hub, None).await?;
        let account = Account::Hub.in_cluster(cluster)?;
        Ok(Self {
            profiles: Api::namespaced(client.clone(), "tributary-default"),
            rights: topology_rights(&["--set=topology=observe"])?,
            kubeconfig: account.kubeconfig_path().to_string_lossy().into_owned(),
            clusterset,
            client,
        })
    }

    async fn start_hub(&mut self) -> anyhow::Result<()> {
        let flags = ["--topology", "observe", "--kubeconfig", &self.kubeconfig];
        self.clusterset.start_hub_with(&flags).await
    }

    /// The member's version, of a hub that serves and has nothing to observe.
    async fn begins_before_there_is_cluster_api(&mut self) -> anyhow::Result<String> {
        self.start_hub().await?;
        self.clusterset.start_agent("east").await?;
        let profiles = &self.profiles;
        let version = eventually("the profile has a version", async || {
            let status = profiles.get_opt("east").await?.and_then(|profile| profile.status);
            Ok(status
                .and_then(|status| status.version)
                .and_then(|version| version.kubernetes))
        });
        let version = version.await?;
        self.metric("topology_failing", 1.0).await?;
        ensure!(self.told().await? == Told::new(), "there is nothing to tell");
        Ok(version)
    }

    /// Properties of the profile once there are a class, a Cluster, and the right to read them.
    async fn appears(&mut self, real: &str) -> anyhow::Result<Told> {
        let definitions = deploy::read_file(&deploy::fixture("cluster-api/definitions.yaml"))?;
        deploy::install_objects(&self.client, &definitions).await?;
        self.apply(class("region")).await?;
        self.apply(cluster("shop", real, "True")).await?;
        deploy::install_objects(&self.client, &self.rights).await?;
        let wanted = [
            ("class", "edge"),
            ("class-namespace", "default"),
            ("reconciled", "True"),
            ("variables.region", "apac"),
            ("version", real),
        ];
        let wanted = wanted.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let wanted = Told::from(wanted);
        self.tells(&wanted).await?;
        self.metric("topology_failing", 0.0).await?;
        self.metric("topology_clusters", 1.0).await?;
        let log = fs::read_to_string(self.clusterset.log("hub"))?;
        let said = log.matches("Clusters are not observed").count();
        ensure!(said == 1, "it was said {said} times:\n{log}");
        Ok(wanted)
    }

    /// An edit of the version is drift, and of the list of the class what it says.
    async fn changes(&mut self, real: &str, mut wanted: Told) -> anyhow::Result<Told> {
        self.apply(cluster("shop", "v1.99.0", "False")).await?;
        let more = [
            ("drift", format!("wants v1.99.0, runs {real}")),
            ("reconciled", "False/ClusterUpgrading".to_owned()),
            ("version", "v1.99.0".to_owned()),
        ];
        wanted.extend(more.map(|(name, value)| (name.to_owned(), value)));
        self.tells(&wanted).await?;
        self.apply(class("sizes")).await?;
        wanted.remove("variables.region");
        wanted.insert("variables.sizes".to_owned(), r#"{"a":1,"b":[2]}"#.to_owned());
        self.tells(&wanted).await?;
        Ok(wanted)
    }

    async fn is_claimed_twice(&mut self, before: &Told) -> anyhow::Result<()> {
        self.apply(cluster("other", "v1.99.0", "True")).await?;
        self.tells(&Told::new()).await?;
        self.metric("topology_ambiguous_members", 1.0).await?;
        self.delete(cluster("other", "", "True")).await?;
        self.tells(before).await
    }

    async fn survives_a_hub_that_may_not_read(&mut self, before: &Told) -> anyhow::Result<()> {
        self.clusterset.stop_hub().await?;
        for right in self.rights.clone() {
            self.delete(right).await?;
        }
        self.start_hub().await?;
        self.metric("topology_failing", 1.0).await?;
        holds_for(QUIET, async || {
            let told = self.told().await?;
            ensure!(told == *before, "it says {told:#?}");
            Ok(())
        })
        .await?;
        deploy::install_objects(&self.client, &self.rights).await?;
        self.metric("topology_failing", 0.0).await?;
        self.tells(before).await
    }

    async fn goes_with_the_cluster(&mut self) -> anyhow::Result<()> {
        self.delete(cluster("shop", "", "True")).await?;
        self.tells(&Told::new()).await
    }

    /// Topology properties of the profile now; never one that no class lists.
    async fn told(&self) -> anyhow::Result<Told> {
        let profile = self.profiles.get("east").await?;
        let whole = serde_json::to_string(&profile)?;
        ensure!(!whole.contains(SECRET), "a secret is told: {whole}");
        let properties = profile.status.into_iter().flat_map(|status| status.properties);
        let told = properties.filter_map(|property| {
            let name = property.name.strip_prefix(PROPERTY_TOPOLOGY_PREFIX)?;
            Some((name.to_owned(), property.value))
        });
        Ok(told.collect())
    }

    async fn tells(&self, wanted: &Told) -> anyhow::Result<()> {
        eventually(&format!("the profile says {wanted:#?}"), async || {
            let told = self.told().await?;
            ensure!(told == *wanted, "it says {told:#?}");
            Ok(Some(()))
        })
        .await
    }

    async fn metric(&mut self, name: &str, wanted: f64) -> anyhow::Result<()> {
        let address = self.clusterset.hub()?.admin().await?;
        eventually(&format!("{name} is {wanted}"), async || {
            let shown = admin::metric_at(address, &format!("tributary_hub_{name}"), "").await?;
            Ok((shown == wanted).then_some(()))
        })
        .await
    }

    async fn apply(&self, object: DynamicObject) -> anyhow::Result<()> {
        deploy::apply(&self.client, &object).await.map(drop)
    }

    async fn delete(&self, object: DynamicObject) -> anyhow::Result<()> {
        let api = deploy::api(&self.client, &object)?;
        api.delete(deploy::name(&object), &DeleteParams::default())
            .await?;
        Ok(())
    }
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).expect("an object")
}

/// A class that publishes one variable.
fn class(published: &str) -> DynamicObject {
    object(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
        "metadata": {
            "name": "edge", "namespace": "default",
            "annotations": {"topology.tributary.dev/published-variables": published},
        },
        "spec": {},
    }))
}

/// A Cluster that is said to be the member east.
fn cluster(name: &str, version: &str, reconciled: &str) -> DynamicObject {
    object(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {
            "name": name, "namespace": "default",
            "annotations": {"tributary.dev/member-id": "east"},
        },
        "spec": {"topology": {
            "classRef": {"name": "edge"},
            "version": version,
            "variables": [
                {"name": "region", "value": "apac"},
                {"name": "sizes", "value": {"b": [2], "a": 1}},
                {"name": "password", "value": SECRET},
            ],
        }},
        "status": {"conditions": [
            {"type": "TopologyReconciled", "status": reconciled, "reason": "ClusterUpgrading"},
        ]},
    }))
}
