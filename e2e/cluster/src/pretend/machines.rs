//! Owns: what a provider would report: machines that are replaced one step after another, each taking its time.
//! Never: does anything to what it is told to have.

use std::time::Duration;

use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::time::interval;

use super::resource;
use crate::real::cluster_api::CONTRACT;

/// The label with the name of a MachineSet's deployment.
const DEPLOYMENT: &str = "pretend.example.org/deployment";
/// The label with a cluster's name.
const CLUSTER: &str = "cluster.x-k8s.io/cluster-name";

/// The provider of one management cluster.
#[derive(Clone)]
pub struct Machines {
    client: Client,
}

impl Machines {
    /// The provider behind a client.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Goes a step for every object in each of these intervals, which is how long machines take; ends with an error.
    ///
    /// # Errors
    ///
    /// The API server does not answer.
    pub async fn run(&self, step: Duration) -> anyhow::Result<()> {
        let mut steps = interval(step);
        loop {
            steps.tick().await;
            self.step().await?;
        }
    }

    /// One step of everything: what is wanted is seen, and what was seen is done. Whether anything was to do.
    ///
    /// # Errors
    ///
    /// The API server does not answer.
    pub async fn step(&self) -> anyhow::Result<bool> {
        let mut news = false;
        for kind in ["Plane", "MachineDeployment"] {
            for object in self.all(kind).await? {
                news |= self.go_on(kind, object).await?;
            }
        }
        Ok(news)
    }

    async fn all(&self, kind: &str) -> anyhow::Result<Vec<DynamicObject>> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource(kind));
        Ok(api.list(&ListParams::default()).await?.items)
    }

    fn api(&self, kind: &str, object: &DynamicObject) -> Api<DynamicObject> {
        let namespace = object.namespace().unwrap_or_default();
        Api::namespaced_with(self.client.clone(), &namespace, &resource(kind))
    }

    async fn go_on(&self, kind: &str, object: DynamicObject) -> anyhow::Result<bool> {
        let (spec, status) = (&object.data["spec"], &object.data["status"]);
        let replicas = spec["replicas"].as_i64().unwrap_or(0);
        let wanted = wanted(kind, spec);
        let observed = status["observedGeneration"] == json!(object.metadata.generation);
        if status["done"] == wanted && status["replicas"] == replicas && observed {
            return Ok(false);
        }
        let done = status["seen"] == wanted;
        let reported = json!({"status": {
            "seen": wanted,
            "done": if done { &wanted } else { &status["done"] },
            "observedGeneration": object.metadata.generation,
            "replicas": replicas,
            "readyReplicas": replicas,
            "upToDateReplicas": if done { replicas } else { 0 },
            "version": if done { &spec["version"] } else { &status["version"] },
            "initialization": {"controlPlaneInitialized": true},
        }});
        let api = self.api(kind, &object);
        api.patch_status(
            &object.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&reported),
        )
        .await?;
        if kind == "MachineDeployment" {
            self.machine_sets(&object, done).await?;
        }
        Ok(true)
    }

    /// A set of the new template is there at once, the old ones until all is done.
    async fn machine_sets(&self, deployment: &DynamicObject, done: bool) -> anyhow::Result<()> {
        let api = self.api("MachineSet", deployment);
        let name = deployment.name_any();
        let all = api
            .list(&ListParams::default().labels(&format!("{DEPLOYMENT}={name}")))
            .await?;
        let template = &deployment.data["spec"]["template"];
        if done {
            for set in all
                .items
                .iter()
                .filter(|set| set.data["spec"]["template"] != *template)
            {
                api.delete(&set.name_any(), &DeleteParams::default()).await?;
            }
            return Ok(());
        }
        let generation = deployment.metadata.generation.unwrap_or(0);
        let set = json!({
            "apiVersion": format!("cluster.x-k8s.io/{CONTRACT}"),
            "kind": "MachineSet",
            "metadata": {
                "name": format!("{name}-{generation}"),
                "labels": {DEPLOYMENT: name, CLUSTER: deployment.labels().get(CLUSTER)},
            },
            "spec": {"template": template},
        });
        match api
            .create(&PostParams::default(), &serde_json::from_value(set)?)
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            created => Ok(created.map(drop)?),
        }
    }
}

/// The wanted content of machines.
fn wanted(kind: &str, spec: &Value) -> Value {
    if kind == "Plane" {
        json!([
            spec["version"],
            spec["machineTemplate"]["spec"]["infrastructureRef"]["name"]
        ])
    } else {
        spec["template"]["spec"].clone()
    }
}
