//! One running agent, as a library: the watches, the rooms between them, the link. The program puts sockets and
//! flags around it; tests put simulated clusters and networks around it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::Context;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};
use prometheus_client::registry::Registry;
use shared::{
    api::{
        ClusterProperty,
        convert::NamespaceDenyList,
        identity_lease::{IdentityLease, IdentityLeaseMetrics, OwnLease, Replica},
        names, server,
    },
    api_client::{ApiMetrics, NoAnswer, ServedVersions, api_server, in_served_version},
    model::policy::Brake,
    process::{Backoff, Readiness, ReadyHandle, Supervisor, host_name, random},
    tls::HubConnector,
};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::{
    apply::{ApplyMetrics, Driver, DriverConfig, Handle},
    definition,
    expiry::{ExpiryMetrics, SourceLeases, upkeep::Settings},
    health::watch::HealthWatch,
    lease::{self, AgentLease, Election, LeaseMetrics, WritePermit},
    link::{CertificateWish, Complaints, Link, LinkMetrics, machine::Introduction},
    membership::{Membership, agree, keep::Keeper},
    observe::{Observer, Observing, known, removal},
    outbox::Outbox,
    plan::ImportRules,
    renewal::{RenewalMetrics, Renewing},
    watch::{Dirty, WatchMetrics, Watched, Watches, Whole, follow, follow_all},
};

/// First wait before a busy API server is asked again, at the start.
const START_RETRY_FIRST: Duration = Duration::from_millis(200);
/// Longest wait before that.
const START_RETRY_LONGEST: Duration = Duration::from_secs(5);
/// After this long a start that is not answered has failed.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Duration of a replica's Lease after a renewal, for observers: four renewals may be missed.
const IDENTITY_LEASE_SECONDS: i32 = 40;
/// Time after which a standby agent is ready although a kind cannot be listed.
const STANDBY_READY_WAIT: Duration = Duration::from_secs(10);

/// Options of an agent.
pub struct AgentOptions {
    /// The id and the clusterset in its certificate.
    pub membership: Membership,
    /// The cluster's API.
    pub client: Client,
    /// The way to the hub.
    pub connector: HubConnector,
    /// The agent's own namespace, where its Lease lives.
    pub namespace: String,
    /// The name under which it holds the Lease: see [`crate::lease::holder`].
    pub holder: String,
    /// Namespaces whose exports are denied.
    pub deny: NamespaceDenyList,
    /// True if everything is held, whatever namespaces exist.
    pub all_namespaces: bool,
    /// Rules for accepting imports from the hub.
    pub imports: ImportRules,
    /// The share of imports that a hub may remove at once before they are put on hold, and the time of the hold.
    pub withdrawals: Brake,
    /// Settings of the source clusters' Leases.
    pub source_leases: Settings,
    /// The certificate that the agent renews, if it does.
    pub renewing: Option<Renewing>,
    /// Time for which a node may be not ready before the nodes count as not all healthy.
    pub node_tolerance: Duration,
}

/// An agent's metrics.
#[derive(Clone, Default)]
pub struct AgentMetrics {
    /// Requests to the cluster.
    pub api: ApiMetrics,
    versions: ServedVersions,
    watches: WatchMetrics,
    apply: ApplyMetrics,
    lease: LeaseMetrics,
    identity_lease: IdentityLeaseMetrics,
    expiry: ExpiryMetrics,
    link: LinkMetrics,
    renewal: RenewalMetrics,
}

impl AgentMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let apply = ApplyMetrics::default();
        apply.register(registry);
        let versions = ServedVersions::default();
        let help = "1 for the version in which the cluster serves the kind, by kind and version";
        registry.register("served_version", help, versions.shown());
        Self {
            api: ApiMetrics::register(registry),
            versions,
            watches: WatchMetrics::register(registry),
            apply,
            lease: LeaseMetrics::register(registry),
            identity_lease: IdentityLeaseMetrics::register(registry),
            expiry: ExpiryMetrics::register(registry),
            link: LinkMetrics::register(registry),
            renewal: RenewalMetrics::register(registry),
        }
    }
}

/// Runs an agent beside what the supervisor runs already, until it is drained. Only one agent leads in a cluster: this
/// one stands by while another holds the Lease, with everything read and joined, no session and no permit to write; and
/// it releases the Lease when it ends in good order.
pub async fn run(
    mut options: AgentOptions,
    metrics: AgentMetrics,
    readiness: &Readiness,
    mut supervisor: Supervisor,
) -> anyhow::Result<()> {
    options.client = in_served_version(options.client, metrics.versions.clone());
    let Some(fingerprint) = supervisor.meanwhile(identify(&options)).await? else {
        return supervisor.run().await;
    };
    let (permit, stands_by) = (WritePermit::default(), CancellationToken::new());
    let warm = warm_up(&options, &metrics, &permit, &mut supervisor);
    let ready = ready(
        warm.watches.clone(),
        readiness.handle("cluster listed"),
        stands_by.clone(),
    );
    let drain = supervisor.shutdown().drain().clone();
    supervisor.spawn("readiness", async move {
        drain.run_until_cancelled(ready).await;
        drain.cancelled().await;
        Ok(())
    });
    let follow = agree::follow(
        warm.properties.clone(),
        options.membership.clone(),
        readiness.clone(),
        supervisor.shutdown().drain().clone(),
    );
    supervisor.spawn("what the cluster says of itself", async move {
        follow.await;
        Ok(())
    });
    let own = say_who_runs(&options, &metrics, &permit, &mut supervisor);
    look_after_sources(&options, &metrics, (&warm.apply, &permit, own), &mut supervisor);
    let wishes = renew(&mut options, &metrics, &mut supervisor);
    let elected = elect(&options, &metrics, &permit, &stands_by);
    let lease = supervisor.meanwhile(elected).await?;
    if let Some(lease) = lease.clone() {
        let keeper = Keeper::new(
            options.client.clone(),
            warm.properties.clone(),
            options.membership.clone(),
            permit.clone(),
        );
        let drain = supervisor.shutdown().drain().clone();
        supervisor.spawn("the properties of a member", keeper.run(lease.clone(), drain));
        lead(
            options,
            metrics,
            warm,
            (fingerprint, lease, wishes),
            (readiness, &mut supervisor),
        );
    }
    supervisor.run().await?;
    if let Some(lease) = lease {
        lease.release().await;
    }
    Ok(())
}

/// Looks at the Leases of source clusters, whether this agent leads or stands by: with no hub and an inactive leader,
/// somebody has to.
fn look_after_sources(
    options: &AgentOptions,
    metrics: &AgentMetrics,
    (apply, permit, own): (&Handle, &WritePermit, OwnLease),
    supervisor: &mut Supervisor,
) {
    let leases = SourceLeases::new(
        api_server(options.client.clone()),
        (&options.namespace, &options.holder),
        options.source_leases,
        (apply.clone(), permit.clone(), own),
        lease::monotonic(),
        metrics.expiry.clone(),
    );
    let drain = supervisor.shutdown().drain().clone();
    supervisor.spawn("the Leases of source clusters", leases.run(drain));
}

/// These Leases show people and tools which agents run in a cluster, leading or not. Returns this agent's own.
fn say_who_runs(
    options: &AgentOptions,
    metrics: &AgentMetrics,
    permit: &WritePermit,
    supervisor: &mut Supervisor,
) -> OwnLease {
    let replica = Replica {
        program: names::AGENT_MANAGER,
        namespace: options.namespace.clone(),
        place: options.holder.clone(),
        host: host_name(),
        duration_seconds: IDENTITY_LEASE_SECONDS,
    };
    let permit = permit.clone();
    let identity = IdentityLease::new(
        api_server(options.client.clone()),
        replica,
        lease::monotonic(),
        move || permit.holds(),
        metrics.identity_lease.clone(),
    );
    let (own, drain) = (identity.own(), supervisor.shutdown().drain().clone());
    supervisor.spawn("the Lease of this process", identity.run(drain));
    own
}

/// Renews the agent's certificate, whether it leads or stands by: only a leader has a session, and the others load the
/// certificate that it received. Returns the leader's end of what is asked for.
fn renew(
    options: &mut AgentOptions,
    metrics: &AgentMetrics,
    supervisor: &mut Supervisor,
) -> mpsc::Receiver<CertificateWish> {
    let (wishes, certificates) = mpsc::channel(1);
    if let Some(renewing) = options.renewing.take() {
        let at = (options.client.clone(), options.namespace.clone());
        let drain = supervisor.shutdown().drain().clone();
        supervisor.spawn(
            "the certificate",
            renewing.run(at, wishes, metrics.renewal.clone(), drain),
        );
    }
    certificates
}

/// Asks the cluster who it is.
async fn identify(options: &AgentOptions) -> anyhow::Result<String> {
    let fingerprint = patiently(|| fingerprint(&options.client)).await?;
    patiently(|| agree::check(&options.client, &options.membership)).await?;
    Ok(fingerprint)
}

/// Waits for the Lease.
async fn elect(
    options: &AgentOptions,
    metrics: &AgentMetrics,
    permit: &WritePermit,
    stands_by: &CancellationToken,
) -> anyhow::Result<AgentLease> {
    patiently(|| async {
        let AgentOptions {
            client,
            namespace,
            holder,
            ..
        } = options;
        let (clock, metrics) = ((lease::monotonic(), permit.clone()), metrics.lease.clone());
        let mut election = Election::new(api_server(client.clone()), namespace, holder, clock, metrics);
        election.won(|| stands_by.cancel()).await
    })
    .await
}

/// Ready when the cluster is listed. A standby agent is as ready as it can be after a while at the latest: no rollout
/// waits for kinds that it cannot list.
async fn ready(watches: Watches, listed: ReadyHandle, stands_by: CancellationToken) {
    let waited = async {
        stands_by.cancelled().await;
        tokio::time::sleep(STANDBY_READY_WAIT).await;
    };
    tokio::select! {
        biased;
        () = known(&watches) => {}
        () = waited => {}
    }
    drop(listed);
}

/// The caches that an agent has filled, whether it leads or not.
struct Warm {
    watches: Watches,
    properties: Watched<Whole<ClusterProperty>>,
    driver: Driver,
    apply: Handle,
    outbox: Arc<Mutex<Outbox>>,
    outbox_changed: watch::Sender<u64>,
}

/// Starts what reads the cluster and states facts to the outbox, where they stay.
fn warm_up(
    options: &AgentOptions,
    metrics: &AgentMetrics,
    permit: &WritePermit,
    supervisor: &mut Supervisor,
) -> Warm {
    let client = &options.client;
    let watches = Watches::default();
    metrics.watches.of(&watches);
    let properties = Watched::<Whole<ClusterProperty>>::new(|_| None);
    let config = DriverConfig {
        cluster: options.membership.cluster.clone(),
        deny: options.deny.clone(),
        permit: permit.clone(),
        withdrawals: options.withdrawals,
    };
    let (driver, apply) = Driver::new(
        api_server(client.clone()),
        watches.clone(),
        config,
        metrics.apply.clone(),
    );
    let outbox = Arc::new(Mutex::new(Outbox::new(removal)));
    let outbox_changed = watch::Sender::new(0);

    let drain = supervisor.shutdown().drain().clone();
    supervisor.spawn(
        "the watches",
        follow_all(watches.clone(), client.clone(), drain.clone()),
    );
    let (following, api, until) = (properties.clone(), Api::all(client.clone()), drain.clone());
    supervisor.spawn("the watch of ClusterProperties", async move {
        follow(api, &following, &until).await;
        Ok(())
    });
    let health = HealthWatch::new(client.clone(), lease::monotonic(), options.node_tolerance);
    let observing = Observing {
        watches: watches.clone(),
        properties: properties.clone(),
        observer: Observer::new(options.deny.clone()),
        outbox: outbox.clone(),
        outbox_changed: outbox_changed.clone(),
    };
    supervisor.spawn("observing", observing.run(health, drain));
    Warm {
        watches,
        properties,
        driver,
        apply,
        outbox,
        outbox_changed,
    }
}

/// Starts what only the leader does: it renews the Lease, speaks with the hub, and writes.
fn lead(
    options: AgentOptions,
    metrics: AgentMetrics,
    warm: Warm,
    (fingerprint, lease, certificates): (String, AgentLease, mpsc::Receiver<CertificateWish>),
    (readiness, supervisor): (&Readiness, &mut Supervisor),
) {
    let Warm {
        watches,
        driver,
        apply,
        outbox,
        outbox_changed,
        ..
    } = warm;
    let drain = supervisor.shutdown().drain().clone();
    supervisor.spawn("the Lease", lease.clone().keep(drain.clone()));
    apply.feed(|desired| (desired.keep_to(options.imports), ()));
    supervisor.spawn(
        "applying",
        driver.run(definition::of_imports(options.client.clone()), drain.clone()),
    );
    let holds = apply.clone().end_holds(lease.confirmations(), drain.clone());
    supervisor.spawn("the hold on withdrawals", holds);
    let namespaces_changed = Dirty::default();
    watches.namespaces.mark_changes(&namespaces_changed, |_| Some(()));
    let link = Link {
        connector: options.connector,
        introduction: Introduction {
            agent_version: env!("CARGO_PKG_VERSION").into(),
            cluster_fingerprint: fingerprint.into(),
            instance: instance().into(),
            lease_transitions: lease.transitions(),
        },
        known_epoch: lease.epoch(),
        hubs: Vec::new(),
        cluster: options.membership.cluster,
        lease,
        readiness: readiness.clone(),
        unready: None,
        outbox,
        outbox_changed: outbox_changed.subscribe(),
        apply,
        namespaces: watches.namespaces,
        namespaces_changed,
        all_namespaces: options.all_namespaces,
        certificates,
        complaints: Complaints::default(),
        metrics: metrics.link,
    };
    supervisor.spawn("the link to the hub", link.run(drain));
}

/// Asks again while the API server says that it has too much to do, or does not answer at all; anything else is for
/// people to see at once.
async fn patiently<T, F: Future<Output = anyhow::Result<T>>>(
    mut ask: impl FnMut() -> F,
) -> anyhow::Result<T> {
    let mut backoff = Backoff::new(START_RETRY_FIRST, START_RETRY_LONGEST);
    let asked_since = Instant::now();
    loop {
        let error = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let is_busy = error.chain().any(|cause| {
            let status = match (cause.downcast_ref(), cause.downcast_ref()) {
                (Some(kube::Error::Api(status)), _) | (_, Some(server::Error::Api(status))) => status.code,
                _ => 0,
            };
            status == 429 || status >= 500 || cause.is::<NoAnswer>()
        });
        if !is_busy || asked_since.elapsed() >= START_PATIENCE {
            return Err(error);
        }
        debug!(error = format!("{error:#}"), "asking the API server again");
        tokio::time::sleep(backoff.failed(random())).await;
    }
}

/// Fresh for every start.
fn instance() -> String {
    format!("{:032x}", random::<u128>())
}

async fn fingerprint(client: &Client) -> anyhow::Result<String> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let kube_system = namespaces.get(names::KUBE_SYSTEM_NAMESPACE).await.context(
        "cannot read the namespace kube-system, whose uid identifies the cluster: see that the API server answers \
         and that the RBAC of deploy/manifests/agent is applied",
    )?;
    kube_system.uid().context("the namespace kube-system has no uid")
}
