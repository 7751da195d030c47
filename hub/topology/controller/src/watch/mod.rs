//! Owns: watching Clusters and ClusterClasses in the hub's own cluster, and handing over what follows from them.
//! Never: writes there, ends before the drain, or withdraws an observation because it cannot read.
//!
//! * `served.rs`: which version is read. `told.rs`: the reason of a failure, for people. `metrics.rs`: what is counted.

mod metrics;
pub(crate) mod served;
pub(crate) mod told;

use std::{collections::BTreeSet, pin::pin, sync::Arc, time::Duration};

use futures::{StreamExt, stream::BoxStream};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject},
    core::PartialObjectMeta,
    runtime::watcher::{self, Event, watcher},
};
use shared::{
    api::names::{ANNOTATION_MEMBER_ID, ANNOTATION_PUBLISHED_VARIABLES},
    model::ClusterId,
    process::{Backoff, random},
};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, sleep},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use self::told::told;
use super::{
    model::Key,
    observe::{CLASSES_MAX, CLUSTERS_MAX, Observation, PublishedVariables, Seen, Watched, cluster_facts},
};

pub use metrics::TopologyMetrics;

/// The observation; none before everything was listed once.
pub type Observed = watch::Receiver<Option<Arc<Observation>>>;

/// Objects in one answer of a listing.
const PAGE: u32 = 100;
/// The settings of the chart that give the rights to watch.
const RIGHTS: &str = "topology=observe";
/// Shortest interval of handing over changes.
const HAND_OVER_INTERVAL: Duration = Duration::from_millis(500);
/// Waits after Clusters could not be read.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

type Clusters = BoxStream<'static, Result<Event<DynamicObject>, watcher::Error>>;

/// Watches for one clusterset.
pub struct Observer {
    client: Client,
    metrics: TopologyMetrics,
    drain: CancellationToken,
    watched: Watched,
    observed: watch::Sender<Option<Arc<Observation>>>,
    backoff: Backoff,
    /// True if a message said that Clusters cannot be read.
    failing: bool,
    /// True if a message said that there are too many.
    told_full: bool,
    /// Members for which a message said that two Clusters name them.
    told_of: BTreeSet<ClusterId>,
}

impl Observer {
    /// An observer, and where what it sees arrives.
    pub fn new(client: Client, metrics: TopologyMetrics, drain: CancellationToken) -> (Self, Observed) {
        let (observed, arrives) = watch::channel(None);
        let observer = Self {
            client,
            metrics,
            drain,
            watched: Watched::default(),
            observed,
            backoff: RETRY,
            failing: false,
            told_full: false,
            told_of: BTreeSet::new(),
        };
        (observer, arrives)
    }

    /// Runs until the drain begins.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let drain = self.drain.clone();
        tokio::select! {
            () = drain.cancelled() => {}
            () = self.keep() => {}
        }
        Ok(())
    }

    async fn keep(&mut self) {
        loop {
            let reason = self.watch().await;
            self.failed(&reason);
            sleep(self.backoff.failed(random())).await;
        }
    }

    /// Watches until it cannot; returns why. Clusters are listed after the classes that say what is read of them.
    async fn watch(&mut self) -> String {
        let (cluster, class) = match served::kinds(&self.client).await {
            Ok(kinds) => kinds,
            Err(reason) => return reason,
        };
        let paged = watcher::Config::default().page_size(PAGE);
        // Their metadata only: a class is large.
        let classes: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(self.client.clone(), &class);
        let mut classes = pin!(watcher(classes, paged.clone()));
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &cluster);
        let listed_anew = || -> Clusters { watcher(api.clone(), paged.clone()).boxed() };
        let mut clusters: Option<Clusters> = None;
        let mut hand_over = interval(HAND_OVER_INTERVAL);
        hand_over.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut changed = false;
        loop {
            tokio::select! {
                event = classes.next() => match event {
                    Some(Ok(event)) => {
                        let complete = matches!(event, Event::InitDone);
                        let more = self.watched.see_class(seen(event, published));
                        if more || (complete && clusters.is_none()) {
                            clusters = Some(listed_anew());
                        }
                        changed = true;
                    }
                    Some(Err(error)) => return format!("ClusterClasses cannot be watched: {}", told(&error, RIGHTS)),
                    None => return "the watch of ClusterClasses ended".to_owned(),
                },
                event = next(&mut clusters) => match event {
                    Some(Ok(event)) => {
                        if matches!(event, Event::InitDone) {
                            self.succeeded(&cluster);
                        }
                        self.see_cluster(&cluster, event);
                        changed = true;
                    }
                    Some(Err(error)) => return format!("Clusters cannot be watched: {}", told(&error, RIGHTS)),
                    None => return "the watch of Clusters ended".to_owned(),
                },
                _ = hand_over.tick(), if changed => {
                    changed = false;
                    self.hand_over();
                }
            }
        }
    }

    fn see_cluster(&mut self, kind: &ApiResource, event: Event<DynamicObject>) {
        let read = |object: &DynamicObject| {
            let mut document = serde_json::to_value(object).unwrap_or_default();
            document["apiVersion"] = kind.api_version.as_str().into();
            document["kind"] = kind.kind.as_str().into();
            cluster_facts(&document, |class| self.watched.published(class)).map(|(_, facts)| facts)
        };
        match seen(event, read) {
            Seen::ListingBegins => self.watched.see_cluster(Seen::ListingBegins),
            Seen::Listed(key, Some(facts)) => self.watched.see_cluster(Seen::Listed(key, facts)),
            Seen::Changed(key, Some(facts)) => self.watched.see_cluster(Seen::Changed(key, facts)),
            Seen::ListingEnds => self.watched.see_cluster(Seen::ListingEnds),
            Seen::Gone(key) => self.watched.see_cluster(Seen::Gone(key)),
            Seen::Listed(_, None) | Seen::Changed(_, None) => {}
        }
    }

    fn hand_over(&mut self) {
        let Some(observation) = self.watched.observation() else {
            return;
        };
        self.metrics
            .observed(observation.clusters(), observation.ambiguous().len());
        for member in observation.ambiguous().difference(&self.told_of) {
            warn!(
                %member,
                "more than one Cluster is said to be this member: none of them counts; take the annotation \
                 {ANNOTATION_MEMBER_ID} from those that are not"
            );
        }
        self.told_of.clone_from(observation.ambiguous());
        if self.watched.is_full() && !self.told_full {
            self.told_full = true;
            warn!(
                "of more than {CLUSTERS_MAX} Clusters, or {CLASSES_MAX} ClusterClasses that publish variables, nothing \
                 is told"
            );
        }
        let observation = Some(Arc::new(observation));
        self.observed.send_if_modified(|held| {
            let differs = *held != observation;
            if differs {
                *held = observation;
            }
            differs
        });
    }

    /// Says it once; what follows is the same trouble.
    fn failed(&mut self, reason: &str) {
        self.metrics.failing(true);
        if self.failing {
            debug!("still: {reason}");
        } else {
            warn!("Clusters are not observed, ClusterProfiles keep what they say of topologies: {reason}");
        }
        self.failing = true;
    }

    fn succeeded(&mut self, kind: &ApiResource) {
        self.backoff.succeeded();
        self.metrics.failing(false);
        if self.failing || self.observed.borrow().is_none() {
            info!(version = %kind.api_version, "Clusters are observed");
        }
        self.failing = false;
    }
}

/// The next event, where there is a watch.
async fn next(clusters: &mut Option<Clusters>) -> Option<Result<Event<DynamicObject>, watcher::Error>> {
    match clusters {
        Some(clusters) => clusters.next().await,
        None => std::future::pending().await,
    }
}

/// An event, with of its object what `read` takes.
fn seen<K: ResourceExt, T>(event: Event<K>, read: impl FnOnce(&K) -> T) -> Seen<T> {
    let key = |object: &K| -> Key { (object.namespace().unwrap_or_default(), object.name_any()) };
    match event {
        Event::Init => Seen::ListingBegins,
        Event::InitApply(object) => Seen::Listed(key(&object), read(&object)),
        Event::InitDone => Seen::ListingEnds,
        Event::Apply(object) => Seen::Changed(key(&object), read(&object)),
        Event::Delete(object) => Seen::Gone(key(&object)),
    }
}

fn published(class: &PartialObjectMeta<DynamicObject>) -> PublishedVariables {
    let annotation = class.annotations().get(ANNOTATION_PUBLISHED_VARIABLES);
    PublishedVariables::read(annotation.map_or("", String::as_str))
}
