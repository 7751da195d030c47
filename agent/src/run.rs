//! The wiring of `run`: builds the parts, runs them under supervision, drains them.
//! It decides nothing about objects; it only connects.

pub mod args;

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use kube::{Config, config::KubeConfigOptions};
use shared::{
    api::convert::NamespaceDenyList,
    api_client::{ServedVersions, api_client, in_served_version, kubeconfig},
    identity::{Identity, Role},
    model::{ClusterId, advice},
    process::{
        AdminServer, LogArgs, Metrics, Readiness, Shutdown, Supervisor, Threads, block_on, host_name,
        own_namespace,
    },
    tls::{HubConnector, HubDial, Reloader, TlsMetrics, install_crypto_provider},
};
use tracing::info;

use args::{Interest, RunArgs};

use crate::{
    agent::{self, AgentMetrics, AgentOptions},
    join, lease,
    membership::Membership,
    plan::ImportRules,
    renewal::Renewing,
};

/// Runs the agent until it is told to stop or a part of it fails.
pub fn run(log: &LogArgs, args: RunArgs) -> anyhow::Result<()> {
    log.init()?;
    install_crypto_provider()?;
    // An agent handles one event after the other, and waits for answers in between.
    block_on(Threads::One, run_async(args))
}

async fn run_async(args: RunArgs) -> anyhow::Result<()> {
    let shutdown = Shutdown::default();
    let signals = shutdown.listen()?;
    tokio::spawn(signals);
    let mut metrics = Metrics::new("tributary_agent", env!("CARGO_PKG_VERSION"));
    let readiness = Readiness::default();

    let source_leases = args.source_leases()?;
    let join = args.join.read()?;
    let withdrawals = args.withdrawals();
    let agent_metrics = AgentMetrics::register(metrics.registry());
    let client = api_client(
        kubernetes(args.kubeconfig.as_deref()).await?,
        agent_metrics.api.clone(),
    )?;
    let namespace = own_namespace();
    let hubs = match &join {
        Some(join) => {
            // Its ClusterProperty may be of any version, and says under which id the cluster joins.
            let served = in_served_version(client.clone(), ServedVersions::default());
            let at = (&served, &*namespace);
            let joining = join::ensure(join, &args.join, &args.tls, at, args.cluster_id.as_ref());
            match shutdown.drain().run_until_cancelled(joining).await {
                Some(joined) => joined?,
                None => return Ok(()),
            }
            if args.hubs.is_empty() {
                join::addresses(&join.hubs)?
            } else {
                args.hubs
            }
        }
        None => args.hubs,
    };

    let tls_metrics = TlsMetrics::default();
    let (reloader, credentials) = Reloader::load(args.tls.clone(), tls_metrics.clone())?;
    tls_metrics.register(metrics.registry());
    TlsMetrics::register_expiry(metrics.registry(), credentials.clone());
    let identity = credentials.identity();
    let cluster = cluster_of(&identity, args.cluster_id.as_ref())?;

    let renewing = join.map(|_| Renewing {
        files: args.tls,
        secret: args.join.join_secret,
        credentials: credentials.clone(),
    });
    let admin = AdminServer::bind(args.admin).await?;
    let drain = shutdown.drain().clone();
    let mut supervisor = Supervisor::new(shutdown.clone());
    let options = AgentOptions {
        membership: Membership {
            cluster: cluster.clone(),
            clusterset: identity.clusterset.name().into(),
        },
        client,
        connector: HubConnector::new(
            hubs,
            credentials,
            Arc::new(HubDial::from_environment()?),
            tls_metrics,
        ),
        namespace,
        holder: lease::holder(args.pod_uid.as_deref(), &host_name()),
        deny: NamespaceDenyList::new(args.deny_namespaces),
        all_namespaces: args.interest == Interest::All,
        imports: ImportRules {
            namespaces: (!args.import_namespaces.is_empty()).then_some(args.import_namespaces),
            metadata: (!args.import_metadata.is_empty()).then_some(args.import_metadata),
            imports_max: args.imports_max,
            object_labels: args.object_labels.into_iter().collect(),
        },
        withdrawals,
        source_leases,
        renewing,
        node_tolerance: Duration::from_secs(args.node_tolerance),
    };
    supervisor.spawn("the TLS file watch", reloader.run(drain.clone()));
    supervisor.spawn(
        "the admin port",
        admin.serve(readiness.clone(), metrics.finish(), drain),
    );
    info!(%cluster, "running");
    agent::run(options, agent_metrics, &readiness, supervisor).await
}

/// The way to the member cluster's API: by kubeconfig, or as the pod's service account.
pub(crate) async fn kubernetes(path: Option<&Path>) -> anyhow::Result<Config> {
    Ok(match path {
        None => Config::incluster().context("not in a pod, and no --kubeconfig was given")?,
        Some(path) => {
            let read = kubeconfig("--kubeconfig", path)?;
            Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
                .await
                .with_context(|| format!("--kubeconfig {} cannot be used", path.display()))?
        }
    })
}

/// The id of this cluster: the certificate's. One that was configured must equal it.
pub fn cluster_of(identity: &Identity, expected: Option<&ClusterId>) -> anyhow::Result<ClusterId> {
    let Role::Cluster(cluster) = &identity.role else {
        bail!(
            "--tls-cert is for {identity}, not for a member cluster: issue one with `{}`",
            advice::certs_member("DIR", expected)
        );
    };
    match expected {
        Some(expected) if expected != cluster => bail!(
            "the certificate in --tls-cert is for cluster {cluster}, --cluster-id says {expected}: correct the flag, \
             or issue a certificate for {expected}"
        ),
        _ => Ok(cluster.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_decides_and_a_flag_that_differs_is_refused() {
        let identity = |role: &str| {
            let uri = format!("spiffe://example.org/clusterset/default/{role}");
            Identity::parse(&uri).expect("valid")
        };
        let (east, west) = (
            ClusterId::new("east").expect("id"),
            ClusterId::new("west").expect("id"),
        );
        let member = identity("cluster/east");
        assert_eq!(cluster_of(&member, None).expect("allowed"), east);
        assert_eq!(cluster_of(&member, Some(&east)).expect("allowed"), east);
        let error = cluster_of(&member, Some(&west)).expect_err("differs").to_string();
        assert!(error.contains("east") && error.contains("west"), "{error}");
        let error = cluster_of(&identity("hub/hub"), None)
            .expect_err("a hub")
            .to_string();
        assert!(error.contains("certs member"), "{error}");
    }
}
