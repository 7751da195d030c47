//! The stage of every story: a clusterset of three clusters, a namespace of the story's own, and what a user does.
//!
//! * here: start and end;
//! * `act`: what users do to objects; `objects`: objects in a few words;
//! * `seen`: what one cluster's API shows, and waiting until it shows the right thing;
//! * `expect`: what has to hold of every import; `record`: every version of objects, in order;
//! * `quiet`: whether anything is written at all.
//!
//! It knows what Tributary promises, never how it does it: everything is asserted through the clusters' APIs.

pub(super) mod act;
pub(super) mod expect;
pub(super) mod objects;
mod quiet;
pub(super) mod record;
pub(super) mod seen;

use std::time::Duration;

use anyhow::ensure;
use cluster::{
    clusterset::{
        Backend, LocalClusterset,
        shop::{LABEL_STORY, RUNNING, unique_name},
    },
    rights::denied::{Asked, Watched},
};
use futures::future::BoxFuture;
use serde_json::json;
use tempfile::TempDir;

pub(super) use act::Kind;

/// The clusters of every story, which are their cluster ids too.
pub(super) const CLUSTERS: [&str; 3] = ["east", "west", "north"];
/// Time for anything to become true.
pub(super) const EVENTUALLY_WAIT: Duration = Duration::from_secs(30);
/// Interval of looking at it meanwhile.
const EVENTUALLY_POLL: Duration = Duration::from_millis(50);

/// A story being told.
pub(super) struct Story {
    /// Hub, clusters and agents.
    pub(super) clusterset: LocalClusterset,
    /// Its namespace.
    pub(super) namespace: String,
    /// A namespace of every cluster, for what only shows that everything before has had its time.
    fence: String,
}

/// Tells a story on clusters of this kind. The suite clears its namespaces away on shared clusters.
pub(super) async fn tell<F>(backend: Backend, story: F) -> anyhow::Result<()>
where
    F: for<'a> FnOnce(&'a mut Story) -> BoxFuture<'a, anyhow::Result<()>>,
{
    let dir = tempfile::tempdir()?;
    let clusterset = LocalClusterset::without_agents(dir.path(), &backend, &CLUSTERS).await?;
    let watched = match &backend {
        Backend::Real(fleet) => Some(Watched::begin(fleet).await?),
        Backend::Simulated => None,
    };
    let mut told = Story {
        clusterset,
        namespace: unique_name("story"),
        fence: unique_name("fence"),
    };
    let result = story(&mut told).await;
    let ended = told.clusterset.end().await;
    let asked = match (&backend, &watched) {
        (Backend::Real(fleet), Some(watched)) => allowed_all(&watched.asked(fleet).await?),
        _ => Ok(()),
    };
    keep_logs(result.and(ended).and(asked), dir)
}

/// The agents asked something, and nothing that they asked was denied: on clusters of the story's own too.
fn allowed_all(asked: &Asked) -> anyhow::Result<()> {
    ensure!(asked.requests > 0, "the audit logs show no request of an agent");
    asked.nothing_denied()
}

/// A story that failed is better understood with the logs of its programs.
fn keep_logs(result: anyhow::Result<()>, dir: TempDir) -> anyhow::Result<()> {
    result.map_err(|error| {
        let kept = dir.keep();
        error.context(format!("the logs are in {}", kept.display()))
    })
}

impl Story {
    /// Makes the namespace in every cluster and starts every agent.
    pub(super) async fn start(&mut self) -> anyhow::Result<()> {
        for cluster in CLUSTERS {
            self.create_namespace(cluster, &self.namespace).await?;
        }
        self.start_agents().await
    }

    /// Starts every agent.
    pub(super) async fn start_agents(&mut self) -> anyhow::Result<()> {
        for cluster in CLUSTERS {
            self.create_namespace(cluster, &self.fence).await?;
            self.clusterset.start_agent(cluster).await?;
        }
        Ok(())
    }

    /// Creates a namespace that is the story's.
    pub(super) async fn create_namespace(&self, cluster: &str, name: &str) -> anyhow::Result<()> {
        let labels = json!({ LABEL_STORY: RUNNING });
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        self.apply(cluster, namespace).await.map(drop)
    }
}
