//! Owns: one look at all Clusters: what is planned is recorded, then written, Cluster by Cluster.
//! Never: writes what was not recorded before, or while another controller keeps topologies.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use shared::{
    model::UnixMillis,
    process::{host_name, random},
};
use tokio_util::sync::CancellationToken;

use super::{
    api_server::REQUEST_TIMEOUT,
    asked::Asked,
    journal::{Journal, Unrecorded},
    requests,
    rules::{
        condition::{Came, condition},
        event::{ClusterName, Event},
        ledger::About,
        rival::rival,
        seen::{SeenCluster, clusters},
        waves::{Turn, Waves, turns},
    },
    server::Server,
};
use crate::desired::{
    change::Plan,
    objects::Objects,
    offline::{Planned, plans_of_live},
};

/// First wait after the server refused something of a Cluster, milliseconds; it doubles.
const RETRY_MILLIS: u64 = 5_000;
/// Longest one.
const RETRY_MILLIS_MAX: u64 = 600_000;
/// Why a write is not begun once the Lease is lost.
const OTHER_MAY_WRITE: &str = "another hub may write now";

/// Keeps the topologies of one API server.
pub struct Engine<S> {
    server: S,
    journal: Journal,
    waves: Waves,
    asked: Asked,
    retries: BTreeMap<ClusterName, Retry>,
    given: BTreeMap<ClusterName, defaults::Given>,
    /// Longest time for one write.
    patience: Duration,
    /// The sign of another controller, once it was seen.
    fell_back: Option<String>,
    /// Once it is cancelled, no further Cluster is begun.
    ending: CancellationToken,
    /// Once it is cancelled, no further request is begun: another process may write now.
    lost: CancellationToken,
}

/// The next attempt for a Cluster that failed.
#[derive(Debug, Clone, Copy)]
struct Retry {
    at: u64,
    wait: u64,
}

/// The outcome of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Looked {
    /// Another controller keeps topologies: nothing is written, now and later.
    FellBack(String),
    /// All was looked at.
    Done(Count),
}

/// Numbers of Clusters by state, and of writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// As they should be.
    pub settled: usize,
    /// On their way there.
    pub working: usize,
    /// Waiting for others.
    pub held: usize,
    /// Clusters that cannot be planned, or are refused.
    pub failing: usize,
    /// Left alone: paused, being deleted, or another's.
    pub resting: usize,
    /// Objects written or deleted.
    pub writes: usize,
}

/// Why a look came to no end.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The server does not say what there is; nothing was written.
    #[error("topologies cannot be read: {0:#}")]
    Unread(anyhow::Error),
    /// Nothing can be recorded, so nothing can be written.
    #[error(transparent)]
    Unrecorded(anyhow::Error),
}

impl From<Unrecorded> for LookError {
    fn from(error: Unrecorded) -> Self {
        Self::Unrecorded(error.into())
    }
}

/// The state of a Cluster during a look.
#[derive(Clone, Copy)]
struct Looking<'l, 'a> {
    name: &'l ClusterName,
    cluster: &'l SeenCluster<'a>,
    objects: &'l Objects<'a>,
    now: UnixMillis,
}

/// The outcome for a Cluster.
enum Became {
    Settled,
    Working(usize),
    Failed(String),
}

impl<S: Server> Engine<S> {
    /// An engine that continues from its records.
    pub fn new(server: S, journal: Journal, waves: Waves) -> Self {
        Self {
            server,
            journal,
            waves,
            asked: Asked::default(),
            retries: BTreeMap::new(),
            given: BTreeMap::new(),
            patience: REQUEST_TIMEOUT,
            fell_back: None,
            ending: CancellationToken::new(),
            lost: CancellationToken::new(),
        }
    }

    /// The same, but a look ends before the next Cluster once this is cancelled.
    pub fn ending_with(mut self, ending: CancellationToken) -> Self {
        self.ending = ending;
        self
    }

    /// Begins no further request once this is cancelled.
    pub fn write_until(&mut self, lost: CancellationToken) {
        self.lost = lost;
    }

    /// The name of this hub's log in the Lease of the topologies' keeper: the same at every start with this log.
    ///
    /// # Errors
    ///
    /// Nothing can be recorded.
    pub async fn log_name(&mut self, now: UnixMillis) -> anyhow::Result<String> {
        if let Some(holder) = self.journal.ledger().holder() {
            return Ok(holder.to_owned());
        }
        let holder = format!("{}_{:032x}", host_name(), random::<u128>());
        let named = Event::Named {
            holder: holder.clone(),
        };
        self.record(named, now).await?;
        Ok(holder)
    }

    /// Returns true once another controller was seen: nothing is written then until the next start.
    pub fn has_fallen_back(&self) -> bool {
        self.fell_back.is_some()
    }

    /// The recorded events.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Looks once at everything, and does what is to be done.
    ///
    /// # Errors
    ///
    /// The objects cannot be read, or nothing can be recorded.
    pub async fn look(&mut self, now: UnixMillis) -> Result<Looked, LookError> {
        if let Some(why) = &self.fell_back {
            return Ok(Looked::FellBack(why.clone()));
        }
        let listed = self.server.read().await.map_err(LookError::Unread)?;
        let signs = self.server.signs().await.map_err(LookError::Unread)?;
        if let Some(why) = rival(&signs, &listed.objects, now) {
            self.fell_back = Some(why.clone());
            self.record(Event::FellBack { why: why.clone() }, now).await?;
            return Ok(Looked::FellBack(why));
        }
        // Planning takes seconds for a thousand Clusters.
        let planning = tokio::task::spawn_blocking(move || {
            let planned = plans_of_live(&listed);
            (listed, planned)
        });
        let (listed, planned) = planning.await.map_err(|error| LookError::Unread(error.into()))?;
        let all = Objects::of(&listed.objects);
        let seen = clusters(&all);
        self.forget(&seen, now).await?;
        let count = self.all(&seen, &all, planned, now).await?;
        self.journal.tend(now);
        Ok(Looked::Done(count))
    }

    async fn record(&mut self, event: Event, now: UnixMillis) -> Result<(), Unrecorded> {
        self.journal.record(event, now).await
    }

    /// Clusters that are gone, and those whose name another one has now.
    async fn forget(
        &mut self,
        seen: &BTreeMap<ClusterName, SeenCluster<'_>>,
        now: UnixMillis,
    ) -> Result<(), Unrecorded> {
        let known = self.journal.ledger().clusters();
        let gone = known.filter(|(name, kept)| {
            let there = seen.get(*name);
            there.is_none_or(|one| !kept.about.uid.is_empty() && one.uid != kept.about.uid)
        });
        let gone: Vec<ClusterName> = gone.map(|(name, _)| name.clone()).collect();
        for cluster in gone {
            self.retries.remove(&cluster);
            self.given.remove(&cluster);
            self.asked.forget(&cluster);
            self.record(Event::Forgotten { cluster }, now).await?;
        }
        Ok(())
    }

    async fn all(
        &mut self,
        seen: &BTreeMap<ClusterName, SeenCluster<'_>>,
        objects: &Objects<'_>,
        planned: Planned,
        now: UnixMillis,
    ) -> Result<Count, LookError> {
        let findings = planned.findings.iter();
        let findings: Vec<(String, String)> = findings
            .map(|one| (one.object.clone(), one.to_string()))
            .collect();
        let mut plans = BTreeMap::new();
        let mut failed = BTreeMap::new();
        let mut waiting = BTreeSet::new();
        for mut plan in planned.plans {
            let name = ClusterName {
                namespace: plan.namespace.clone(),
                name: plan.name.clone(),
            };
            let Some(cluster) = seen.get(&name).filter(|cluster| cluster.rests.is_none()) else {
                continue;
            };
            let looking = Looking {
                name: &name,
                cluster,
                objects,
                now,
            };
            if self.retries.get(&name).is_some_and(|retry| retry.at > now.0) {
                // Nobody asked the server about this plan, and the condition still says what failed.
                waiting.insert(name);
                continue;
            }
            match self.refine(looking, &mut plan).await {
                Ok(()) => drop(plans.insert(name, plan)),
                Err(why) => drop(failed.insert(name, why)),
            }
        }
        let borrowed = plans.iter().map(|(name, plan)| (name.clone(), plan)).collect();
        let turns = turns(self.journal.ledger(), seen, &borrowed, self.waves, now);
        let mut count = Count::default();
        for (name, cluster) in seen {
            if self.ending.is_cancelled() || self.lost.is_cancelled() {
                break;
            }
            let looking = Looking {
                name,
                cluster,
                objects,
                now,
            };
            if waiting.contains(name) {
                count.failing += 1;
                continue;
            }
            if let Some(why) = failed.remove(name) {
                self.failed(looking, &why, &mut count).await;
                continue;
            }
            match plans.get(name).zip(turns.get(name)) {
                Some((plan, turn)) => self.one(looking, plan, turn, &mut count).await?,
                None => self.unplanned(looking, &findings, &mut count).await,
            }
        }
        Ok(count)
    }

    /// A Cluster that rests, or in which something is wrong.
    async fn unplanned(
        &mut self,
        looking: Looking<'_, '_>,
        findings: &[(String, String)],
        count: &mut Count,
    ) {
        let of = |object: &str| -> Vec<String> {
            let lines = findings.iter().filter(|(about, _)| about == object);
            lines.map(|(_, line)| line.clone()).collect()
        };
        let wrong = of(&format!("Cluster {}", looking.name));
        let (namespace, class) = &looking.cluster.class;
        let mut class_wrong = of(&format!("ClusterClass {namespace}/{class}"));
        if class_wrong.is_empty() {
            class_wrong.push(format!("ClusterClass {namespace}/{class} cannot be used"));
        }
        if looking.cluster.rests.is_some() {
            count.resting += 1;
        } else {
            count.failing += 1;
        }
        let came = if wrong.is_empty() {
            Came::ClassWrong(&class_wrong)
        } else {
            Came::Wrong(&wrong)
        };
        self.say(looking, came, "").await;
    }

    async fn one(
        &mut self,
        looking: Looking<'_, '_>,
        plan: &Plan,
        turn: &Turn,
        count: &mut Count,
    ) -> Result<(), LookError> {
        let (name, now) = (looking.name, looking.now);
        if !plan.defaults.is_empty() && !self.are_taken_away(looking, plan) {
            return self.give_defaults(looking, plan, count).await;
        }
        let plane = plan.changes.iter().find(|change| change.place == "control-plane");
        let plane = plane
            .map_or("ControlPlane", |change| change.kind.as_str())
            .to_owned();
        let begins = match turn {
            Turn::Hold(why) => {
                count.held += 1;
                if self.about(name).held.as_ref() != Some(why) {
                    let (cluster, why) = (name.clone(), why.clone());
                    self.record(Event::RolloutHeld { cluster, why }, now).await?;
                }
                self.say(looking, Came::Held(why), &plane).await;
                return Ok(());
            }
            Turn::Go { begins } => *begins,
        };
        if begins {
            self.record(
                Event::RolloutBegan {
                    cluster: name.clone(),
                },
                now,
            )
            .await?;
        }
        match self.carry_out(looking, plan).await? {
            Became::Failed(why) => self.failed(looking, &why, count).await,
            became => {
                self.retries.remove(name);
                match became {
                    Became::Working(writes) => {
                        count.working += 1;
                        count.writes += writes;
                    }
                    _ => count.settled += 1,
                }
                self.say(looking, Came::Planned(plan), &plane).await;
            }
        }
        Ok(())
    }

    fn about(&self, name: &ClusterName) -> About {
        self.journal
            .ledger()
            .get(name)
            .map(|kept| kept.about.clone())
            .unwrap_or_default()
    }

    async fn failed(&mut self, looking: Looking<'_, '_>, why: &str, count: &mut Count) {
        count.failing += 1;
        let last = self
            .retries
            .get(looking.name)
            .map_or(RETRY_MILLIS / 2, |retry| retry.wait);
        let wait = (last * 2).min(RETRY_MILLIS_MAX);
        let at = looking.now.0 + wait;
        self.retries.insert(looking.name.clone(), Retry { at, wait });
        self.say(looking, Came::Refused(why), "").await;
    }

    async fn say(&mut self, looking: Looking<'_, '_>, came: Came<'_>, plane: &str) {
        let Looking {
            name, cluster, now, ..
        } = looking;
        if self.lost.is_cancelled() {
            return;
        }
        if let Some(said) = condition(cluster.rests, came, plane) {
            requests::say(&self.server, name, (cluster.document, &said), now).await;
        }
    }
}

mod carry_out;
mod defaults;
mod refine;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
