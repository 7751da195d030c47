//! The agent's own Lease `tributary-agent`: which agent leads in this cluster, and the highest epoch that the cluster
//! has known. It is renewed while the agent runs, released when it ends in good order, and put back when somebody
//! deletes it; another holder in it ends this agent. `machine` and `hold` decide, this does.

mod object;
mod permit;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, bail};
use api::{
    names,
    server::{Api, Client},
};
use futures::{StreamExt, stream::FuturesUnordered};
use k8s_openapi::api::coordination::v1::Lease;
use kube_core::{ResourceExt, params::PostParams};
use model::{Epoch, KeyFingerprint};
use prometheus_client::{metrics::gauge::Gauge, registry::Registry};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub use agent_core::lease::{hold, machine};
use hold::{Hold, May, Standing, standing};
use machine::{Candidate, DURATION, RENEW_DEADLINE, RETRY_PERIOD, Verdict};
pub use pace::{Monotonic, monotonic};
pub use permit::WritePermit;

/// Conflicts in a row before writing is given up for this time.
const CONFLICTS_MAX: usize = 5;
/// Longest wait for an answer to a renewal before another one is asked for beside it. The renewal before began a
/// [`RETRY_PERIOD`] earlier, so that a second is left for the answer before writing ends.
const RENEW_WAIT: Duration = Duration::from_secs(2);
const _: () = assert!(
    RETRY_PERIOD.as_secs() + RENEW_WAIT.as_secs() < RENEW_DEADLINE.as_secs(),
    "a renewal that is never answered ends writing"
);
/// Longest wait for the answer to one request. The Lease is over for others then, so that a later answer is of no use.
const REQUEST_WAIT: Duration = DURATION;
/// Most renewals that are under way at a time: while none is answered, another one begins each [`RENEW_WAIT`].
const RENEWALS_MAX: usize = 3;
/// Time that the release may take: a clean end does not wait for an API server that does not answer.
pub const RELEASE_WAIT: Duration = Duration::from_secs(3);

/// Metrics of the Lease.
#[derive(Debug, Clone, Default)]
pub struct LeaseMetrics {
    held: Gauge,
    suspended: Gauge,
}

impl LeaseMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let held = "1 while this agent holds the cluster's Lease; 0 while it waits for another to end";
        registry.register("lease_held", held, metrics.held.clone());
        let suspended =
            "1 while this agent writes nothing because it could not renew the Lease that it holds";
        registry.register("writes_suspended", suspended, metrics.suspended.clone());
        metrics
    }
}

/// The Lease as this start of the agent holds it. Clones are the same.
#[derive(Clone)]
pub struct AgentLease {
    api: Api<Lease>,
    holder: Arc<str>,
    transitions: i32,
    epoch: Arc<watch::Sender<Option<Epoch>>>,
    /// The key under which the membership has ended, if it has.
    ended: Arc<watch::Sender<Option<KeyFingerprint>>>,
    /// The number of times that an operator confirmed that imports on hold may go.
    confirmed: Arc<watch::Sender<u64>>,
    /// The Lease as it was written last: while nobody else writes it a renewal is one request. A request without an
    /// answer leaves it as it is; a conflict forgets it.
    written: Arc<Mutex<Option<Lease>>>,
    hold: Arc<Mutex<Hold>>,
    /// The clock of `hold`.
    clock: Monotonic,
    permit: WritePermit,
    metrics: LeaseMetrics,
}

/// The outcome of one attempt to take the Lease.
pub enum Attempt {
    /// It is ours.
    Taken(Box<AgentLease>),
    /// Somebody else has it.
    Waiting {
        /// The holder.
        holder: Box<str>,
        /// Time at which it is over if it does not move.
        longest: Duration,
    },
}

/// A candidate for the Lease, and its plans for it.
pub struct Election {
    api: Api<Lease>,
    candidate: Candidate,
    clock: Monotonic,
    permit: WritePermit,
    metrics: LeaseMetrics,
}

impl Election {
    /// `holder` wants the Lease in `namespace`. By this clock it waits and holds; `permit` allows to write from when it
    /// has it, as long as it may.
    pub fn new(
        client: Client,
        namespace: &str,
        holder: &str,
        (clock, permit): (Monotonic, WritePermit),
        metrics: LeaseMetrics,
    ) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            candidate: Candidate::new(holder),
            clock,
            permit,
            metrics,
        }
    }

    /// Looks at the Lease, and takes it if it may be had by now.
    pub async fn attempt(&mut self) -> anyhow::Result<Attempt> {
        let namespace = self.api.namespace().unwrap_or_default().to_owned();
        self.look().await.with_context(|| {
            format!(
                "cannot take the Lease {namespace}/{}: the agent needs that namespace, and there the rights of \
                 deploy/manifests/agent (get, create, update on leases)",
                names::AGENT_LEASE
            )
        })
    }

    async fn look(&mut self) -> anyhow::Result<Attempt> {
        for _ in 0..CONFLICTS_MAX {
            let asked = (self.clock)();
            let found = self.api.get_opt(names::AGENT_LEASE).await?;
            let record = found.as_ref().map(object::record);
            let ended = found.as_ref().and_then(object::ended);
            let began = (self.clock)();
            let (transitions, epoch) = match self.candidate.look(record, asked, began) {
                Verdict::Take { transitions, epoch } => (transitions, epoch),
                Verdict::Wait { holder, longest } => return Ok(Attempt::Waiting { holder, longest }),
            };
            let holder = self.candidate.holder();
            if let Some(lease) = put(&self.api, found, holder, transitions, (epoch, ended)).await? {
                return Ok(Attempt::Taken(Box::new(self.taken(
                    lease,
                    began,
                    transitions,
                    (epoch, ended),
                ))));
            }
        }
        bail!("it was changed by somebody else {CONFLICTS_MAX} times in a row")
    }

    fn taken(
        &self,
        lease: Lease,
        began: Duration,
        transitions: i32,
        (epoch, ended): (Option<Epoch>, Option<KeyFingerprint>),
    ) -> AgentLease {
        let lease = AgentLease {
            api: self.api.clone(),
            holder: self.candidate.holder().into(),
            transitions,
            epoch: Arc::new(watch::Sender::new(epoch)),
            ended: Arc::new(watch::Sender::new(ended)),
            confirmed: Arc::new(watch::Sender::new(0)),
            written: Arc::new(Mutex::new(Some(lease))),
            hold: Arc::new(Mutex::new(Hold::taken(began))),
            clock: self.clock.clone(),
            permit: self.permit.clone(),
            metrics: self.metrics.clone(),
        };
        lease.permit(|_| {});
        lease
    }

    /// Tries until the Lease is taken; `waits` receives every holder that is waited for. A failure at the first attempt
    /// is an error, a later one is retried.
    pub async fn won(&mut self, waits: impl Fn()) -> anyhow::Result<AgentLease> {
        let (mut waits_for, mut failing) = (None, false);
        loop {
            let wait = match self.attempt().await {
                Ok(Attempt::Taken(lease)) => {
                    self.metrics.held.set(1);
                    let holder = self.candidate.holder();
                    info!(
                        holder,
                        transitions = lease.transitions,
                        epoch = lease.epoch().map(tracing::field::display),
                        "took the Lease"
                    );
                    return Ok(*lease);
                }
                Ok(Attempt::Waiting { holder, longest }) => {
                    failing = false;
                    if waits_for.as_ref() != Some(&holder) {
                        info!(%holder, longest_seconds = longest.as_secs_f64(), "another agent holds the Lease of this cluster: standing by until it ends");
                        waits();
                        waits_for = Some(holder);
                    }
                    longest.min(RETRY_PERIOD)
                }
                Err(error) if waits_for.is_none() => return Err(error),
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        warn!(
                            error = format!("{error:#}"),
                            "cannot look at the Lease; trying again"
                        );
                    }
                    RETRY_PERIOD
                }
            };
            tokio::time::sleep(wait).await;
        }
    }
}

impl AgentLease {
    /// The number of this hold: one higher than the one before.
    pub fn transitions(&self) -> i64 {
        self.transitions.into()
    }

    /// The highest epoch that this cluster has known.
    pub fn epoch(&self) -> Option<Epoch> {
        *self.epoch.borrow()
    }

    /// Waits until the cluster has known an epoch: until then no hub has ever admitted it.
    pub async fn epoch_known(&self) {
        // `self` owns the sender, so the channel cannot close.
        let _ = self.epoch.subscribe().wait_for(Option::is_some).await;
    }

    /// Remembers an epoch, durably, before anything of it is applied. A lower one changes nothing.
    pub async fn remember(&self, epoch: Epoch) -> anyhow::Result<()> {
        self.epoch.send_modify(|known| *known = (*known).max(Some(epoch)));
        self.renew().await
    }

    /// The key under which this cluster's membership has ended, if it has.
    pub fn ended(&self) -> Option<KeyFingerprint> {
        *self.ended.borrow()
    }

    /// Follows what [`AgentLease::ended`] says.
    pub fn end_changes(&self) -> watch::Receiver<Option<KeyFingerprint>> {
        self.ended.subscribe()
    }

    /// Counts how often an operator confirmed that imports on hold may go.
    pub fn confirmations(&self) -> watch::Receiver<u64> {
        self.confirmed.subscribe()
    }

    /// Remembers that the membership under this key has ended; `None`: that the cluster is a member. It counts from now on,
    /// and is written with the next renewal at the latest.
    pub async fn remember_end(&self, key: Option<KeyFingerprint>) -> anyhow::Result<()> {
        if self.ended.send_replace(key) == key {
            return Ok(());
        }
        self.renew().await
    }

    /// Renews the Lease once, and with it what may be written.
    pub async fn renew(&self) -> anyhow::Result<()> {
        let renewed = self.write(&self.holder).await;
        if renewed.as_ref().is_err_and(|error| error.is::<AnotherHolder>()) {
            self.permit(Hold::end);
        }
        renewed
    }

    /// The holder's rights now.
    pub fn may(&self) -> May {
        self.held().may((self.clock)())
    }

    /// Changes the hold, and with it at once the permission to write.
    fn permit(&self, change: impl FnOnce(&mut Hold)) {
        let mut hold = self.held();
        change(&mut hold);
        let left = hold
            .writes_until()
            .map(|until| until.saturating_sub((self.clock)()));
        self.permit.set(left.map(|left| Instant::now() + left));
    }

    fn held(&self) -> MutexGuard<'_, Hold> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renews the Lease until `drain`. It ends with an error when another agent holds it.
    ///
    /// Another renewal begins a [`RETRY_PERIOD`] after an answer, and beside those that have none after a [`RENEW_WAIT`].
    /// An answer counts when it comes: it has the version that the next one needs. None makes the next one later.
    pub async fn keep(self, drain: CancellationToken) -> anyhow::Result<()> {
        let mut suspended = false;
        let mut under_way = FuturesUnordered::new();
        let mut next = Instant::now();
        loop {
            let failed = tokio::select! {
                biased;
                () = drain.cancelled() => return Ok(()),
                Some(renewed) = under_way.next() => {
                    next = next.min(Instant::now() + RETRY_PERIOD);
                    let renewed: anyhow::Result<()> = renewed;
                    match renewed {
                        Ok(()) => None,
                        Err(error) if error.is::<AnotherHolder>() => return Err(error),
                        Err(error) => Some(format!("{error:#}")),
                    }
                }
                () = tokio::time::sleep_until(next) => {
                    let unanswered = !under_way.is_empty();
                    if under_way.len() < RENEWALS_MAX {
                        under_way.push(self.renew());
                    }
                    next = Instant::now() + RENEW_WAIT;
                    unanswered.then(|| format!("no answer within {RENEW_WAIT:?}"))
                }
            };
            suspended = self.tell(failed, suspended);
        }
    }

    /// Reports when writing stops and when it continues; returns whether it is stopped.
    fn tell(&self, failed: Option<String>, before: bool) -> bool {
        let suspended = self.may() != May::Write;
        match failed {
            Some(error) if suspended && !before => warn!(
                error,
                "the Lease cannot be renewed: another agent may lead soon, so nothing is written until it can; the \
                 session with the hub and what stands stay"
            ),
            None if before && !suspended => info!("the Lease is renewed again: writing goes on"),
            _ => {}
        }
        self.metrics.suspended.set(suspended.into());
        suspended
    }

    /// Gives the Lease back, so that the next agent need not wait. Only for an agent that does nothing any more.
    pub async fn release(self) {
        self.permit(Hold::end);
        match tokio::time::timeout(RELEASE_WAIT, self.write("")).await {
            Ok(Ok(())) => info!("released the Lease"),
            Ok(Err(error)) => warn!(error = format!("{error:#}"), "the Lease is not released"),
            Err(_) => warn!("the Lease is not released within {RELEASE_WAIT:?}"),
        }
    }

    /// Writes what we know into the Lease, under `holder`: our name or nobody's. It is read only when its version is
    /// not known: a write without an answer that changed the version costs a conflict and no more.
    async fn write(&self, holder: &str) -> anyhow::Result<()> {
        let asked = (self.clock)();
        for _ in 0..CONFLICTS_MAX {
            let known = self.written().clone();
            let found = match known {
                Some(lease) => Some(lease),
                None => in_time(self.api.get_opt(names::AGENT_LEASE)).await??,
            };
            let record = found.as_ref().map(object::record);
            match standing(&self.holder, self.transitions, record.as_ref()) {
                Standing::Held => {}
                Standing::Gone => warn!("somebody deleted or emptied the Lease: it is put back"),
                Standing::Lost(holder) => return Err(AnotherHolder { holder }.into()),
            }
            let known = record.and_then(|record| record.epoch).max(self.epoch());
            let began = (self.clock)();
            let before = found.as_ref().and_then(|lease| lease.resource_version());
            let confirms = found.as_ref().is_some_and(object::accepts_withdrawals);
            let memory = (known, self.ended());
            if let Some(lease) = in_time(put(&self.api, found, holder, self.transitions, memory)).await?? {
                *self.written() = Some(lease);
                self.permit(|hold| hold.renewed(began));
                if confirms {
                    self.confirmed.send_modify(|count| *count += 1);
                }
                return Ok(());
            }
            if self.is_written_beside(before.as_deref(), asked, holder) {
                return Ok(());
            }
            self.written().take_if(|lease| lease.resource_version() == before);
        }
        bail!("the Lease was changed by somebody else {CONFLICTS_MAX} times in a row")
    }

    /// Returns true if a renewal beside this one has written all that we know, under our own name: it began since then, and put a
    /// version in the place of the one that we knew. Without such a version somebody else changed the Lease.
    fn is_written_beside(&self, known: Option<&str>, asked: Duration, holder: &str) -> bool {
        let written = self.written();
        let Some(lease) = written.as_ref() else {
            return false;
        };
        *holder == *self.holder
            && lease.metadata.resource_version.as_deref() != known
            && object::record(lease).epoch >= self.epoch()
            && object::ended(lease) == self.ended()
            && self.held().is_renewed_since(asked)
    }

    fn written(&self) -> MutexGuard<'_, Option<Lease>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the answer to one request.
async fn in_time<T>(answer: impl Future<Output = T>) -> anyhow::Result<T> {
    let answered = tokio::time::timeout(REQUEST_WAIT, answer).await;
    answered.map_err(|_| anyhow::anyhow!("no answer within {REQUEST_WAIT:?}"))
}

/// Writes the Lease over what was found, and shows it as it is then. `None`: it has changed since.
async fn put(
    api: &Api<Lease>,
    found: Option<Lease>,
    holder: &str,
    transitions: i32,
    memory: (Option<Epoch>, Option<KeyFingerprint>),
) -> anyhow::Result<Option<Lease>> {
    let is_new = found.is_none();
    let mut lease = found.unwrap_or_else(object::blank);
    object::hold(&mut lease, holder, transitions, memory);
    let parameters = PostParams::default();
    let written = if is_new {
        api.create(&parameters, &lease).await
    } else {
        api.replace(names::AGENT_LEASE, &parameters, &lease).await
    };
    match written {
        Ok(lease) => Ok(Some(lease)),
        // 404: it was deleted meanwhile
        Err(api::server::Error::Api(status)) if status.code == 409 || (status.code == 404 && !is_new) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Another start of the agent holds the Lease.
#[derive(Debug, thiserror::Error)]
#[error(
    "the Lease {} is held by another agent ({holder}): only one may run in a cluster, so this one stops",
    names::AGENT_LEASE
)]
pub struct AnotherHolder {
    holder: Box<str>,
}

/// The name of the place where this process runs: its pod's UID, which a restart of the container keeps; outside pods
/// host name and process.
pub fn holder(pod_uid: Option<&str>, host: &str) -> String {
    match pod_uid.map(str::trim).filter(|uid| !uid.is_empty()) {
        Some(uid) => uid.to_owned(),
        None => format!("{}_{}", host, std::process::id()),
    }
}

#[cfg(test)]
mod tests;
