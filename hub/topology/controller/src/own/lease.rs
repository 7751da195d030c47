//! Owns: the Lease that says which hub writes the topologies of a management cluster, in a namespace that every cluster has:
//! hubs in other namespaces, or outside, are to see it too.
//! Never: decides who may have it (`rules/writer.rs`), or ends the process.

use anyhow::Context;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};
use shared::{
    api::leader_lease::{self, Hold},
    process::{Monotonic, random},
};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::{
    api_server::REQUEST_TIMEOUT,
    metrics::OwnMetrics,
    rules::writer::{Candidate, DURATION, RENEW_DEADLINE, RENEW_PERIOD, RENEW_WAIT, Record, Verdict},
};

/// The Lease's name.
pub(super) const NAME: &str = "tributary-topology";
/// Its namespace.
pub(super) const NAMESPACE: &str = "default";

const _: () = assert!(
    RENEW_DEADLINE.as_secs() + RENEW_PERIOD.as_secs() + RENEW_WAIT.as_secs() + REQUEST_TIMEOUT.as_secs()
        < DURATION.as_secs(),
    "a write may still be under way when another hub begins"
);

/// The Lease in the eyes of one process.
pub(super) struct WriterLease {
    api: Api<Lease>,
    candidate: Candidate,
    clock: Monotonic,
}

impl WriterLease {
    /// For a process that has the log of this name.
    pub(super) fn new(client: Client, log: &str, clock: Monotonic) -> Self {
        Self {
            api: Api::namespaced(client, NAMESPACE),
            candidate: Candidate::new(log, random()),
            clock,
        }
    }

    /// Looks at the Lease, and takes or renews it if that may be. None: it is this process's; else the name of who has it.
    ///
    /// # Errors
    ///
    /// It cannot be read or written.
    pub(super) async fn turn(&mut self) -> anyhow::Result<Option<String>> {
        let asked = async {
            let found = self.api.get_opt(NAME).await?;
            let record = found.as_ref().map(record);
            match self.candidate.look(record.as_ref(), (self.clock)()) {
                Verdict::Wait(holder) => Ok(Some(holder)),
                Verdict::Take(transitions) => {
                    let is_new = found.is_none();
                    let lease = held(found, self.candidate.holder(), transitions);
                    put(&self.api, is_new, &lease).await
                }
            }
        };
        let answered = timeout(RENEW_WAIT, asked).await;
        let answered = answered.with_context(|| format!("no answer within {RENEW_WAIT:?}"))?;
        answered.with_context(|| {
            format!(
                "the Lease {NAMESPACE}/{NAME} cannot be taken: the hub needs get, create and update of it, --set \
                 topology=own of its chart gives them"
            )
        })
    }

    /// Waits until the Lease is this process's. Returns false if the drain begins before.
    pub(super) async fn won(&mut self, drain: &CancellationToken, metrics: &OwnMetrics) -> bool {
        let (mut waits_for, mut failing) = (None, false);
        let mut looks = interval(RENEW_PERIOD);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = drain.cancelled() => return false,
                _ = looks.tick() => {}
            }
            match self.turn().await {
                Ok(None) => {
                    metrics.refused(false);
                    info!(
                        holder = self.candidate.holder(),
                        "this hub keeps the topologies of the cluster"
                    );
                    return true;
                }
                Ok(Some(holder)) => {
                    metrics.refused(true);
                    if waits_for.as_ref() != Some(&holder) {
                        error!(
                            %holder,
                            "another hub keeps the topologies of this cluster (Lease {NAMESPACE}/{NAME}): this hub writes \
                             nothing; stop one of the two, or run this one with --topology observe. It takes over if the \
                             other one ends, or does not renew the Lease for {} s",
                            DURATION.as_secs()
                        );
                        waits_for = Some(holder);
                    }
                }
                Err(error) => {
                    metrics.failed();
                    if !std::mem::replace(&mut failing, true) {
                        warn!("topologies are not kept: {error:#}");
                    }
                }
            }
        }
    }

    /// Renews the Lease until `ended`; cancels `lost` once another process may have it.
    pub(super) async fn keep(&mut self, ended: &CancellationToken, lost: &CancellationToken) {
        let mut renewed = (self.clock)();
        let mut renewals = interval(RENEW_PERIOD);
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = ended.cancelled() => return,
                _ = renewals.tick() => {}
            }
            let began = (self.clock)();
            let why = match self.turn().await {
                Ok(None) => {
                    renewed = began;
                    continue;
                }
                Ok(Some(holder)) => format!("{holder} has it"),
                Err(_) if (self.clock)().saturating_sub(renewed) < RENEW_DEADLINE => continue,
                Err(error) => format!("{error:#}"),
            };
            warn!(
                why,
                "the Lease {NAMESPACE}/{NAME} is lost: nothing of topologies is written until it is this hub's again"
            );
            lost.cancel();
            return;
        }
    }

    /// Gives the Lease back, so that the next start need not wait. Only for one that writes nothing any more.
    pub(super) async fn release(self) {
        let released = async {
            let found = self.api.get_opt(NAME).await?;
            let Some(lease) = found.filter(|lease| record(lease).holder == self.candidate.holder()) else {
                return Ok(None);
            };
            let transitions = record(&lease).transitions;
            put(&self.api, false, &held(Some(lease), "", transitions)).await
        };
        if !matches!(timeout(RENEW_WAIT, released).await, Ok(Ok(_))) {
            warn!("the Lease {NAMESPACE}/{NAME} is not given back: the next hub waits for it");
        }
    }
}

fn record(lease: &Lease) -> Record {
    let hold = Hold::of(lease);
    Record {
        holder: hold.holder,
        renewed: hold.renewed,
        transitions: hold.transitions,
        duration: hold.duration,
    }
}

/// The Lease with this holder.
fn held(found: Option<Lease>, holder: &str, transitions: i32) -> Lease {
    let mut lease = found.unwrap_or_else(|| leader_lease::blank(NAME));
    leader_lease::hold(&mut lease, holder, transitions, DURATION, Timestamp::now());
    lease
}

/// Writes the Lease over the one that was found. A conflict means another writer, which has it for now.
async fn put(api: &Api<Lease>, is_new: bool, lease: &Lease) -> kube::Result<Option<String>> {
    let parameters = PostParams::default();
    let written = if is_new {
        api.create(&parameters, lease).await
    } else {
        api.replace(NAME, &parameters, lease).await
    };
    match written {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 409 => {
            Ok(Some("a hub that writes it right now".to_owned()))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
