//! Every version of a story's objects in one cluster, in the order in which the API server wrote them.
//! Kinds are watched apart; resourceVersions, which one store counts for all kinds, put them in order.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt};
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::{task::JoinSet, time::Instant};

use super::{EVENTUALLY_POLL, EVENTUALLY_WAIT, Kind, Story};

/// Longest time that a story is recorded, in seconds.
const WATCH_SECONDS: u32 = 290;

/// One write.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(crate) revision: u64,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) deleted: bool,
    pub(crate) object: Value,
}

/// Records until it is dropped.
pub(crate) struct Recorder {
    versions: Arc<Mutex<Vec<Version>>>,
    _watching: JoinSet<()>,
}

impl Story {
    /// Records what happens to these kinds in the story's namespace of a cluster, from now on.
    pub(crate) async fn record(&self, cluster: &str, kinds: &[Kind]) -> anyhow::Result<Recorder> {
        let versions = Arc::new(Mutex::new(Vec::new()));
        let mut watching = JoinSet::new();
        for &kind in kinds {
            let api = self.api(cluster, kind)?;
            let listed = api.list(&ListParams::default()).await?;
            let from = listed.metadata.resource_version.context("a list has a version")?;
            let params = WatchParams::default().timeout(WATCH_SECONDS);
            let mut events = api.watch(&params, &from).await?.boxed();
            let versions = versions.clone();
            watching.spawn(async move {
                // A watch that breaks shows as versions that never come.
                while let Ok(Some(event)) = events.try_next().await {
                    let (object, deleted) = match event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                        WatchEvent::Deleted(object) => (object, true),
                        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
                    };
                    if let Some(version) = version(kind, &object, deleted) {
                        let mut versions = versions.lock().unwrap_or_else(PoisonError::into_inner);
                        versions.push(version);
                    }
                }
            });
        }
        Ok(Recorder {
            versions,
            _watching: watching,
        })
    }
}

fn version(kind: Kind, object: &DynamicObject, deleted: bool) -> Option<Version> {
    Some(Version {
        revision: object.metadata.resource_version.as_deref()?.parse().ok()?,
        kind,
        name: object.metadata.name.clone()?,
        deleted,
        object: serde_json::to_value(object).ok()?,
    })
}

impl Recorder {
    /// Everything recorded, in order, once `enough` holds of it.
    pub(crate) async fn versions(&self, enough: impl Fn(&[Version]) -> bool) -> anyhow::Result<Vec<Version>> {
        let deadline = Instant::now() + EVENTUALLY_WAIT;
        let mut poll = tokio::time::interval(EVENTUALLY_POLL);
        loop {
            poll.tick().await;
            let mut versions = self
                .versions
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            versions.sort_by_key(|version| version.revision);
            if enough(&versions) {
                return Ok(versions);
            }
            ensure!(Instant::now() < deadline, "recorded only {versions:?}");
        }
    }
}
