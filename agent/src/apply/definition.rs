//! Whether ServiceImport got another definition: a watch of the metadata of that one object.
//! It reads nothing of what the definition says (`served_fields` does), and needs no right: without one it waits.

use std::time::Duration;

use futures::{StreamExt, stream::BoxStream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    core::PartialObjectMeta,
    runtime::watcher::{self, Event, watcher},
};
use shared::{
    api::names::MULTICLUSTER_GROUP,
    process::{Backoff, random},
};
use tracing::debug;

/// First wait after the watch failed.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// Longest wait after it failed: perhaps it is not permitted, and will not be.
const RETRY_LONGEST: Duration = Duration::from_secs(300);

type Watched = Result<Event<PartialObjectMeta<CustomResourceDefinition>>, watcher::Error>;

/// The watch.
pub(super) struct Definition {
    events: BoxStream<'static, Watched>,
    /// uid and generation of what was seen last.
    seen: Option<(Option<String>, Option<i64>)>,
    backoff: Backoff,
}

impl Definition {
    /// Watches the definition of ServiceImport.
    pub(super) fn of_imports(client: Client) -> Self {
        let only = format!("metadata.name=serviceimports.{MULTICLUSTER_GROUP}");
        let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
        let events = watcher(definitions, watcher::Config::default().fields(&only));
        Self {
            events: events.boxed(),
            seen: None,
            backoff: Backoff::new(RETRY_FIRST, RETRY_LONGEST),
        }
    }

    /// Resolves when it is another one than was seen before.
    pub(super) async fn changed(&mut self) {
        loop {
            match self.events.next().await {
                Some(Ok(Event::InitApply(object) | Event::Apply(object))) => {
                    self.backoff.succeeded();
                    let now = (object.metadata.uid, object.metadata.generation);
                    let before = self.seen.replace(now);
                    if before.is_some() && before != self.seen {
                        return;
                    }
                }
                Some(Ok(Event::Init | Event::InitDone | Event::Delete(_))) => {}
                Some(Err(error)) => {
                    debug!(%error, "cannot watch the definition of ServiceImport: its schema is looked at now and then");
                    tokio::time::sleep(self.backoff.failed(random())).await;
                }
                None => std::future::pending().await,
            }
        }
    }
}
