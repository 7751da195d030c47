//! One running agent, as a library: the watches, the rooms between them, the link. The program puts sockets and
//! flags around it; tests put simulated clusters and networks around it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};
use prometheus_client::registry::Registry;
use shared::{
    api::{ClusterProperty, convert::NamespaceDenyList, names},
    api_client::{ApiMetrics, NoAnswer, ServedVersions, in_served_version},
    model::ClusterId,
    process::{Backoff, Readiness, ReadyHandle, Supervisor, random},
    tls::HubConnector,
};
use tokio::{sync::watch, time::Instant};
use tracing::debug;

use crate::{
    apply::{ApplyMetrics, Driver, DriverConfig},
    cluster_id,
    lease::{AgentLease, LeaseMetrics},
    link::{Complaints, Link, LinkMetrics, machine::Introduction},
    observe::{Observer, Observing, known, removal},
    outbox::Outbox,
    plan::ImportRules,
    watch::{Dirty, Watched, Watches, Whole, follow},
};

/// First wait before a busy API server is asked again, at the start.
const START_RETRY_FIRST: Duration = Duration::from_millis(200);
/// Longest wait before that.
const START_RETRY_LONGEST: Duration = Duration::from_secs(5);
/// After this long a start that is not answered has failed.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// What an agent is told.
pub struct AgentOptions {
    /// The id in its certificate.
    pub cluster: ClusterId,
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
    /// Whether everything is held, whatever namespaces exist.
    pub all_namespaces: bool,
    /// What is taken of what the hub sends.
    pub imports: ImportRules,
}

/// What an agent counts.
#[derive(Clone, Default)]
pub struct AgentMetrics {
    /// Requests to the cluster.
    pub api: ApiMetrics,
    versions: ServedVersions,
    apply: ApplyMetrics,
    lease: LeaseMetrics,
    link: LinkMetrics,
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
            apply,
            lease: LeaseMetrics::register(registry),
            link: LinkMetrics::register(registry),
        }
    }
}

/// Runs an agent beside what the supervisor runs already, until it is drained. Only one agent works in a cluster:
/// this one waits, ready to, while another holds the Lease, and gives the Lease back when it ends in good order.
pub async fn run(
    mut options: AgentOptions,
    metrics: AgentMetrics,
    readiness: &Readiness,
    mut supervisor: Supervisor,
) -> anyhow::Result<()> {
    options.client = in_served_version(options.client, metrics.versions.clone());
    let begun = supervisor.meanwhile(begin(&options, &metrics, readiness)).await?;
    let lease = begun.as_ref().map(|begun| begun.lease.clone());
    if let Some(begun) = begun {
        start(options, metrics, begun, readiness, &mut supervisor);
    }
    supervisor.run().await?;
    if let Some(lease) = lease {
        lease.release().await;
    }
    Ok(())
}

/// What is known of the cluster before anything is done.
struct Begun {
    fingerprint: String,
    lease: AgentLease,
    listed: ReadyHandle,
}

/// Asks the cluster who it is, and waits for its Lease.
async fn begin(
    options: &AgentOptions,
    metrics: &AgentMetrics,
    readiness: &Readiness,
) -> anyhow::Result<Begun> {
    let client = &options.client;
    let listed = || readiness.handle("cluster listed");
    let awaited = Mutex::new(Some(listed()));
    let fingerprint = patiently(|| fingerprint(client)).await?;
    patiently(|| cluster_id::check(client, &options.cluster)).await?;
    let lease = patiently(|| {
        let waits = || drop(taken(&awaited)); // one that waits for another's end is as ready as it can be
        let (namespace, holder) = (&options.namespace, &options.holder);
        AgentLease::take(client.clone(), namespace, holder, &metrics.lease, waits)
    })
    .await?;
    Ok(Begun {
        fingerprint,
        lease,
        listed: taken(&awaited).unwrap_or_else(listed),
    })
}

fn taken<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Starts an agent's tasks under supervision.
fn start(
    options: AgentOptions,
    metrics: AgentMetrics,
    begun: Begun,
    readiness: &Readiness,
    supervisor: &mut Supervisor,
) {
    let AgentOptions {
        cluster,
        client,
        connector,
        deny,
        all_namespaces,
        imports,
        ..
    } = options;
    let Begun {
        fingerprint,
        lease,
        listed,
    } = begun;
    let watches = Watches::default();
    let properties = Watched::<Whole<ClusterProperty>>::new(|_| None);
    let config = DriverConfig {
        cluster: cluster.clone(),
        deny: deny.clone(),
    };
    let (driver, apply) = Driver::new(client.clone(), watches.clone(), config, metrics.apply);
    apply.feed(|desired| (desired.keep_to(imports), ()));
    let outbox = Arc::new(Mutex::new(Outbox::new(removal)));
    let outbox_changed = watch::Sender::new(0);

    let drain = supervisor.shutdown().drain().clone();
    supervisor.spawn("the watches", watches.clone().run(client.clone(), drain.clone()));
    let readiness = readiness.clone();
    let id = cluster_id::follow(properties.clone(), cluster, readiness, drain.clone());
    supervisor.spawn("the id of the cluster", async move {
        id.await;
        Ok(())
    });
    let (following, api) = (properties.clone(), Api::all(client.clone()));
    let until = drain.clone();
    supervisor.spawn("the watch of ClusterProperties", async move {
        follow(api, &following, &until).await;
        Ok(())
    });
    let observing = Observing {
        client,
        watches: watches.clone(),
        properties,
        observer: Observer::new(deny),
        outbox: outbox.clone(),
        outbox_changed: outbox_changed.clone(),
    };
    supervisor.spawn("applying", driver.run(drain.clone()));
    supervisor.spawn("observing", observing.run(drain.clone()));
    supervisor.spawn("the Lease", lease.clone().keep(drain.clone()));
    let namespaces_changed = Dirty::default();
    watches.namespaces.mark_changes(&namespaces_changed, |_| Some(()));
    let link = Link {
        connector,
        introduction: Introduction {
            agent_version: env!("CARGO_PKG_VERSION").into(),
            cluster_fingerprint: fingerprint.into(),
            instance: instance().into(),
            lease_transitions: lease.transitions(),
        },
        known_epoch: lease.epoch(),
        hubs: Vec::new(),
        lease,
        outbox,
        outbox_changed: outbox_changed.subscribe(),
        apply,
        namespaces: watches.namespaces.clone(),
        namespaces_changed,
        all_namespaces,
        complaints: Complaints::default(),
        metrics: metrics.link,
    };
    supervisor.spawn("the link to the hub", link.run(drain.clone()));
    supervisor.spawn("readiness", async move {
        tokio::select! {
            biased;
            () = drain.cancelled() => return Ok(()),
            () = known(&watches) => {}
        }
        drop(listed);
        drain.cancelled().await;
        Ok(())
    });
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
            let status = match cause.downcast_ref() {
                Some(kube::Error::Api(status)) => status.code,
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
