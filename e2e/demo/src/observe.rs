//! Watches of each cluster's API, merged into one bounded stream of observations.
//! It passes on what the API server says, with the moment it was heard; it concludes nothing.

use std::{fmt::Debug, sync::Arc, time::Instant};

use futures::StreamExt;
use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client, Resource,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use shared::api::{ServiceExport, ServiceImport};
use tokio::{sync::mpsc, task::JoinSet};

/// Observations that may wait to be looked at; the watches wait when there are more.
const OBSERVATIONS_WAITING_MAX: usize = 1024;
/// Objects of one kind in one cluster that the demo looks at; the rest of a longer list is left out.
const OBJECTS_MAX: usize = 10_000;

/// Something that a cluster's API said.
#[derive(Debug)]
pub(super) struct Observation {
    /// The cluster.
    pub(super) cluster: Arc<str>,
    /// Time of its arrival.
    pub(super) at: Instant,
    /// The change.
    pub(super) change: Change,
}

/// A change, by kind.
#[derive(Debug)]
pub(super) enum Change {
    Namespace(Delta<Namespace>),
    Service(Delta<Service>),
    Export(Delta<ServiceExport>),
    Import(Delta<ServiceImport>),
    Slice(Delta<EndpointSlice>),
}

/// A change of objects of one kind.
#[derive(Debug)]
pub(super) enum Delta<T> {
    /// One is new or different.
    Applied(Box<T>),
    /// One is gone.
    Deleted(Box<T>),
    /// These are all there are.
    Listed(Vec<T>),
}

/// Watches on some clusters; they end when this is dropped.
pub(super) struct Watches {
    observations: mpsc::Receiver<Observation>,
    _tasks: JoinSet<()>,
}

impl Watches {
    /// Begins to watch.
    pub(super) fn start<'a>(clusters: impl IntoIterator<Item = (&'a String, &'a Client)>) -> Self {
        let (sender, observations) = mpsc::channel(OBSERVATIONS_WAITING_MAX);
        let mut tasks = JoinSet::new();
        for (name, client) in clusters {
            let cluster: Arc<str> = name.as_str().into();
            let begin = Begin {
                client,
                cluster,
                sender: &sender,
            };
            begin.watch(&mut tasks, Change::Namespace);
            begin.watch(&mut tasks, Change::Service);
            begin.watch(&mut tasks, Change::Export);
            begin.watch(&mut tasks, Change::Import);
            begin.watch(&mut tasks, Change::Slice);
        }
        Self {
            observations,
            _tasks: tasks,
        }
    }

    /// The next observation; it waits as long as it takes.
    pub(super) async fn next(&mut self) -> anyhow::Result<Observation> {
        let observation = self.observations.recv().await;
        observation.ok_or_else(|| anyhow::anyhow!("the watches have ended"))
    }

    /// An observation that is there already.
    pub(super) fn waiting(&mut self) -> Option<Observation> {
        self.observations.try_recv().ok()
    }
}

/// Inputs of each watch of one cluster.
struct Begin<'a> {
    client: &'a Client,
    cluster: Arc<str>,
    sender: &'a mpsc::Sender<Observation>,
}

impl Begin<'_> {
    fn watch<K>(&self, tasks: &mut JoinSet<()>, wrap: fn(Delta<K>) -> Change)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let api = Api::<K>::all(self.client.clone());
        tasks.spawn(follow(api, self.cluster.clone(), self.sender.clone(), wrap));
    }
}

async fn follow<K>(
    api: Api<K>,
    cluster: Arc<str>,
    sender: mpsc::Sender<Observation>,
    wrap: fn(Delta<K>) -> Change,
) where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
    let mut listing = Vec::new();
    while let Some(event) = events.next().await {
        let delta = match event {
            Ok(watcher::Event::Apply(object)) => Delta::Applied(Box::new(object)),
            Ok(watcher::Event::Delete(object)) => Delta::Deleted(Box::new(object)),
            Ok(watcher::Event::Init) => {
                listing.clear();
                continue;
            }
            Ok(watcher::Event::InitApply(object)) => {
                if listing.len() < OBJECTS_MAX {
                    listing.push(object);
                }
                continue;
            }
            Ok(watcher::Event::InitDone) => Delta::Listed(std::mem::take(&mut listing)),
            // The watcher tries again by itself; until then nothing is known.
            Err(error) => {
                tracing::debug!(%cluster, %error, "a watch is interrupted");
                continue;
            }
        };
        let observation = Observation {
            cluster: cluster.clone(),
            at: Instant::now(),
            change: wrap(delta),
        };
        if sender.send(observation).await.is_err() {
            return;
        }
    }
}
