//! One running agent, as a library: the watches, the rooms between them, the link. The program puts sockets and
//! flags around it; tests put simulated clusters and networks around it.

use std::sync::{Arc, Mutex};

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};
use prometheus_client::registry::Registry;
use shared::{
    api::{ClusterProperty, convert::NamespaceDenyList, names},
    model::ClusterId,
    process::{Readiness, Supervisor, random},
    tls::HubConnector,
};
use tokio::sync::watch;

use crate::{
    apply::{ApplyMetrics, Driver, DriverConfig},
    lease::AgentLease,
    link::{Link, LinkMetrics, machine::Introduction},
    observe::{Observer, Observing, known, removal},
    outbox::Outbox,
    watch::{Dirty, Watched, Watches, follow},
};

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
    /// Namespaces whose exports are denied.
    pub deny: NamespaceDenyList,
    /// Whether everything is held, whatever namespaces exist.
    pub all_namespaces: bool,
}

/// Starts an agent's tasks under supervision. It returns once the cluster has been asked who it is.
pub async fn start(
    options: AgentOptions,
    registry: &mut Registry,
    readiness: &Readiness,
    supervisor: &mut Supervisor,
) -> anyhow::Result<()> {
    let AgentOptions {
        cluster,
        client,
        connector,
        namespace,
        deny,
        all_namespaces,
    } = options;
    let fingerprint = fingerprint(&client).await?;
    check_property(&client, &cluster).await?;
    let instance = instance();
    let (lease, taken) = AgentLease::take(client.clone(), &namespace, &instance).await?;

    let watches = Watches::default();
    let properties = Watched::<ClusterProperty>::new(|_| None);
    let apply_metrics = ApplyMetrics::default();
    apply_metrics.register(registry);
    let config = DriverConfig {
        cluster: cluster.clone(),
        deny: deny.clone(),
    };
    let (driver, apply) = Driver::new(client.clone(), watches.clone(), config, apply_metrics);
    let outbox = Arc::new(Mutex::new(Outbox::new(removal)));
    let outbox_changed = watch::Sender::new(0);

    let drain = supervisor.shutdown().drain().clone();
    supervisor.spawn("the watches", watches.clone().run(client.clone(), drain.clone()));
    let (following, api) = (properties.clone(), Api::all(client.clone()));
    let until = drain.clone();
    supervisor.spawn("the watch of ClusterProperties", async move {
        follow(api, &following, &until).await;
        Ok(())
    });
    let observing = Observing {
        client: client.clone(),
        watches: watches.clone(),
        properties,
        observer: Observer::new(deny),
        outbox: outbox.clone(),
        outbox_changed: outbox_changed.clone(),
    };
    supervisor.spawn("applying", driver.run(drain.clone()));
    supervisor.spawn("observing", observing.run(drain.clone()));
    supervisor.spawn("the Lease", lease.clone().renew(drain.clone()));
    let namespaces_changed = Dirty::default();
    watches.namespaces.mark_changes(&namespaces_changed, |_| Some(()));
    let link = Link {
        connector,
        introduction: Introduction {
            agent_version: env!("CARGO_PKG_VERSION").into(),
            cluster_fingerprint: fingerprint.into(),
            instance: instance.into(),
            lease_transitions: taken.transitions,
        },
        lease,
        known_epoch: taken.epoch,
        outbox,
        outbox_changed: outbox_changed.subscribe(),
        apply,
        namespaces: watches.namespaces.clone(),
        namespaces_changed,
        all_namespaces,
        metrics: LinkMetrics::register(registry),
    };
    supervisor.spawn("the link to the hub", link.run(drain.clone()));
    let listed = readiness.handle("cluster listed");
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
    Ok(())
}

/// Fresh for every start.
fn instance() -> String {
    format!("{:032x}", random::<u128>())
}

async fn fingerprint(client: &Client) -> anyhow::Result<String> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let kube_system = namespaces.get(names::KUBE_SYSTEM_NAMESPACE).await.context(
        "cannot read the namespace kube-system, whose uid identifies the cluster: see that the API server answers \
         and that the RBAC of deploy/agent is applied",
    )?;
    kube_system.uid().context("the namespace kube-system has no uid")
}

/// The certificate's id is the id: a ClusterProperty that says another one is a mistake somebody must look at.
async fn check_property(client: &Client, cluster: &ClusterId) -> anyhow::Result<()> {
    let properties = Api::<ClusterProperty>::all(client.clone());
    let property = match properties.get_opt(names::PROPERTY_CLUSTER_ID).await {
        Ok(property) => property,
        // The CRD is optional for this: without it there is nothing to compare.
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(error) => return Err(error).context("cannot read the ClusterProperty cluster.clusterset.k8s.io"),
    };
    match property {
        Some(property) if property.spec.value != cluster.as_str() => bail!(
            "the certificate in --tls-cert is for cluster {cluster}, the ClusterProperty {} says {}: issue a \
             certificate for {}, or correct the property",
            names::PROPERTY_CLUSTER_ID,
            property.spec.value,
            property.spec.value
        ),
        _ => Ok(()),
    }
}
