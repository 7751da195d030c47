//! The loop of the profile writer: what the state wants, what the watch shows, one action after the other.
//! It ends with the drain and never before: whatever Kubernetes answers, it says so once, waits and tries again.

use std::{collections::BTreeSet, pin::pin, time::Duration};

use futures::{StreamExt, stream};
use kube::{
    Client,
    runtime::{WatchStreamExt, watcher},
};
use shared::{api::cluster_profile::ClusterProfile, api_client::in_served_version, model::ClusterId};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::{
    AccessProviders, ProfileMetrics,
    api::{Performer, Reason},
    default_manager,
    inventory::{Action, Due, Inventory, Outcome},
    wanted,
};
use crate::{clock::Clock, hub::Hub, topology::watch::Observed, view::SharedView, writer::Present};

/// Writes that are under way at once.
const WRITES_AT_ONCE: usize = 8;
/// The state is asked at most this often for what is wanted.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Keeps the ClusterProfiles of one clusterset.
pub struct ProfileWriter {
    performer: Performer,
    present: Present,
    view: SharedView,
    clock: Clock,
    metrics: ProfileMetrics,
    drain: CancellationToken,
    inventory: Inventory,
    /// Observed topologies, if any are observed.
    observed: Option<Observed>,
    /// The reason why Kubernetes refuses our requests at the moment.
    failing: Option<Reason>,
    namespace_ensured: bool,
    /// Members whose object is known to be another writer's.
    told_of: BTreeSet<ClusterId>,
}

impl ProfileWriter {
    /// A writer for the inventory namespace of the clusterset that a hub serves, whose members are reached in these ways.
    pub fn new(
        client: Client,
        (namespace, access): (String, AccessProviders),
        hub: &Hub,
        metrics: ProfileMetrics,
        drain: CancellationToken,
    ) -> Self {
        Self {
            performer: Performer::new(
                in_served_version(client, metrics.versions.clone()),
                namespace,
                hub.clusterset.clone(),
            ),
            present: hub.present.clone(),
            view: hub.view.clone(),
            clock: hub.clock,
            metrics,
            drain,
            inventory: Inventory::new(access, default_manager(&hub.clusterset)),
            observed: None,
            failing: None,
            namespace_ensured: false,
            told_of: BTreeSet::new(),
        }
    }

    /// Profiles that are made name this cluster manager.
    pub fn managed_as(mut self, manager: String) -> Self {
        self.inventory.manage_as(manager);
        self
    }

    /// Profiles say what is observed of their members' topologies, too.
    pub fn observing(mut self, observed: Observed) -> Self {
        self.observed = Some(observed);
        self
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
        let watched =
            watcher(self.performer.profiles().clone(), watcher::Config::default()).default_backoff();
        let mut watched = pin!(watched);
        let mut changed = self.view.subscribe();
        changed.mark_changed();
        let mut look_again = tokio::time::interval(LOOK_INTERVAL);
        look_again.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let wake_at = self.act().await;
            tokio::select! {
                event = watched.next() => match event {
                    Some(Ok(event)) => self.observe(event),
                    Some(Err(error)) => self.failed(format!("ClusterProfiles cannot be watched: {}", advice(&error))),
                    None => return self.drain.cancelled().await,
                },
                // In this order: a change that was waited for must not be lost while something else comes first.
                alive = async {
                    look_again.tick().await;
                    tokio::select! {
                        alive = changed.changed() => alive.is_ok(),
                        () = observed(&mut self.observed) => true,
                    }
                } => {
                    if !alive || !self.look() {
                        return self.drain.cancelled().await;
                    }
                }
                () = wake(self.clock, wake_at) => {}
            }
        }
    }

    /// Asks the state; false: there is none any more.
    fn look(&mut self) -> bool {
        match self.present.read() {
            Ok(present) => {
                let mut wanted = wanted::of(&present.state);
                if let Some(observed) = &mut self.observed {
                    let observation = observed.borrow_and_update();
                    self.inventory.topologies_unknown(observation.is_none());
                    if let Some(observation) = &*observation {
                        wanted = wanted::with_topologies(wanted, observation);
                    }
                }
                self.inventory.want(wanted);
                true
            }
            Err(_gone) => false,
        }
    }

    fn observe(&mut self, event: watcher::Event<ClusterProfile>) {
        if matches!(event, watcher::Event::InitDone) {
            self.succeeded();
        }
        self.inventory.observe(event);
    }

    /// Does what is due; returns when to come back.
    async fn act(&mut self) -> Option<u64> {
        let Due {
            actions,
            wake_at,
            waiting,
        } = self.inventory.due(self.clock.now());
        self.metrics.waiting(waiting);
        self.tell_of_strangers();
        if !actions.is_empty() && !self.namespace_ensured {
            match self.performer.ensure_namespace().await {
                Ok(()) => self.namespace_ensured = true,
                Err(reason) => self.failed(reason),
            }
        }
        let performer = self.performer.clone();
        let mut performed = stream::iter(actions)
            .map(|action| {
                let performer = performer.clone();
                async move {
                    let ended = performer.perform(&action).await;
                    (action, ended)
                }
            })
            .buffer_unordered(WRITES_AT_ONCE);
        let mut any = false;
        while let Some((action, (outcome, reason))) = performed.next().await {
            any = true;
            self.ended(&action, outcome, reason);
        }
        // Their results are taken before the next wait.
        if any { Some(self.clock.now()) } else { wake_at }
    }

    /// Says once of each object that it is not ours.
    fn tell_of_strangers(&mut self) {
        let strangers = self.inventory.not_ours();
        for cluster in strangers.difference(&self.told_of) {
            warn!(
                %cluster,
                "the ClusterProfile of this member was made by somebody else and is not touched: delete it, or \
                 name another --inventory-namespace"
            );
        }
        self.metrics.not_ours(strangers.len());
        if self.told_of != *strangers {
            self.told_of = strangers.clone();
        }
    }

    fn ended(&mut self, action: &Action, outcome: Outcome, reason: Option<Reason>) {
        let cluster: &ClusterId = action.cluster();
        let word = match &outcome {
            Outcome::Written(_) | Outcome::Deleted => "written",
            Outcome::NotOurs(_) => "not_ours",
            Outcome::Failed { .. } => "failed",
        };
        self.metrics.wrote(action.word(), word);
        debug!(%cluster, action = action.word(), outcome = word, "ClusterProfile");
        match (&outcome, reason) {
            (_, Some(reason)) => self.failed(reason),
            (Outcome::NotOurs(_), None) => {
                warn!(%cluster, "somebody else made this ClusterProfile at the same moment: ours was taken back");
            }
            (_, None) => self.succeeded(),
        }
        self.inventory.done(cluster, outcome, self.clock.now());
    }

    /// Says it once; what follows is the same trouble.
    fn failed(&mut self, reason: Reason) {
        self.metrics.failing(true);
        self.namespace_ensured = false;
        match &self.failing {
            None => warn!(
                "ClusterProfiles are not kept up to date in Kubernetes (they are in State/Get): {reason}"
            ),
            Some(_) => debug!("still: {reason}"),
        }
        self.failing = Some(reason);
    }

    fn succeeded(&mut self) {
        self.metrics.failing(false);
        if self.failing.take().is_some() {
            info!("ClusterProfiles are kept up to date in Kubernetes again");
        }
    }
}

/// Returns when something else was observed of topologies, or never.
async fn observed(observed: &mut Option<Observed>) {
    let seen = match observed {
        Some(observed) => observed.changed().await.is_ok(),
        None => false,
    };
    if !seen {
        std::future::pending().await
    }
}

/// Returns at a monotonic time, or never.
async fn wake(clock: Clock, at: Option<u64>) {
    match at {
        Some(at) => tokio::time::sleep_until(clock.instant(at)).await,
        None => std::future::pending().await,
    }
}

/// The next step for a failing watch.
fn advice(error: &watcher::Error) -> String {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => Some(status),
        watcher::Error::WatchError(status) => Some(status),
        _ => None,
    };
    let error = status.map_or_else(|| error.to_string(), |status| status.message.clone());
    match status.map(|status| status.code) {
        Some(404) => format!("{error}: install the CRD, kubectl apply -f deploy/manifests/crds"),
        Some(403) => format!("{error}: give the hub its rights, kubectl apply -f deploy/manifests/hub"),
        _ => error,
    }
}
