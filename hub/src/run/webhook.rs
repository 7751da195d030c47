//! Owns: the admission webhook of classes and clusters, as the flags name it.
//! Never: knows a clusterset: what is asked there is about the cluster that the process runs in.

use anyhow::Context;
use prometheus_client::registry::Registry;
use shared::tls::ServedFiles;

use crate::{
    args::ServeArgs,
    profile::{self, ProfileMetrics},
    topology::webhook::Webhook,
};

/// The webhook, if the flags name one. Its requests are not among those that clustersets count.
pub(super) async fn prepare(args: &ServeArgs, registry: &mut Registry) -> anyhow::Result<Option<Webhook>> {
    let flags = &args.webhook;
    let Some(address) = flags.topology_webhook else {
        return Ok(None);
    };
    let named = "both files of --topology-webhook are named";
    let files = ServedFiles {
        cert: flags.topology_webhook_cert.clone().context(named)?,
        cert_flag: "--topology-webhook-cert",
        key: flags.topology_webhook_key.clone().context(named)?,
        key_flag: "--topology-webhook-key",
    };
    let client = profile::client(args.kubeconfig.as_deref(), &ProfileMetrics::default()).await?;
    let client = client.context(
        "--topology-webhook needs a cluster to look at: give --kubeconfig, or run in a pod with a service account",
    )?;
    Webhook::prepare(address, files, client, registry).map(Some)
}
