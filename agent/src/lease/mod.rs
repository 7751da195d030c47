//! The agent's own Lease `tributary-agent`: which start of the agent is the present one, and the highest epoch that
//! this cluster has known. It is renewed while the agent runs; another holder in it ends this agent.

use std::time::Duration;

use anyhow::{Context, bail};
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, PostParams},
};
use shared::{api::names, model::Epoch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// How often the Lease is renewed.
pub const RENEW_INTERVAL: Duration = Duration::from_secs(10);
/// How long a renewal holds, in seconds.
const DURATION_SECONDS: i32 = 40;
/// Conflicts in a row before writing is given up for this time.
const CONFLICTS_MAX: usize = 5;

/// The Lease as this start of the agent holds it.
#[derive(Clone)]
pub struct AgentLease {
    api: Api<Lease>,
    instance: Box<str>,
}

/// What taking the Lease told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// One higher than before.
    pub transitions: i64,
    /// The highest epoch that this cluster has known.
    pub epoch: Option<Epoch>,
}

impl AgentLease {
    /// Takes the Lease for this start of the agent.
    pub async fn take(client: Client, namespace: &str, instance: &str) -> anyhow::Result<(Self, Taken)> {
        let lease = Self {
            api: Api::namespaced(client, namespace),
            instance: instance.into(),
        };
        let taken = lease.take_over().await.with_context(|| {
            format!(
                "cannot take the Lease {namespace}/{}: the agent needs that namespace, and there the rights of \
                 deploy/agent (get, create, update on leases)",
                names::AGENT_LEASE
            )
        })?;
        info!(transitions = taken.transitions, epoch = ?taken.epoch, "took the Lease");
        Ok((lease, taken))
    }

    async fn take_over(&self) -> anyhow::Result<Taken> {
        for _ in 0..CONFLICTS_MAX {
            let found = self.api.get_opt(names::AGENT_LEASE).await?;
            let written = match found {
                None => {
                    let mut lease = self.blank();
                    self.hold(&mut lease, 1);
                    self.api.create(&PostParams::default(), &lease).await
                }
                Some(mut lease) => {
                    let before = lease
                        .spec
                        .as_ref()
                        .and_then(|spec| spec.lease_transitions)
                        .unwrap_or(0);
                    self.hold(&mut lease, before.saturating_add(1));
                    self.api
                        .replace(names::AGENT_LEASE, &PostParams::default(), &lease)
                        .await
                }
            };
            match written {
                Ok(lease) => return Ok(taken(&lease)),
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(error.into()),
            }
        }
        bail!("it was changed by somebody else {CONFLICTS_MAX} times in a row")
    }

    fn blank(&self) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some(names::AGENT_LEASE.into()),
                ..ObjectMeta::default()
            },
            spec: None,
        }
    }

    fn hold(&self, lease: &mut Lease, transitions: i32) {
        let now = MicroTime(Timestamp::now());
        lease.spec = Some(LeaseSpec {
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            holder_identity: Some(self.instance.to_string()),
            lease_duration_seconds: Some(DURATION_SECONDS),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        });
    }

    /// Remembers an epoch, durably, before anything of it is applied. A lower one changes nothing.
    pub async fn remember(&self, epoch: Epoch) -> anyhow::Result<()> {
        self.change(|lease| {
            let known = known_epoch(lease);
            if known.is_none_or(|known| known < epoch) {
                lease
                    .annotations_mut()
                    .insert(names::ANNOTATION_EPOCH.into(), epoch.to_string());
            }
        })
        .await
    }

    /// Renews the Lease until `drain`. It ends with an error when another agent holds it.
    pub async fn renew(self, drain: CancellationToken) -> anyhow::Result<()> {
        let mut interval = tokio::time::interval(RENEW_INTERVAL);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut failing = false;
        loop {
            tokio::select! {
                biased;
                () = drain.cancelled() => return Ok(()),
                _ = interval.tick() => {}
            }
            match self.change(|_| {}).await {
                Ok(()) => failing = false,
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

    async fn change(&self, change: impl Fn(&mut Lease)) -> anyhow::Result<()> {
        for _ in 0..CONFLICTS_MAX {
            let mut lease = self.api.get(names::AGENT_LEASE).await?;
            let holder = lease
                .spec
                .as_ref()
                .and_then(|spec| spec.holder_identity.clone())
                .unwrap_or_default();
            if *holder != *self.instance {
                return Err(AnotherHolder { holder }.into());
            }
            change(&mut lease);
            if let Some(spec) = &mut lease.spec {
                spec.renew_time = Some(MicroTime(Timestamp::now()));
            }
            match self
                .api
                .replace(names::AGENT_LEASE, &PostParams::default(), &lease)
                .await
            {
                Ok(_) => return Ok(()),
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(error.into()),
            }
        }
        bail!("the Lease was changed by somebody else {CONFLICTS_MAX} times in a row")
    }
}

/// Another start of the agent holds the Lease.
#[derive(Debug, thiserror::Error)]
#[error(
    "the Lease {} is held by another agent ({holder}): only one may run in a cluster, so this one stops",
    names::AGENT_LEASE
)]
pub struct AnotherHolder {
    holder: String,
}

fn known_epoch(lease: &Lease) -> Option<Epoch> {
    lease.annotations().get(names::ANNOTATION_EPOCH)?.parse().ok()
}

fn taken(lease: &Lease) -> Taken {
    let transitions = lease
        .spec
        .as_ref()
        .and_then(|spec| spec.lease_transitions)
        .unwrap_or(0);
    Taken {
        transitions: i64::from(transitions),
        epoch: known_epoch(lease),
    }
}
