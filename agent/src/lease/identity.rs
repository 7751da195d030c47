//! Owns: the Lease that each replica keeps of itself, after the pattern of KEP-1965: who runs in this cluster, leading or
//! standing by. The leader deletes those of processes that are long gone; `collect` decides which.
//! Never: says who leads (the Lease `tributary-agent` does), or who may do what: a holder is a claim.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams, Preconditions},
};
use shared::{
    api::names::{AGENT_MANAGER, LABEL_HOSTNAME, LABEL_IDENTITY},
    model::{derived_name::identity_lease_suffix, validate},
    process::random,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::{
    Monotonic, RELEASE_WAIT, WritePermit,
    collect::{Collector, Identity},
};

/// How often a replica renews its own, but for some jitter.
const RENEW_PERIOD: Duration = Duration::from_secs(10);
/// By how much a wait is longer, at most, in a thousand of [`RENEW_PERIOD`].
const JITTER_PERMILLE: u32 = 40;
/// How long a renewal holds, for whoever looks: four of them may be missed.
const DURATION_SECONDS: i32 = 40;
/// How often the leader looks for those of processes that are gone.
const COLLECT_PERIOD: Duration = Duration::from_secs(5 * 60);

/// The Lease of this replica.
pub struct IdentityLease {
    api: Api<Lease>,
    name: String,
    /// Another one at every start.
    holder: String,
    host: String,
    permit: WritePermit,
    clock: Monotonic,
    collector: Collector,
    looked: Option<Duration>,
    /// As it was written last.
    written: Option<Lease>,
}

impl IdentityLease {
    /// Of a replica at `place` (its pod) on `host`, in `namespace`.
    pub fn new(
        client: Client,
        namespace: &str,
        (place, host): (&str, &str),
        permit: WritePermit,
        clock: Monotonic,
    ) -> Self {
        let name = format!("{AGENT_MANAGER}-{}", identity_lease_suffix(place, AGENT_MANAGER));
        Self {
            api: Api::namespaced(client, namespace),
            holder: format!("{name}_{:032x}", random::<u128>()),
            name,
            host: host.to_owned(),
            permit,
            clock,
            collector: Collector::default(),
            looked: None,
            written: None,
        }
    }

    /// Keeps it until `drain`, and deletes it then. It is for people: what fails is tried again and ends nobody.
    pub async fn run(mut self, drain: CancellationToken) -> anyhow::Result<()> {
        loop {
            let turn = drain.run_until_cancelled(self.turn()).await;
            if let Some(Err(error)) = &turn {
                debug!(
                    error = format!("{error:#}"),
                    "the Lease of this process is not renewed"
                );
            }
            let jitter = RENEW_PERIOD * (random::<u32>() % JITTER_PERMILLE) / 1_000;
            tokio::select! {
                biased;
                () = drain.cancelled() => break,
                () = tokio::time::sleep(RENEW_PERIOD + jitter) => {}
            }
        }
        let _ = tokio::time::timeout(RELEASE_WAIT, self.give_up()).await; // the leader collects one that stays
        Ok(())
    }

    /// Renews it once; the leader looks at those of others now and then.
    pub async fn turn(&mut self) -> anyhow::Result<()> {
        self.renew().await?;
        let now = (self.clock)();
        let due = self
            .looked
            .is_none_or(|at| now.saturating_sub(at) >= COLLECT_PERIOD);
        if due && self.permit.holds() {
            self.looked = Some(now);
            self.collect(now).await?;
        }
        Ok(())
    }

    async fn renew(&mut self) -> anyhow::Result<()> {
        let found = match self.written.take() {
            Some(lease) => Some(lease),
            None => self.api.get_opt(&self.name).await?,
        };
        let is_new = found.is_none();
        let lease = self.renewed(found);
        let parameters = PostParams {
            field_manager: Some(AGENT_MANAGER.to_owned()),
            ..PostParams::default()
        };
        let written = if is_new {
            self.api.create(&parameters, &lease).await
        } else {
            self.api.replace(&self.name, &parameters, &lease).await
        };
        self.written = Some(written?); // after a conflict it is read again at the next turn
        Ok(())
    }

    /// One that another start left is taken over, and says so.
    fn renewed(&self, found: Option<Lease>) -> Lease {
        let mut lease = found.unwrap_or_default();
        let now = MicroTime(Timestamp::now());
        let before = lease.spec.take();
        let same = before
            .as_ref()
            .is_some_and(|before| before.holder_identity.as_ref() == Some(&self.holder));
        let transitions = before.as_ref().map_or(0, |before| {
            before
                .lease_transitions
                .unwrap_or(0)
                .saturating_add(i32::from(!same))
        });
        let acquired = before.and_then(|before| before.acquire_time).filter(|_| same);
        lease.spec = Some(LeaseSpec {
            acquire_time: acquired.or_else(|| Some(now.clone())),
            renew_time: Some(now),
            holder_identity: Some(self.holder.clone()),
            lease_duration_seconds: Some(DURATION_SECONDS),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        });
        lease.metadata = ObjectMeta {
            name: Some(self.name.clone()),
            managed_fields: None,
            ..lease.metadata
        };
        let labels = lease.labels_mut();
        labels.insert(LABEL_IDENTITY.into(), AGENT_MANAGER.into());
        // A host name may be longer than a label's value: then the Lease does without.
        if validate::label_value(LABEL_HOSTNAME, &self.host).is_ok() {
            labels.insert(LABEL_HOSTNAME.into(), self.host.clone());
        }
        lease
    }

    /// Deletes those of processes that are long gone, each read again right before.
    async fn collect(&mut self, now: Duration) -> anyhow::Result<()> {
        let selector = format!("{LABEL_IDENTITY}={AGENT_MANAGER}");
        let listed = self.api.list(&ListParams::default().labels(&selector)).await?;
        let found: BTreeMap<Box<str>, Identity> = listed
            .items
            .iter()
            .map(|lease| (lease.name_any().into(), identity(lease)))
            .collect();
        for name in self.collector.look(&found, &self.name, now) {
            let Some(lease) = self.api.get_opt(&name).await? else {
                continue;
            };
            let unmoved = found
                .get(&name)
                .is_some_and(|seen| seen.version == identity(&lease).version);
            if !unmoved {
                continue; // it moved after all
            }
            match self.api.delete(&name, &only(&lease)).await {
                Ok(_) => info!(%name, "deleted the Lease of an agent that is long gone"),
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Deletes it, if it is still this start's.
    async fn give_up(mut self) -> anyhow::Result<()> {
        let found = match self.written.take() {
            Some(lease) => Some(lease),
            // It ended in the midst of a renewal, whose answer it did not see.
            None => self.api.get_opt(&self.name).await?,
        };
        let is_ours = |lease: &Lease| {
            let spec = lease.spec.as_ref();
            spec.is_some_and(|spec| spec.holder_identity.as_ref() == Some(&self.holder))
        };
        if let Some(lease) = found.filter(is_ours) {
            self.api.delete(&self.name, &only(&lease)).await?;
        }
        Ok(())
    }
}

fn only(lease: &Lease) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions {
            uid: lease.metadata.uid.clone(),
            resource_version: lease.metadata.resource_version.clone(),
        }),
        ..DeleteParams::default()
    }
}

/// What is looked at of one of them.
fn identity(lease: &Lease) -> Identity {
    let spec = lease.spec.as_ref();
    let renewed = spec.and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0);
    let created = lease.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let seconds = spec
        .and_then(|spec| spec.lease_duration_seconds)
        .unwrap_or(DURATION_SECONDS);
    let over = renewed
        .or(created)
        .map(|time| Timestamp::now().as_second() - time.as_second() - i64::from(seconds));
    Identity {
        version: lease.resource_version().unwrap_or_default().into(),
        over_since: over
            .and_then(|over| u64::try_from(over).ok())
            .map(Duration::from_secs),
    }
}

#[cfg(test)]
mod tests;
