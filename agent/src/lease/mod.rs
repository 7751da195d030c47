//! The agent's own Lease `tributary-agent`: which agent works in this cluster, and the highest epoch that the cluster
//! has known. It is renewed while the agent runs, released when it ends in good order, and put back when somebody
//! deletes it; another holder in it ends this agent. `machine` decides, this does.

pub mod machine;
mod object;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, bail};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};
use prometheus_client::{metrics::gauge::Gauge, registry::Registry};
use shared::{api::names, model::Epoch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use machine::{Candidate, Standing, Verdict, standing};

/// How often the Lease is renewed.
pub const RENEW_INTERVAL: Duration = Duration::from_secs(10);
/// How often one who waits looks at it: so late a release is noticed.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Conflicts in a row before writing is given up for this time.
const CONFLICTS_MAX: usize = 5;
/// How long the release may take: a clean end is not held up by an API server that does not answer.
pub const RELEASE_WAIT: Duration = Duration::from_secs(3);

/// What is counted of the Lease.
#[derive(Debug, Clone, Default)]
pub struct LeaseMetrics {
    held: Gauge,
}

impl LeaseMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let held = "1 while this agent holds the cluster's Lease; 0 while it waits for another to end";
        registry.register("lease_held", held, metrics.held.clone());
        metrics
    }
}

/// The Lease as this start of the agent holds it. Clones are the same.
#[derive(Clone)]
pub struct AgentLease {
    api: Api<Lease>,
    holder: Arc<str>,
    transitions: i32,
    epoch: Arc<Mutex<Option<Epoch>>>,
}

/// What became of one try to take the Lease.
pub enum Attempt {
    /// It is ours.
    Taken(Box<AgentLease>),
    /// Somebody else has it.
    Waiting {
        /// Who.
        holder: Box<str>,
        /// When it is over if it does not move.
        longest: Duration,
    },
}

impl AgentLease {
    /// Looks at the Lease in `namespace`, and takes it if `candidate` may have it `now`.
    pub async fn attempt(
        client: Client,
        namespace: &str,
        candidate: &mut Candidate,
        now: Duration,
    ) -> anyhow::Result<Attempt> {
        let api = Api::namespaced(client, namespace);
        take(api, candidate, now).await.with_context(|| {
            format!(
                "cannot take the Lease {namespace}/{}: the agent needs that namespace, and there the rights of \
                 deploy/manifests/agent (get, create, update on leases)",
                names::AGENT_LEASE
            )
        })
    }

    /// Tries until the Lease is taken; `waits` hears of everybody who is waited for. What fails at the first try is
    /// an error, later it is tried again.
    pub async fn take(
        client: Client,
        namespace: &str,
        holder: &str,
        metrics: &LeaseMetrics,
        waits: impl Fn(),
    ) -> anyhow::Result<Self> {
        let (mut candidate, clock) = (Candidate::new(holder), Instant::now());
        let (mut waits_for, mut failing) = (None, false);
        loop {
            let attempt = Self::attempt(client.clone(), namespace, &mut candidate, clock.elapsed()).await;
            let wait = match attempt {
                Ok(Attempt::Taken(lease)) => {
                    metrics.held.set(1);
                    info!(holder, transitions = lease.transitions, epoch = ?lease.epoch(), "took the Lease");
                    return Ok(*lease);
                }
                Ok(Attempt::Waiting { holder, longest }) => {
                    failing = false;
                    if waits_for.as_ref() != Some(&holder) {
                        info!(%holder, ?longest, "another agent holds the Lease of this cluster: waiting until it ends");
                        waits();
                        waits_for = Some(holder);
                    }
                    longest.min(LOOK_INTERVAL)
                }
                Err(error) if waits_for.is_none() => return Err(error),
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        warn!(
                            error = format!("{error:#}"),
                            "cannot look at the Lease; trying again"
                        );
                    }
                    LOOK_INTERVAL
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// The number of this hold: one higher than the one before.
    pub fn transitions(&self) -> i64 {
        self.transitions.into()
    }

    /// The highest epoch that this cluster has known.
    pub fn epoch(&self) -> Option<Epoch> {
        *self.known()
    }

    /// Remembers an epoch, durably, before anything of it is applied. A lower one changes nothing.
    pub async fn remember(&self, epoch: Epoch) -> anyhow::Result<()> {
        {
            let mut known = self.known();
            *known = (*known).max(Some(epoch));
        }
        self.write(&self.holder).await
    }

    /// Renews the Lease once.
    pub async fn renew(&self) -> anyhow::Result<()> {
        self.write(&self.holder).await
    }

    /// Renews the Lease until `drain`. It ends with an error when another agent holds it.
    pub async fn keep(self, drain: CancellationToken) -> anyhow::Result<()> {
        let mut interval = tokio::time::interval(RENEW_INTERVAL);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut failing = false;
        loop {
            tokio::select! {
                biased;
                () = drain.cancelled() => return Ok(()),
                _ = interval.tick() => {}
            }
            match self.renew().await {
                Ok(()) => {
                    if std::mem::replace(&mut failing, false) {
                        info!("the Lease is renewed again");
                    }
                }
                Err(error) if error.is::<AnotherHolder>() => return Err(error),
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        warn!(
                            error = format!("{error:#}"),
                            "the Lease cannot be renewed; trying again"
                        );
                    }
                }
            }
        }
    }

    /// Gives the Lease back, so that the next agent need not wait. Only for an agent that does nothing any more.
    pub async fn release(self) {
        match tokio::time::timeout(RELEASE_WAIT, self.write("")).await {
            Ok(Ok(())) => info!("released the Lease"),
            Ok(Err(error)) => warn!(error = format!("{error:#}"), "the Lease is not released"),
            Err(_) => warn!("the Lease is not released within {RELEASE_WAIT:?}"),
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<Epoch>> {
        self.epoch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what we know into the Lease as it stands, under `holder`: our name or nobody's.
    async fn write(&self, holder: &str) -> anyhow::Result<()> {
        for _ in 0..CONFLICTS_MAX {
            let found = self.api.get_opt(names::AGENT_LEASE).await?;
            let record = found.as_ref().map(object::record);
            match standing(&self.holder, self.transitions, record.as_ref()) {
                Standing::Held => {}
                Standing::Gone => warn!("somebody deleted or emptied the Lease: it is put back"),
                Standing::Lost(holder) => return Err(AnotherHolder { holder }.into()),
            }
            let known = record.and_then(|record| record.epoch).max(self.epoch());
            if put(&self.api, found, holder, self.transitions, known).await? {
                return Ok(());
            }
        }
        bail!("the Lease was changed by somebody else {CONFLICTS_MAX} times in a row")
    }
}

async fn take(api: Api<Lease>, candidate: &mut Candidate, now: Duration) -> anyhow::Result<Attempt> {
    for _ in 0..CONFLICTS_MAX {
        let found = api.get_opt(names::AGENT_LEASE).await?;
        let (transitions, epoch) = match candidate.look(found.as_ref().map(object::record), now) {
            Verdict::Take { transitions, epoch } => (transitions, epoch),
            Verdict::Wait { holder, longest } => return Ok(Attempt::Waiting { holder, longest }),
        };
        if put(&api, found, candidate.holder(), transitions, epoch).await? {
            return Ok(Attempt::Taken(Box::new(AgentLease {
                api,
                holder: candidate.holder().into(),
                transitions,
                epoch: Arc::new(Mutex::new(epoch)),
            })));
        }
    }
    bail!("it was changed by somebody else {CONFLICTS_MAX} times in a row")
}

/// Writes the Lease over what was found. False: it is another one by now.
async fn put(
    api: &Api<Lease>,
    found: Option<Lease>,
    holder: &str,
    transitions: i32,
    epoch: Option<Epoch>,
) -> anyhow::Result<bool> {
    let is_new = found.is_none();
    let mut lease = found.unwrap_or_else(object::blank);
    object::hold(&mut lease, holder, transitions, epoch);
    let parameters = PostParams::default();
    let written = if is_new {
        api.create(&parameters, &lease).await
    } else {
        api.replace(names::AGENT_LEASE, &parameters, &lease).await
    };
    match written {
        Ok(_) => Ok(true),
        // 404: it was deleted meanwhile
        Err(kube::Error::Api(status)) if status.code == 409 || (status.code == 404 && !is_new) => Ok(false),
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
pub fn holder(pod_uid: Option<&str>) -> String {
    match pod_uid.map(str::trim).filter(|uid| !uid.is_empty()) {
        Some(uid) => uid.to_owned(),
        None => format!("{}_{}", host_name(), std::process::id()),
    }
}

fn host_name() -> String {
    let name = std::fs::read_to_string(HOST_NAME_FILE).map(|text| text.trim().to_owned());
    name.ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown-host".to_owned())
}

/// Where Linux tells the host name.
const HOST_NAME_FILE: &str = "/proc/sys/kernel/hostname";

#[cfg(test)]
mod tests;
