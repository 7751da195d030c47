//! `tributary leave`: a cluster stops being a member, and what `join` made goes.

use std::time::Duration;

use agent::leave::{args::LeaveArgs as AgentLeaveArgs, leave};
use anyhow::{Context, bail};
use serde_json::json;
use shared::tls::HubAddress;

use super::{
    args::{ClusterArgs, LeaveArgs},
    cluster::{Cluster, Deletion, Right},
    dns,
    helm::{DEFINITIONS_RELEASE, Helm},
    home::Home,
    init::HUB,
    join::{AGENT, stated_id},
    plan::{Look, until},
    progress::Progress,
    values::{AGENT_JOIN, AGENT_TLS},
};

/// How long the Lease of an agent that was just uninstalled is waited for, in seconds.
const LEASE_WAIT: u64 = 60;

/// By which an API server names what refused a request.
const POLICY: &str = "ValidatingAdmissionPolicy";

/// Runs the command and returns what to print.
pub(super) async fn run(args: &LeaveArgs, home: &Home, progress: &mut Progress) -> anyhow::Result<String> {
    let id = args.id.as_str();
    let helm = Helm::find(&args.helm).await?;
    let cluster = Cluster::connect(&place(args, home)?).await?;
    if let Some(stated) = stated_id(&cluster).await?.filter(|stated| stated != id) {
        bail!(
            "nothing was changed: the cluster of context {} is {stated}, not {id}",
            cluster.args.context
        );
    }
    cluster.require(&needed(cluster.namespace())).await?;
    let hosts_hub = helm.release(&cluster, HUB).await?.is_some();
    uninstall(&helm, &cluster, AGENT, progress).await?;
    let said = tell_and_clean(args, home, &cluster, progress).await?;
    progress.done("left", &said)?;
    gone(
        progress,
        "dns",
        "the zone clusterset.local in CoreDNS",
        dns::remove(&cluster).await?,
    )?;
    for name in [AGENT_JOIN, AGENT_TLS] {
        let text = format!("the Secret {}/{name}", cluster.namespace());
        gone(progress, "secret", &text, cluster.delete_secret(name).await?)?;
    }
    if !hosts_hub {
        uninstall(&helm, &cluster, DEFINITIONS_RELEASE, progress).await?;
        remove_namespace(&cluster, args.common.timeout, progress).await?;
    }
    home.remember(|all| drop(all.members.remove(id)))?;
    let text = format!(
        "{id} is no member of the clusterset {} any more. The definitions stay in the cluster: with them go all \
         ServiceExports.",
        home.clusterset
    );
    Ok(progress.result(
        args.common.output,
        json!({"clusterset": home.clusterset, "left": id}),
        &text,
    ))
}

/// The cluster: by flags, or as it joined.
fn place(args: &LeaveArgs, home: &Home) -> anyhow::Result<ClusterArgs> {
    let remembered = home
        .remembered()?
        .members
        .remove(args.id.as_str())
        .map(|place| place.args());
    match (&args.context, remembered) {
        (Some(context), remembered) => Ok(ClusterArgs {
            context: context.clone(),
            kubeconfig: args.kubeconfig.clone(),
            namespace: remembered.map_or_else(|| "tributary-system".to_owned(), |place| place.namespace),
        }),
        (None, Some(place)) => Ok(ClusterArgs {
            kubeconfig: args.kubeconfig.clone().or(place.kubeconfig.clone()),
            ..place
        }),
        (None, None) => bail!(
            "{} did not join from this machine: name its cluster with --context",
            args.id
        ),
    }
}

fn needed(namespace: &str) -> Vec<Right<'_>> {
    let mut needed = vec![
        Right("apps", "deployments", "delete", Some(namespace)),
        Right("", "secrets", "delete", Some(namespace)),
        Right("multicluster.x-k8s.io", "serviceimports", "delete", None),
        Right("discovery.k8s.io", "endpointslices", "delete", None),
    ];
    needed.extend(dns::NEEDED_TO_REMOVE);
    needed
}

/// Tells the hub with the agent's certificate, and removes what the agent wrote.
async fn tell_and_clean(
    args: &LeaveArgs,
    home: &Home,
    cluster: &Cluster,
    progress: &Progress,
) -> anyhow::Result<String> {
    let directory = tempfile::tempdir().context("cannot make a directory for the agent's certificate")?;
    let texts = cluster.secret(AGENT_TLS).await?.unwrap_or_default();
    let file = |name: &str| directory.path().join(name);
    let mut has_certificate = true;
    for name in ["tls.crt", "tls.key", "ca.crt"] {
        match texts.get(name) {
            // The directory can be read by its user only.
            Some(text) => std::fs::write(file(name), text).context("cannot write the agent's certificate")?,
            None => has_certificate = false,
        }
    }
    let without_hub = args.without_hub || !has_certificate;
    let hubs: Vec<String> = if without_hub { Vec::new() } else { home.hub()?.hubs };
    let hubs: Result<Vec<HubAddress>, _> = hubs.iter().map(|text| text.parse()).collect();
    let wish = AgentLeaveArgs {
        hubs: hubs?,
        without_hub,
        tls_cert: Some(file("tls.crt")),
        tls_key: Some(file("tls.key")),
        tls_ca: Some(file("ca.crt")),
        kubeconfig: None,
        namespace: Some(cluster.namespace().to_owned()),
        keep: Vec::new(),
        forget_id: true,
        wait: LEASE_WAIT,
        confirm: true,
    };
    // An API server forgets the admission policies of the agent some time after Helm has deleted them.
    until(progress, args.common.timeout, async || {
        match leave(&cluster.client, &wish).await {
            Ok(_) => Ok(Look::Ready(())),
            Err(error) if format!("{error:#}").contains(POLICY) => Ok(Look::Waiting(
                "the API server still applies the agent's admission policies".to_owned(),
            )),
            Err(error) => Err(error),
        }
    })
    .await?;
    Ok(if without_hub {
        "what the agent wrote is gone; the hub was not told".to_owned()
    } else {
        "the hub knows, and what the agent wrote is gone".to_owned()
    })
}

/// Deletes the namespace, if this client made it, and waits until it is gone.
pub(super) async fn remove_namespace(
    cluster: &Cluster,
    timeout: Duration,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let text = format!("the namespace {}", cluster.namespace());
    let deletion = cluster.delete_namespace().await?;
    if let Deletion::Has(left) = &deletion {
        progress.kept("namespace", &format!("{text} stays: it has {left}"));
        return Ok(());
    }
    let went = deletion == Deletion::Done;
    if went {
        until(progress, timeout, async || {
            Ok(if cluster.has_namespace().await? {
                Look::Waiting(format!("the objects in {text} are being deleted"))
            } else {
                Look::Ready(())
            })
        })
        .await?;
    }
    gone(progress, "namespace", &text, went)
}

/// Uninstalls a release.
pub(super) async fn uninstall(
    helm: &Helm,
    cluster: &Cluster,
    release: &str,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let went = helm.uninstall(cluster, release).await?;
    gone(progress, release, &format!("the Helm release {release}"), went)
}

/// Says that something went, or was not there.
pub(super) fn gone(progress: &mut Progress, step: &str, text: &str, went: bool) -> anyhow::Result<()> {
    if went {
        return progress.done(step, &format!("removed {text}"));
    }
    progress.kept(step, &format!("nothing to remove: {text}"));
    Ok(())
}
