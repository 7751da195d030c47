//! Owns: the Lease that each replica of a program keeps of itself, after the pattern of KEP-1965: who runs in this
//! cluster. A process with the right deletes those of processes that are long gone; `collect` decides which.
//! Never: says who leads or who may do what, because a holder is a claim; or ends anybody: failures are retried.

mod collect;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::bail;
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube_core::{
    ObjectMeta, ResourceExt,
    params::{DeleteParams, ListParams, PostParams, Preconditions},
};
use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::server::{Api, Client};

use collect::{Collector, Identity};
use model::{derived_name::identity_lease_suffix, validate};
use pace::{Monotonic, random};

use crate::names::{LABEL_HOSTNAME, LABEL_IDENTITY};

/// Renewal interval of a replica's own Lease, but for some jitter.
const RENEW_PERIOD: Duration = Duration::from_secs(10);
/// By how much a wait is longer, at most, in a thousand of [`RENEW_PERIOD`].
const JITTER_PERMILLE: u32 = 40;
/// Duration of a Lease that does not state one, as upstream's: an hour.
const DURATION_SECONDS_DEFAULT: i32 = 3_600;
/// Interval of looking for Leases of processes that are gone.
const COLLECT_PERIOD: Duration = Duration::from_secs(5 * 60);
/// Most Leases that are looked at then; further ones have their turn when some of these are gone.
const COLLECT_MAX: u32 = 500;
/// After so many failures in a row people are told: then others can see that a renewal is missing.
const FAILURES_TOLD: u32 = 3;
/// Most times that a renewal is tried again after a conflict.
const TRIES_MAX: usize = 3;
/// Longest wait for the last requests: a clean end is not held up by an API server that does not answer.
const GIVE_UP_WAIT: Duration = Duration::from_secs(1);

/// Its metrics. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct IdentityLeaseMetrics {
    failing: Gauge,
    collected: Counter,
}

impl IdentityLeaseMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let failing =
            "1 while this process cannot renew the Lease that says that it runs, or look at those of others";
        registry.register("identity_lease_failing", failing, metrics.failing.clone());
        let collected = "Leases deleted whose process is long gone";
        registry.register("identity_leases_collected", collected, metrics.collected.clone());
        metrics
    }
}

/// A process, and where it says that it runs.
#[derive(Debug, Clone)]
pub struct Replica {
    /// Its program: the value of [`LABEL_IDENTITY`], the beginning of the Lease's name, the field manager.
    pub program: &'static str,
    /// Namespace of its Lease.
    pub namespace: String,
    /// The identity of this replica, the same at every start and unique: the Lease's name follows from it.
    pub place: String,
    /// The host, for people.
    pub host: String,
    /// Duration stated in the Lease, in seconds. Nobody deletes it before it has not moved for an hour.
    pub duration_seconds: i32,
}

/// The Lease of this replica, and the care for those of others.
pub struct IdentityLease {
    own: OwnLease,
    api: Api<Lease>,
    namespace: String,
    program: &'static str,
    name: String,
    /// Returns true if the Leases of others may be deleted now.
    may_collect: Box<dyn Fn() -> bool + Send + Sync>,
    clock: Monotonic,
    metrics: IdentityLeaseMetrics,
    collector: Collector,
    looked: Option<Duration>,
    /// Turns in a row that failed.
    failures: u32,
}

/// The Lease of this replica alone. Each renewal proves that this process can write. Clones are the same.
#[derive(Clone)]
pub struct OwnLease(Arc<Own>);

struct Own {
    api: Api<Lease>,
    replica: Replica,
    name: String,
    /// Another one at every start.
    holder: String,
    clock: Monotonic,
    /// One renewal at a time.
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// As it was written last. A request without an answer leaves it as it is; a conflict forgets it.
    written: Option<Lease>,
    /// Time at which the last renewal began that succeeded.
    renewed: Option<Duration>,
    /// This process ends: nobody renews the Lease any more, so that none makes again what was deleted.
    given_up: bool,
}

impl OwnLease {
    fn new(client: Client, replica: Replica, clock: Monotonic) -> Self {
        let suffix = identity_lease_suffix(&replica.place, replica.program);
        let name = format!("{}-{suffix}", replica.program);
        Self(Arc::new(Own {
            api: Api::namespaced(client, &replica.namespace),
            replica,
            holder: format!("{name}_{:032x}", random::<u128>()),
            name,
            clock,
            kept: Mutex::default(),
        }))
    }

    /// Proves that this process can write: a renewal that began at `since` or later succeeded. Renews the Lease unless one
    /// did already.
    pub async fn proven_since(&self, since: Duration) -> anyhow::Result<()> {
        let mut kept = self.0.kept.lock().await;
        if kept.renewed.is_some_and(|renewed| renewed >= since) {
            return Ok(());
        }
        self.0.renew(&mut kept).await
    }

    async fn renew(&self) -> anyhow::Result<()> {
        self.0.renew(&mut *self.0.kept.lock().await).await
    }

    /// Deletes it, if it is still this start's. A renewal that is under way ends before, and none begins after.
    async fn give_up(&self) -> anyhow::Result<()> {
        let own = &*self.0;
        let mut kept = own.kept.lock().await;
        kept.given_up = true;
        for _ in 0..TRIES_MAX {
            // Its last renewal may have landed without an answer.
            let found = own.api.get_opt(&own.name).await?;
            let Some(lease) = found.filter(|lease| own.holds(lease)) else {
                return Ok(());
            };
            match own.api.delete(&own.name, &only(&lease)).await {
                Ok(_) => return Ok(()),
                // A renewal landed meanwhile whose answer nobody waited for.
                Err(crate::server::Error::Api(status)) if status.code == 409 => {}
                Err(crate::server::Error::Api(status)) if status.code == 404 => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        bail!("it was changed by somebody else {TRIES_MAX} times in a row")
    }
}

impl Own {
    /// Returns true if the Lease is this start's.
    fn holds(&self, lease: &Lease) -> bool {
        let spec = lease.spec.as_ref();
        spec.is_some_and(|spec| spec.holder_identity.as_ref() == Some(&self.holder))
    }

    async fn renew(&self, kept: &mut Kept) -> anyhow::Result<()> {
        if kept.given_up {
            bail!("this process ends, so that its Lease is renewed no more");
        }
        for _ in 0..TRIES_MAX {
            let found = match kept.written.clone() {
                Some(lease) => Some(lease),
                None => self.api.get_opt(&self.name).await?,
            };
            let began = (self.clock)();
            let was_there = found.is_some();
            match self.put(found).await {
                Ok(lease) => {
                    (kept.written, kept.renewed) = (Some(lease), Some(began));
                    return Ok(());
                }
                // It was deleted, or an earlier renewal landed whose answer was lost.
                Err(crate::server::Error::Api(status))
                    if status.code == 409 || (status.code == 404 && was_there) =>
                {
                    kept.written = None;
                }
                Err(error) => return Err(error.into()),
            }
        }
        bail!("it was changed by somebody else {TRIES_MAX} times in a row")
    }

    async fn put(&self, found: Option<Lease>) -> Result<Lease, crate::server::Error> {
        let is_new = found.is_none();
        let lease = self.renewed(found);
        let parameters = PostParams {
            field_manager: Some(self.replica.program.to_owned()),
            ..PostParams::default()
        };
        if is_new {
            self.api.create(&parameters, &lease).await
        } else {
            self.api.replace(&self.name, &parameters, &lease).await
        }
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
            lease_duration_seconds: Some(self.replica.duration_seconds),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        });
        lease.metadata = ObjectMeta {
            name: Some(self.name.clone()),
            managed_fields: None,
            ..lease.metadata
        };
        let labels = lease.labels_mut();
        labels.insert(LABEL_IDENTITY.into(), self.replica.program.into());
        // A host name may be longer than a label's value: then the Lease does without.
        if validate::label_value(LABEL_HOSTNAME, &self.replica.host).is_ok() {
            labels.insert(LABEL_HOSTNAME.into(), self.replica.host.clone());
        }
        lease
    }
}

impl IdentityLease {
    /// The Lease of a replica, which deletes those of others that are long gone whenever `may_collect`.
    pub fn new(
        client: Client,
        replica: Replica,
        clock: Monotonic,
        may_collect: impl Fn() -> bool + Send + Sync + 'static,
        metrics: IdentityLeaseMetrics,
    ) -> Self {
        let (namespace, program) = (replica.namespace.clone(), replica.program);
        let api = Api::namespaced(client.clone(), &namespace);
        let own = OwnLease::new(client, replica, clock.clone());
        Self {
            name: own.0.name.clone(),
            own,
            api,
            namespace,
            program,
            may_collect: Box::new(may_collect),
            clock,
            metrics,
            collector: Collector::default(),
            looked: None,
            failures: 0,
        }
    }

    /// The Lease of this replica alone.
    pub fn own(&self) -> OwnLease {
        self.own.clone()
    }

    /// Keeps it until `drain`, and deletes it then. It is for people: what fails is tried again and ends nobody.
    pub async fn run(mut self, drain: CancellationToken) -> anyhow::Result<()> {
        loop {
            // A renewal that is under way is waited for: one that was dropped could make again what is deleted below.
            let too_long = async {
                drain.cancelled().await;
                tokio::time::sleep(GIVE_UP_WAIT).await;
            };
            let turn = tokio::select! {
                biased;
                turn = self.turn() => Some(turn),
                () = too_long => None,
            };
            if let Some(turn) = turn {
                self.tell(turn);
            }
            let jitter = RENEW_PERIOD * (random::<u32>() % JITTER_PERMILLE) / 1_000;
            tokio::select! {
                biased;
                () = drain.cancelled() => break,
                () = tokio::time::sleep(RENEW_PERIOD + jitter) => {}
            }
        }
        let _ = tokio::time::timeout(GIVE_UP_WAIT, self.own.give_up()).await; // others collect one that stays
        Ok(())
    }

    /// Reports a failure that lasts longer than an answer may be lost, and its end.
    fn tell(&mut self, turn: anyhow::Result<()>) {
        let told = self.failures >= FAILURES_TOLD;
        let Err(error) = turn else {
            self.failures = 0;
            self.metrics.failing.set(0);
            if told {
                info!(name = self.name, "the Lease of this process is kept again");
            }
            return;
        };
        self.failures = self.failures.saturating_add(1);
        self.metrics.failing.set(1);
        let (error, name) = (format!("{error:#}"), &self.name);
        let namespace = &self.namespace;
        if !told && self.failures >= FAILURES_TOLD {
            warn!(
                error,
                %namespace,
                %name,
                "cannot renew the Lease that says that this process runs: see that the API server takes writes, that the \
                 namespace is there, and the rights on Leases in it (get, list, create, update, delete). An agent that \
                 cannot renew it lets no source expire"
            );
        } else {
            debug!(error, %namespace, %name, "the Lease of this process is not kept");
        }
    }

    /// Renews it once, and looks at those of others now and then.
    async fn turn(&mut self) -> anyhow::Result<()> {
        self.own.renew().await?;
        self.collect_if_due().await
    }

    async fn collect_if_due(&mut self) -> anyhow::Result<()> {
        let now = (self.clock)();
        let due = self
            .looked
            .is_none_or(|at| now.saturating_sub(at) >= COLLECT_PERIOD);
        if due && (self.may_collect)() {
            self.looked = Some(now);
            self.collect(now).await?;
        }
        Ok(())
    }

    /// Deletes those of processes that are long gone, each read again right before.
    async fn collect(&mut self, now: Duration) -> anyhow::Result<()> {
        let selector = format!("{LABEL_IDENTITY}={}", self.program);
        let those = ListParams::default().labels(&selector).limit(COLLECT_MAX);
        let listed = self.api.list(&those).await?;
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
                Ok(_) => {
                    self.metrics.collected.inc();
                    info!(%name, "deleted the Lease of a process that is long gone");
                }
                Err(crate::server::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => return Err(error.into()),
            }
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

/// The facts read of a Lease.
fn identity(lease: &Lease) -> Identity {
    let spec = lease.spec.as_ref();
    let renewed = spec.and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0);
    let created = lease.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let seconds = spec
        .and_then(|spec| spec.lease_duration_seconds)
        .unwrap_or(DURATION_SECONDS_DEFAULT);
    let over =
        |time: Timestamp| time.as_second().saturating_add(seconds.into()) < Timestamp::now().as_second();
    Identity {
        version: lease.resource_version().unwrap_or_default().into(),
        is_over: renewed.or(created).is_some_and(over),
    }
}

#[cfg(test)]
mod tests;
