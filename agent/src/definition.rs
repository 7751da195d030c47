//! Watches for a new definition of ServiceImport: the metadata of that one object. It reads no schema (the engine
//! does) and works without the right to watch: then it waits.

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
use tokio::time::Instant;
use tracing::debug;

use crate::apply::Definitions;

/// First wait after the watch failed.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// Longest wait after it failed: perhaps it is not permitted, and will not be.
const RETRY_LONGEST: Duration = Duration::from_secs(300);

type Watched = Result<Event<PartialObjectMeta<CustomResourceDefinition>>, watcher::Error>;

/// Has an item for each new definition of ServiceImport.
pub fn of_imports(client: Client) -> Definitions {
    let definition = Definition::of_imports(client);
    let changes = futures::stream::unfold(definition, |mut definition| async {
        definition.changed().await;
        Some(((), definition))
    });
    changes.boxed()
}

/// The watch.
struct Definition {
    events: BoxStream<'static, Watched>,
    /// uid and generation of what was seen last.
    seen: Option<(Option<String>, Option<i64>)>,
    backoff: Backoff,
    /// Nothing is asked before: it failed. It outlives a wait that is given up.
    asked_again_at: Option<Instant>,
}

impl Definition {
    fn of_imports(client: Client) -> Self {
        let only = format!("metadata.name=serviceimports.{MULTICLUSTER_GROUP}");
        let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
        let events = watcher(definitions, watcher::Config::default().fields(&only));
        Self {
            events: events.boxed(),
            seen: None,
            backoff: Backoff::new(RETRY_FIRST, RETRY_LONGEST),
            asked_again_at: None,
        }
    }

    /// Resolves when the definition differs from the one seen before. Nothing is lost when it is given up and called
    /// again.
    async fn changed(&mut self) {
        loop {
            if let Some(at) = self.asked_again_at {
                tokio::time::sleep_until(at).await;
                self.asked_again_at = None;
            }
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
                    self.asked_again_at = Some(Instant::now() + self.backoff.failed(random()));
                }
                None => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    /// A caller that waits for several things drops this wait whenever another one fires.
    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_given_up_goes_on_with_the_next() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        let events = futures::stream::repeat_with(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Watched::Err(watcher::Error::NoResourceVersion)
        });
        let mut definition = Definition {
            events: events.boxed(),
            seen: None,
            backoff: Backoff::new(RETRY_FIRST, RETRY_LONGEST),
            asked_again_at: None,
        };
        for _ in 0..1_000 {
            let given_up = tokio::time::timeout(RETRY_FIRST, definition.changed()).await;
            assert!(given_up.is_err(), "it never changes");
        }
        let asked = asked.load(Ordering::Relaxed);
        // Waits that double from half a second at least take 1,000 s with the sixteenth.
        assert!((2..=16).contains(&asked), "asked {asked} times in 1,000 s");
    }
}
