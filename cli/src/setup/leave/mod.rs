//! `tributary leave`: a cluster stops being a member, and what `join` made goes.
//!
//! * `decide.rs`: the cluster, and the hub's part, pure. Here: looks, and carries the steps out.

mod decide;

use std::{collections::BTreeMap, time::Duration};

use agent::leave::{args::LeaveArgs as AgentLeaveArgs, leave};
use anyhow::{Context, anyhow};
use serde_json::json;
use shared::tls::HubAddress;

use self::decide::{CONTEXT_VARIABLE, Given, Seen, Telling, chosen, decide, keeps_definitions, result};
use super::{
    args::{ClusterArgs, LeaveArgs},
    cluster::{Cluster, Deletion, Right},
    dns,
    helm::{DEFINITIONS_RELEASE, Helm},
    home::Home,
    hub::Operator,
    init::HUB,
    join::{AGENT, stated_id},
    plan::{Look, until},
    progress::Progress,
    values::{AGENT_JOIN, AGENT_TLS},
};

pub(super) use decide::is_over;

/// Time to wait for the Lease of an agent that was just uninstalled, in seconds.
const LEASE_WAIT: u64 = 60;

/// By which an API server names what refused a request.
const POLICY: &str = "ValidatingAdmissionPolicy";

/// The keys of the Secret with the agent's certificate.
const CERTIFICATE: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// Runs the command and returns what to print.
pub(super) async fn run(args: &LeaveArgs, home: &Home, progress: &mut Progress) -> anyhow::Result<String> {
    let id = args.id.as_str();
    let helm = Helm::find(&args.helm).await?;
    let cluster = Cluster::connect(&place(args, home)?).await?;
    cluster.require(&needed(cluster.namespace())).await?;
    let certificate = cluster.secret(AGENT_TLS).await?.unwrap_or_default();
    let seen = look(args, home, &cluster, &certificate).await?;
    let telling = decide(&seen).map_err(|why| anyhow!("nothing was changed: {why}"))?;
    let hosts_hub = helm.release(&cluster, HUB).await?.is_some();
    uninstall(&helm, &cluster, AGENT, progress).await?;
    tell_and_clean((args, telling), home, (&cluster, &certificate), progress)
        .await
        .with_context(|| {
            format!(
                "the agent is uninstalled, and {id} has not left yet. Run the same command again to continue"
            )
        })?;
    progress.done("left", &telling.text(id))?;
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
        uninstall_definitions(&helm, &cluster, progress).await?;
        remove_namespace(&cluster, args.common.timeout, progress).await?;
    }
    home.remember(|all| drop(all.members.remove(id)))?;
    let text = result(&args.id, &home.clusterset, telling);
    Ok(progress.result(
        args.common.output,
        json!({"clusterset": home.clusterset, "left": id}),
        &text,
    ))
}

/// The cluster: by flags, or as it joined.
fn place(args: &LeaveArgs, home: &Home) -> anyhow::Result<ClusterArgs> {
    let remembered = home.remembered()?.members.remove(args.id.as_str());
    let variable = std::env::var(CONTEXT_VARIABLE).ok();
    let given = Given {
        context: args.context.as_deref(),
        variable: variable.as_deref(),
        kubeconfig: args.kubeconfig.as_deref(),
        namespace: args.namespace.as_deref(),
    };
    chosen(args.id.as_str(), &given, remembered.map(|place| place.args())).map_err(|why| anyhow!(why))
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

/// Looks at the cluster and the hub. Nothing is changed.
async fn look<'a>(
    args: &'a LeaveArgs,
    home: &Home,
    cluster: &'a Cluster,
    certificate: &BTreeMap<String, String>,
) -> anyhow::Result<Seen<'a>> {
    let members = async {
        let hub = home.hub()?;
        Operator::connect(home, &hub).await?.members().await
    };
    let members = if args.without_hub {
        None
    } else {
        Some(members.await.context(
            "nothing was changed: the hub cannot be asked. Try again later, or leave with --without-hub if it is gone for \
             good",
        )?)
    };
    Ok(Seen {
        id: &args.id,
        context: &cluster.args.context,
        namespace: cluster.namespace(),
        fingerprint: cluster.fingerprint().await?,
        stated: stated_id(cluster).await?,
        certificate: CERTIFICATE.iter().all(|name| certificate.contains_key(*name)),
        members,
    })
}

/// Tells the hub with the agent's certificate, and removes what the agent wrote.
async fn tell_and_clean(
    (args, telling): (&LeaveArgs, Telling),
    home: &Home,
    (cluster, certificate): (&Cluster, &BTreeMap<String, String>),
    progress: &Progress,
) -> anyhow::Result<()> {
    let directory = tempfile::tempdir().context("cannot make a directory for the agent's certificate")?;
    let file = |name: &str| directory.path().join(name);
    let tells = telling == Telling::Hub;
    let hubs = if tells {
        // The directory can be read by its user only.
        for (name, text) in certificate
            .iter()
            .filter(|(name, _)| CERTIFICATE.contains(&name.as_str()))
        {
            std::fs::write(file(name), text).context("cannot write the agent's certificate")?;
        }
        home.hub()?.hubs
    } else {
        Vec::new()
    };
    let hubs: Result<Vec<HubAddress>, _> = hubs.iter().map(|text| text.parse()).collect();
    let wish = AgentLeaveArgs {
        hubs: hubs?,
        without_hub: !tells,
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
    .await
}

/// Uninstalls the release of the definitions, if they stay.
pub(super) async fn uninstall_definitions(
    helm: &Helm,
    cluster: &Cluster,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let release = helm.release(cluster, DEFINITIONS_RELEASE).await?;
    if release.as_ref().is_none_or(keeps_definitions) {
        return uninstall(helm, cluster, DEFINITIONS_RELEASE, progress).await;
    }
    let text = format!(
        "the Helm release {DEFINITIONS_RELEASE} stays: with its value keep=false all ServiceExports would go with it"
    );
    progress.kept(DEFINITIONS_RELEASE, &text);
    Ok(())
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
