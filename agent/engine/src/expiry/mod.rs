//! Owns: the Leases of source clusters in the agent's namespace (KEP-1645, Endpoint TTL; ADR 0047): the leader renews
//! them, every agent looks at them, and an agent that saw one unmoved for its whole time removes what came from that
//! source. An agent that could not write itself in that time judges nothing. `upkeep` and `judge` decide, this does.
//! Never: creates again what an expired Lease removed; the leader's plan does, once the Lease moves.

mod object;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::Context;
use api::{
    identity_lease::OwnLease,
    names::AGENT_MANAGER,
    server::{Api, Client},
};
use k8s_openapi::api::coordination::v1::Lease;
use kube_core::params::{DeleteParams, ListParams, PostParams, Preconditions};
use model::{ClusterId, policy::LossAction};
use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    apply::Handle,
    lease::{Monotonic, WritePermit},
    plan::{Expired, Situation},
};
pub use agent_core::expiry::{judge, upkeep};
use judge::{Judge, Look, Over, SourceLease};
use upkeep::{Settings, Task, Upkeep};

/// Shortest wait between two looks because a hub may confirm others than before.
const NEWS_WAIT: Duration = Duration::from_secs(2);

/// Metrics of the Leases of sources.
#[derive(Debug, Clone, Default)]
pub struct ExpiryMetrics {
    leases: Gauge,
    expired: Gauge,
    removed: Counter,
    taken: Gauge,
    failing: Gauge,
}

impl ExpiryMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let leases = "Leases of source clusters in this cluster";
        registry.register("source_leases", leases, metrics.leases.clone());
        let expired = "Source clusters whose Leases this agent saw expire, and that are not back";
        registry.register("source_leases_expired", expired, metrics.expired.clone());
        let removed = "Objects that this agent removed, or said not to be ready, because the Lease of their source expired";
        registry.register("source_lease_actions", removed, metrics.removed.clone());
        let taken = "Source clusters under whose Lease's name somebody else's object stands";
        registry.register("source_leases_taken", taken, metrics.taken.clone());
        let failing =
            "1 while this agent cannot list or renew the Leases of source clusters, or write at all";
        registry.register("source_leases_failing", failing, metrics.failing.clone());
        metrics
    }
}

/// The Leases of sources, as one agent sees them.
pub struct SourceLeases {
    api: Api<Lease>,
    holder: String,
    settings: Settings,
    judge: Judge,
    upkeep: Upkeep,
    apply: Handle,
    permit: WritePermit,
    /// Its renewals prove that this agent can write.
    own: OwnLease,
    clock: Monotonic,
    metrics: ExpiryMetrics,
    /// Sources whose Lease's name is taken by an unmanaged object, as people were told.
    taken: BTreeSet<ClusterId>,
    /// Time at which the API server last refused to renew a Lease that is over and did not move since.
    refused: BTreeMap<ClusterId, Duration>,
    expired: Expired,
}

impl SourceLeases {
    /// The ones in `namespace`, which `holder` renews as long as it leads; `own` is the Lease that says that it runs.
    pub fn new(
        client: Client,
        (namespace, holder): (&str, &str),
        settings: Settings,
        (apply, permit, own): (Handle, WritePermit, OwnLease),
        clock: Monotonic,
        metrics: ExpiryMetrics,
    ) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            holder: holder.to_owned(),
            settings,
            judge: Judge::new(settings.duration, settings.look_every()),
            upkeep: Upkeep::new(settings),
            apply,
            permit,
            own,
            clock,
            metrics,
            taken: BTreeSet::new(),
            refused: BTreeMap::new(),
            expired: Expired::new(),
        }
    }

    /// Looks after them until `drain`.
    pub async fn run(mut self, drain: CancellationToken) -> anyhow::Result<()> {
        let mut failing = false;
        loop {
            let turn = drain.run_until_cancelled(self.turn()).await;
            if let Some(turn) = &turn {
                self.metrics.failing.set(turn.is_err().into());
            }
            match turn {
                None => return Ok(()),
                Some(Ok(())) => {
                    if std::mem::take(&mut failing) {
                        info!("the Leases of source clusters can be looked at again");
                    }
                }
                Some(Err(error)) => {
                    if !std::mem::replace(&mut failing, true) {
                        warn!(
                            error = format!("{error:#}"),
                            "cannot look after the Leases of source clusters; trying again"
                        );
                    }
                }
            }
            let news = async {
                tokio::time::sleep(NEWS_WAIT).await; // a fleet that comes back says so in many words
                self.apply.confirmed_anew().await;
            };
            tokio::select! {
                biased;
                () = drain.cancelled() => return Ok(()),
                () = news => {}
                () = tokio::time::sleep(self.settings.look_every()) => {}
            }
        }
    }

    /// One look: the leader renews, everybody judges, and what expired goes.
    pub async fn turn(&mut self) -> anyhow::Result<()> {
        let asked = (self.clock)();
        let since = self.judge.answered().unwrap_or(asked);
        let (listed, proven) = tokio::join!(self.list(), self.own.proven_since(since));
        let mut leases = listed?;
        let could_write = proven.is_ok();
        let mut trouble = proven
            .context("cannot renew the Lease of this agent itself: until it can, it lets no source expire")
            .err();
        let mut kept = BTreeSet::new();
        if self.permit.is_leaders() {
            let situation = self.apply.situation_of_sources();
            trouble = self.keep(&mut leases, &situation).await.err().or(trouble);
            let is_kept = |cluster: &&ClusterId| self.upkeep.is_kept(cluster, &situation);
            kept = leases.keys().filter(is_kept).cloned().collect();
        }
        let found = leases
            .iter()
            .map(|(cluster, lease)| (cluster.clone(), object::read(lease)));
        let look = Look {
            asked,
            answered: (self.clock)(),
            could_write,
        };
        let over = self.judge.look(&found.collect(), &kept, look);
        let (over, refused) = self.renewable(over, &leases).await;
        trouble = refused.or(trouble);
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.metrics.leases.set(count(leases.len()));
        self.metrics.expired.set(count(over.len()));
        self.tell(&over);
        self.let_go(&over).await?;
        trouble.map_or(Ok(()), Err)
    }

    /// All that an agent made, as they are: not from a cache, which may be of long ago.
    async fn list(&self) -> anyhow::Result<BTreeMap<ClusterId, Lease>> {
        let listed = self
            .api
            .list(&ListParams::default().labels(&object::selector()))
            .await;
        let listed = listed.context(
            "cannot list the Leases of source clusters: the agent needs the rights of deploy/manifests/agent (create, \
             delete, get, list, update on leases)",
        )?;
        let ours = listed
            .items
            .into_iter()
            .filter_map(|lease| Some((object::source(&lease)?, lease)));
        Ok(ours.collect())
    }

    /// Makes, renews and deletes what the leader has to. One that fails does not keep the others from their turn. To renew
    /// one takes no permit: it states uid and version, so that it does no harm when another agent leads by now, and an
    /// API server that is slow or refuses a moment costs no source its time.
    async fn keep(
        &mut self,
        leases: &mut BTreeMap<ClusterId, Lease>,
        situation: &Situation,
    ) -> anyhow::Result<()> {
        let found: BTreeMap<ClusterId, SourceLease> = leases
            .iter()
            .map(|(cluster, lease)| (cluster.clone(), object::read(lease)))
            .collect();
        let tasks = self.upkeep.tasks(&found, situation, (self.clock)());
        if let Some(here) = &situation.here {
            self.taken.retain(|cluster| here.contains(cluster));
        }
        let mut failed = Ok(());
        for task in tasks {
            if self.permit.holds() || matches!(task, Task::Renew(..)) {
                let done = self.perform(task, leases).await;
                failed = failed.and(done);
            }
        }
        let taken = i64::try_from(self.taken.len()).unwrap_or(i64::MAX);
        self.metrics.taken.set(taken);
        failed
    }

    async fn perform(&mut self, task: Task, leases: &mut BTreeMap<ClusterId, Lease>) -> anyhow::Result<()> {
        match task {
            Task::Create(cluster, action) => self.create(cluster, action, leases).await,
            Task::Renew(cluster, action) => self.renew(cluster, action, leases).await,
            Task::Delete(cluster) => {
                if let Some(lease) = leases.remove(&cluster) {
                    let deleted = self.api.delete(&object::name(&cluster), &only(&lease)).await;
                    if let Err(error) = deleted
                        && !is_another(&error)
                    {
                        return Err(error).context(format!("cannot delete the Lease of {cluster}"));
                    }
                }
                self.upkeep.deleted(&cluster);
                Ok(())
            }
        }
    }

    /// An unmanaged object of that name stays as it is.
    async fn create(
        &mut self,
        cluster: ClusterId,
        action: LossAction,
        leases: &mut BTreeMap<ClusterId, Lease>,
    ) -> anyhow::Result<()> {
        let mut lease = object::blank(&cluster);
        object::renew(&mut lease, &self.holder, self.settings.duration, action);
        match self.api.create(&ours(), &lease).await {
            Ok(lease) => {
                self.taken.remove(&cluster);
                self.wrote(cluster, lease, leases);
                Ok(())
            }
            Err(error) if is_another(&error) => {
                if self.taken.insert(cluster.clone()) {
                    warn!(
                        %cluster,
                        lease = object::name(&cluster),
                        "somebody else's Lease has the name of the one that this source needs: it is left alone, and what \
                         came from the source stays until it is deleted or renamed"
                    );
                }
                Ok(())
            }
            Err(error) => Err(error).context(format!("cannot make the Lease of {cluster}")),
        }
    }

    async fn renew(
        &mut self,
        cluster: ClusterId,
        action: LossAction,
        leases: &mut BTreeMap<ClusterId, Lease>,
    ) -> anyhow::Result<()> {
        let Some(mut lease) = leases.get(&cluster).cloned() else {
            return Ok(());
        };
        object::renew(&mut lease, &self.holder, self.settings.duration, action);
        match self.api.replace(&object::name(&cluster), &ours(), &lease).await {
            Ok(lease) => {
                self.wrote(cluster, lease, leases);
                Ok(())
            }
            Err(error) if is_another(&error) => Ok(()), // it moved: the next look shows how
            Err(error) => Err(error).context(format!("cannot renew the Lease of {cluster}")),
        }
    }

    fn wrote(&mut self, cluster: ClusterId, lease: Lease, leases: &mut BTreeMap<ClusterId, Lease>) {
        let now = (self.clock)();
        self.upkeep.wrote(cluster.clone(), object::stamp(&lease), now);
        leases.insert(cluster, lease);
    }

    /// Returns those that are over and could have been renewed. If the API server refuses a Lease of a source (a
    /// webhook or a policy that knows it by its name), the leader cannot renew it, though everybody writes its own.
    /// Once it takes them again the leader has the whole time of the Lease to renew it. Leases that are late are tried
    /// too: a refusal that ends shortly before a Lease is over has kept the leader from renewing it as well.
    async fn renewable(
        &mut self,
        over: BTreeMap<ClusterId, Over>,
        leases: &BTreeMap<ClusterId, Lease>,
    ) -> (BTreeMap<ClusterId, Over>, Option<anyhow::Error>) {
        let (mut renewable, mut refused) = (BTreeMap::new(), None);
        let late: BTreeSet<ClusterId> = self.judge.late().cloned().collect();
        self.refused
            .retain(|cluster, _| over.contains_key(cluster) || late.contains(cluster));
        for lease in late.iter().filter_map(|cluster| leases.get_key_value(cluster)) {
            refused = self.could_renew(lease).await.err().or(refused);
        }
        for (cluster, over) in over {
            if self.expired.contains_key(&cluster) {
                renewable.insert(cluster, over); // it was proven then, and has not moved since
                continue;
            }
            let Some(lease) = leases.get_key_value(&cluster) else {
                continue;
            };
            match self.could_renew(lease).await {
                Ok(true) if !self.was_refused(&cluster, lease.1) => {
                    renewable.insert(cluster, over);
                }
                Ok(_) => {}
                Err(error) => refused = Some(error),
            }
        }
        (renewable, refused)
    }

    /// Tries by a dry run whether a Lease could be renewed, and remembers a refusal. False: it has moved, and the next look
    /// shows how.
    async fn could_renew(&mut self, (cluster, lease): (&ClusterId, &Lease)) -> anyhow::Result<bool> {
        match self.api.replace(&object::name(cluster), &tried(), lease).await {
            Ok(_) => Ok(true),
            Err(error) if is_another(&error) => Ok(false),
            Err(error) => {
                self.refused.insert(cluster.clone(), (self.clock)());
                let what = format!("nobody could renew the Lease of {cluster}, so that it does not expire");
                Err(error).context(what)
            }
        }
    }

    /// Returns true if the API server refused to renew it less than its whole time ago.
    fn was_refused(&self, cluster: &ClusterId, lease: &Lease) -> bool {
        let whole_time = object::read(lease).duration.max(self.settings.duration);
        let refused = self.refused.get(cluster);
        refused.is_some_and(|at| (self.clock)().saturating_sub(*at) < whole_time)
    }

    /// People hear of what expires and of what is back; the plan heeds it from now on.
    fn tell(&mut self, over: &BTreeMap<ClusterId, Over>) {
        let expired: Expired = over
            .iter()
            .map(|(cluster, over)| (cluster.clone(), over.action))
            .collect();
        for (cluster, action) in &expired {
            if self.expired.get(cluster) != Some(action) {
                warn!(
                    %cluster, %action,
                    "nobody has renewed the Lease of this source for its whole time: what came from it goes, as the policy says"
                );
            }
        }
        for cluster in self
            .expired
            .keys()
            .filter(|cluster| !expired.contains_key(*cluster))
        {
            info!(%cluster, "the Lease of this source is renewed again");
        }
        if expired != self.expired {
            self.apply.feed(|desired| (desired.expire(expired.clone()), ()));
            self.expired = expired;
        }
    }

    /// Takes away what came from sources that expired. Before every request the Leases behind it are read again.
    async fn let_go(&self, over: &BTreeMap<ClusterId, Over>) -> anyhow::Result<()> {
        if over.is_empty() {
            return Ok(());
        }
        for service in self.apply.services_of_expired(&self.expired) {
            let mut expiring = self.apply.expiring(&service, &self.expired);
            while let Some(sources) = expiring.next_is_of() {
                if !self.stand_still(over, sources).await? {
                    return Ok(()); // somebody renewed one: the next look judges anew
                }
                let done = expiring.perform_next().await;
                done.with_context(|| format!("cannot take away what expired of {service}"))?;
                self.metrics.removed.inc();
            }
        }
        Ok(())
    }

    async fn stand_still(
        &self,
        over: &BTreeMap<ClusterId, Over>,
        sources: &BTreeSet<ClusterId>,
    ) -> anyhow::Result<bool> {
        for cluster in sources {
            let found = self.api.get_opt(&object::name(cluster)).await?;
            let stamp = found.as_ref().map(object::stamp);
            if stamp.is_none() || stamp.as_ref() != over.get(cluster).map(|over| &over.stamp) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Time to wait between two looks.
    pub fn look_every(&self) -> Duration {
        self.settings.look_every()
    }
}

/// The agent's writes bear its name, by which it knows its Leases again.
fn ours() -> PostParams {
    PostParams {
        field_manager: Some(AGENT_MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// A write that the API server judges and does not carry out.
fn tried() -> PostParams {
    PostParams {
        dry_run: true,
        ..ours()
    }
}

/// This very object, in this version.
fn only(lease: &Lease) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions {
            uid: lease.metadata.uid.clone(),
            resource_version: lease.metadata.resource_version.clone(),
        }),
        ..DeleteParams::default()
    }
}

/// Another object or version is there, or none any more.
fn is_another(error: &api::server::Error) -> bool {
    matches!(error, api::server::Error::Api(status) if matches!(status.code, 404 | 409))
}
