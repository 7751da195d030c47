//! Owns: that a Cluster with a topology becomes a member without a human step, and that its member leaves before it goes.
//! Never: ends a membership of a Cluster that nobody deleted, puts a token into a template or a log, or keeps a kubeconfig.
//!
//! * `decide.rs`: what is done for one Cluster. `standing.rs`: the state of its membership. Both pure. `seal.rs`: the
//!   proof that it is the member that it names.
//! * `manifests.rs`: what is installed into it. `kubeconfig.rs`: what of its kubeconfig is taken. `objects.rs`: what is
//!   applied beside it. `settings.rs`: what an operator said.
//! * `server.rs`: what is asked of API servers. `deliver.rs`: one Cluster is given what it needs. `metrics.rs`: what is
//!   counted.

pub mod decide;
mod deliver;
mod kubeconfig;
pub mod manifests;
mod metrics;
pub mod objects;
pub mod seal;
mod server;
mod settings;
pub mod standing;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use kube::Client;
use shared::{
    model::{ClusterId, UnixMillis},
    process::{Backoff, random},
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use self::{
    decide::{Act, Awaited, act},
    deliver::{Deliverer, Way},
    objects::Said,
    server::Management,
    standing::{OPERATOR, Standing, standing},
};
use super::{model::Key, observe::Life, watch::Observed};
use fold::{Command, Departure};
use hub_core::{clock::Clock, writer::Present};

pub use self::{
    metrics::EnrolmentMetrics,
    settings::{Asked, Settings},
};

/// Has decisions about members recorded, as an operator's are.
pub trait Decides: Send + Sync {
    /// Carries out a decision; done when it is durable.
    ///
    /// # Errors
    ///
    /// It is not allowed as things stand, or the hub is ending.
    fn decide(&self, command: Command) -> BoxFuture<'_, anyhow::Result<()>>;
}

/// From one look to the next: memberships are not watched.
const PACE: Duration = Duration::from_secs(2);
/// Clusters to which something is delivered at once.
const AT_ONCE: usize = 8;
/// Time after which a write to a Cluster that is not seen in it is repeated.
const SEEN_WITHIN: Duration = Duration::from_secs(30);
/// A look does nothing more after so much has failed.
const FAILURES_OF_A_LOOK: usize = 3;
/// Most bytes that are kept and logged of why something failed: a Cluster's own API server may have written it.
const WHY_BYTES_MAX: usize = 1024;
/// Waits after what a Cluster needs could not be done.
const RETRY: Backoff = Backoff::new(Duration::from_secs(5), Duration::from_secs(600));

/// Has the Clusters of the hub's own Kubernetes cluster join and leave.
pub struct Enroller {
    observed: Observed,
    present: Present,
    clock: Clock,
    deliverer: Arc<Deliverer>,
    metrics: EnrolmentMetrics,
    drain: CancellationToken,
    clusters: BTreeMap<Key, Progress>,
    /// Clusters that are being given what they need.
    delivering: JoinSet<(Way, anyhow::Result<String>)>,
    busy: BTreeSet<Key>,
}

/// Attempts for a Cluster.
struct Progress {
    /// Its uid, and the name of the token that it was given, which may not be seen in it yet.
    given: Option<(String, String)>,
    /// The life on which something was written to it: nothing is again before another one is seen, or for a while.
    wrote: Option<(Arc<Life>, Instant)>,
    backoff: Backoff,
    not_before: Option<Instant>,
    /// The last message about it.
    told: String,
}

impl Enroller {
    /// One for what is observed.
    pub fn new(
        client: Client,
        (observed, present): (Observed, Present),
        (decisions, clock): (Arc<dyn Decides>, Clock),
        settings: Settings,
        metrics: EnrolmentMetrics,
        drain: CancellationToken,
    ) -> Self {
        Self {
            observed,
            present,
            clock,
            deliverer: Arc::new(Deliverer {
                management: Management::new(client),
                decisions,
                clock,
                settings,
            }),
            metrics,
            drain,
            clusters: BTreeMap::new(),
            delivering: JoinSet::new(),
            busy: BTreeSet::new(),
        }
    }

    /// Runs until the drain begins.
    ///
    /// # Errors
    ///
    /// None; the hub's end is no error.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let drain = self.drain.clone();
        loop {
            tokio::select! {
                () = drain.cancelled() => return Ok(()),
                () = self.look() => {}
            }
            tokio::select! {
                () = drain.cancelled() => return Ok(()),
                Some(delivered) = self.delivering.join_next() => {
                    // One that panicked has its name in `busy` and is not tried again; the runtime reports the panic.
                    if let Ok((way, outcome)) = delivered {
                        self.delivered(&way, outcome);
                    }
                }
                changed = self.observed.changed() => {
                    // Its end is the observer's, and the hub's with it.
                    if changed.is_err() {
                        sleep(PACE).await;
                    }
                }
                () = sleep(PACE) => {}
            }
        }
    }

    /// Looks at every Cluster once.
    async fn look(&mut self) {
        let Some(observation) = self.observed.borrow_and_update().clone() else {
            return;
        };
        let mut awaited: BTreeMap<Awaited, usize> = BTreeMap::new();
        let mut there = BTreeSet::new();
        let mut failed = 0;
        for (key, id, life) in observation.lives() {
            there.insert(key.clone());
            let Ok(present) = self.present.read() else {
                return;
            };
            let (now, settings) = (self.clock.wall(), &self.deliverer.settings);
            let standing = id.map_or(Standing::Nobodys, |id| standing(&present.state, id, now));
            drop(present);
            let life = &self.known(key, life);
            let proves = |id| settings.seals.proves(&life.uid, id, life.seal.as_deref());
            let act = act(life, &standing, id.is_some_and(proves), settings.terms(), now);
            match act {
                Act::Rest => self.rests(key),
                Act::Wait(reason) => {
                    *awaited.entry(reason).or_default() += 1;
                    self.rests(key);
                }
                // If nothing answers, each attempt is long.
                act if failed < FAILURES_OF_A_LOOK && self.is_due(key, life) => {
                    let done = self.perform(key, id, life, act).await;
                    failed += usize::from(!done);
                }
                _ => {}
            }
        }
        self.clusters.retain(|key, _| there.contains(key));
        let failing = self
            .clusters
            .values()
            .filter(|one| one.not_before.is_some())
            .count();
        self.metrics.looked(&awaited, failing);
    }

    /// Its life as far as it is known: what was written to it a moment ago may not be seen yet.
    fn known(&self, key: &Key, life: &Arc<Life>) -> Arc<Life> {
        let given = self.clusters.get(key).and_then(|one| one.given.as_ref());
        match given {
            Some((uid, given)) if *uid == life.uid && life.enrolled.as_ref() != Some(given) => {
                Arc::new(Life {
                    enrolled: Some(given.clone()),
                    ..Life::clone(life)
                })
            }
            _ => life.clone(),
        }
    }

    fn delivered(&mut self, way: &Way, outcome: anyhow::Result<String>) {
        self.busy.remove(&way.key);
        let given = |token| (way.life.uid.clone(), token);
        let outcome = outcome.map(|token| self.progress(&way.key).given = Some(given(token)));
        self.came_of(&way.key, outcome);
    }

    fn is_due(&self, key: &Key, life: &Arc<Life>) -> bool {
        if self.busy.contains(key) {
            return false;
        }
        let Some(progress) = self.clusters.get(key) else {
            return true;
        };
        let (now, wrote) = (Instant::now(), &progress.wrote);
        let unseen = |(before, at): &(Arc<Life>, Instant)| before == life && now < *at + SEEN_WITHIN;
        !wrote.as_ref().is_some_and(unseen) && progress.not_before.is_none_or(|at| now >= at)
    }

    /// True: it was done, or begun.
    async fn perform(&mut self, key: &Key, id: Option<&ClusterId>, life: &Arc<Life>, act: Act) -> bool {
        if let (Act::Deliver { revoked }, Some(id)) = (&act, id) {
            if self.busy.len() < AT_ONCE {
                let (deliverer, way) = (self.deliverer.clone(), Way::new(key, id, life));
                let revoked = revoked.clone();
                self.busy.insert(key.clone());
                self.delivering.spawn(async move {
                    let outcome = deliverer.deliver(&way, revoked).await;
                    (way, outcome)
                });
            }
            return true;
        }
        let writes = !matches!(act, Act::Leave { .. });
        let outcome = self.carry_out(key, id, life, act).await;
        let done = outcome.is_ok();
        if writes && done {
            self.progress(key).wrote = Some((life.clone(), Instant::now()));
        }
        self.came_of(key, outcome);
        done
    }

    async fn carry_out(
        &self,
        key: &Key,
        id: Option<&ClusterId>,
        life: &Life,
        act: Act,
    ) -> anyhow::Result<()> {
        let deliverer = &self.deliverer;
        let mut said = Said {
            enrolled: life.enrolled.as_deref(),
            seal: life.seal.as_deref(),
            held: true,
            paused: false,
        };
        let seal = id.map(|id| deliverer.settings.seals.seal(&life.uid, id));
        match &act {
            Act::Rest | Act::Wait(_) | Act::Deliver { .. } => return Ok(()),
            Act::Leave { after_millis } => {
                return match id {
                    Some(id) => self.leave(key, id, *after_millis).await,
                    None => Ok(()),
                };
            }
            Act::Hold { enrolled } => (said.enrolled, said.seal) = (Some(enrolled.as_str()), seal.as_deref()),
            Act::Pause => said.paused = true,
            Act::Release { revoked } => {
                deliverer.revoke(revoked).await?;
                said.held = false;
            }
        }
        if !life.held && !said.held {
            return Ok(());
        }
        deliverer.say(key, life, &said).await?;
        debug!(cluster = %name(key), "written to the Cluster");
        Ok(())
    }

    async fn leave(&self, key: &Key, id: &ClusterId, after_millis: u64) -> anyhow::Result<()> {
        info!(cluster = %name(key), member = %id, after_millis, "a Cluster is deleted: its member leaves first");
        let departure = Departure::Ordered {
            operator: OPERATOR.into(),
            at: self.clock.wall(),
            after_millis,
            evicts: false,
        };
        let cluster = id.clone();
        let command = Command::Depart { cluster, departure };
        self.deliverer.decisions.decide(command).await
    }

    fn progress(&mut self, key: &Key) -> &mut Progress {
        self.clusters.entry(key.clone()).or_insert_with(|| Progress {
            given: None,
            wrote: None,
            backoff: RETRY,
            not_before: None,
            told: String::new(),
        })
    }

    /// Nothing is to be done for it: what failed before is no trouble any more.
    fn rests(&mut self, key: &Key) {
        if let Some(progress) = self.clusters.get_mut(key) {
            progress.rests();
        }
    }

    /// Says a trouble once; what follows is the same one.
    fn came_of(&mut self, key: &Key, outcome: anyhow::Result<()>) {
        let progress = self.progress(key);
        match outcome {
            Ok(()) => progress.rests(),
            Err(error) => {
                let mut why = format!("{error:#}");
                why.truncate(why.floor_char_boundary(WHY_BYTES_MAX));
                why.shrink_to_fit();
                if progress.told != why {
                    warn!(cluster = %name(key), %why, "a Cluster does not become a member, or does not leave; tried again");
                }
                progress.told = why;
                progress.wrote = None;
                progress.not_before = Some(Instant::now() + progress.backoff.failed(random()));
            }
        }
    }
}

impl Progress {
    fn rests(&mut self) {
        self.backoff.succeeded();
        self.not_before = None;
        self.told.clear();
    }
}

fn name((namespace, name): &Key) -> String {
    format!("{namespace}/{name}")
}

/// Time at which a token ends that is made now.
fn expiry(now: UnixMillis) -> UnixMillis {
    UnixMillis(now.0.saturating_add(decide::TOKEN_MILLIS))
}
