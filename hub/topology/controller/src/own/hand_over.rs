//! Owns: `tributary-hub hand-over`: the topologies of Clusters go from Cluster API's own controller to the hub, or
//! back, with nothing replaced.
//! Never: does it while the one that gives is at work, or if the one that takes would replace, make or delete anything.

use std::{fmt::Write, path::PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use kube::{
    Client,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use shared::{
    model::UnixMillis,
    process::{Threads, block_on},
    tls::install_crypto_provider,
};

use super::{
    api_server::ApiServer,
    rules::{
        event::ClusterName,
        handover::{obstacles, renamed},
        rival::rival,
        seen::{clusters, of_topology},
    },
    server::Server,
};
use crate::{
    desired::{
        change::{Changes, Plan},
        compare::{MANAGER, UPSTREAM_MANAGER},
        objects::{Listed, Objects, text},
        offline::plans_of_live,
        table::table,
    },
    live,
};
use hub_core::clock::Clock;

/// Clusters and their new keeper.
#[derive(Debug, Args)]
pub struct HandOverArgs {
    /// Cluster, as NAMESPACE/NAME; may be repeated
    #[arg(value_name = "NAMESPACE/NAME", required = true, value_parser = cluster)]
    clusters: Vec<ClusterName>,
    /// The keeper of their topologies from then on
    #[arg(long, env = "TRIBUTARY_TO", value_name = "WHO")]
    to: Keeper,
    /// Kubeconfig of the management cluster
    #[arg(long, env = "TRIBUTARY_KUBECONFIG", value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Context of the kubeconfig; its current one unless given
    #[arg(long, env = "TRIBUTARY_CONTEXT", value_name = "NAME")]
    context: Option<String>,
    /// Make the change. Without this flag the command only shows what would happen
    #[arg(long)]
    confirm: bool,
}

/// The keeper of topologies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Keeper {
    /// A hub with --topology own
    Tributary,
    /// Cluster API's own controller
    ClusterApi,
}

impl Keeper {
    /// The manager of what is given, and of what is taken.
    fn managers(self) -> (&'static str, &'static str) {
        match self {
            Self::Tributary => (UPSTREAM_MANAGER, MANAGER),
            Self::ClusterApi => (MANAGER, UPSTREAM_MANAGER),
        }
    }
}

fn cluster(text: &str) -> Result<ClusterName, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(ClusterName {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })
        }
        _ => Err("write NAMESPACE/NAME, for example default/shop".to_owned()),
    }
}

/// Runs the command: what to print, and whether something is left to do.
///
/// # Errors
///
/// One line: why nothing is handed over.
pub fn run(args: &HandOverArgs) -> anyhow::Result<(String, Changes)> {
    install_crypto_provider()?;
    let mut said = None;
    block_on(Threads::One, async {
        let client = live::client(&args.kubeconfig, args.context.as_deref()).await?;
        let now = Clock::start().wall();
        said = Some(hand_over(client, &args.clusters, args.to, args.confirm, now).await?);
        Ok(())
    })?;
    said.context("nothing was done")
}

/// Hands Clusters over, one after the other, or says what that would be.
///
/// # Errors
///
/// One line: why the rest of them is not handed over.
pub async fn hand_over(
    client: Client,
    names: &[ClusterName],
    to: Keeper,
    confirm: bool,
    now: UnixMillis,
) -> anyhow::Result<(String, Changes)> {
    let server = ApiServer::new(client);
    let objects = server.read().await?;
    if to == Keeper::Tributary
        && let Some(why) = rival(&server.signs().await?, &objects.objects, now)
    {
        bail!(
            "Cluster API's own controller is at work ({why}): switch its feature gate ClusterTopology off, and try again ten \
             minutes later"
        );
    }
    let mut said = String::new();
    let mut changes = Changes::Nothing;
    for name in names {
        let count = managed(&objects, name, to)?.len();
        if count == 0 {
            writeln!(
                said,
                "Cluster {name}: nothing of it is managed by {}",
                to.managers().0
            )?;
            continue;
        }
        if confirm {
            let count = hand_one_over(&server, name, to).await?;
            writeln!(said, "Cluster {name}: {count} objects are handed over")?;
        } else {
            changes = Changes::Something;
            writeln!(
                said,
                "Cluster {name}: {count} objects would be handed over, and nothing replaced; --confirm does it"
            )?;
        }
    }
    Ok((said, changes))
}

/// Objects of a Cluster with fields to be handed over, each with what it says of its managers then; an error if anything
/// would be replaced.
fn managed(listed: &Listed, name: &ClusterName, to: Keeper) -> anyhow::Result<Vec<(Value, Vec<Value>)>> {
    let all = Objects::of(&listed.objects);
    let seen = clusters(&all);
    let cluster = seen
        .get(name)
        .with_context(|| format!("there is no Cluster {name} with a topology: name another one"))?;
    let planned = plans_of_live(listed);
    let is = |plan: &&Plan| (&plan.namespace, &plan.name) == (&name.namespace, &name.name);
    let Some(plan) = planned.plans.iter().find(is) else {
        let findings: Vec<String> = planned.findings.iter().map(ToString::to_string).collect();
        bail!("Cluster {name} cannot be planned: {}", findings.join("; "));
    };
    if !obstacles(plan).is_empty() {
        print!("{}", table(std::slice::from_ref(plan)));
        bail!(
            "Cluster {name} is not as it would be planned, see above: whoever takes it over would replace something; mend that \
             first"
        );
    }
    let (from, to) = to.managers();
    let owned = of_topology(&all, name, cluster.document);
    Ok(owned
        .into_iter()
        .filter_map(|object| Some((object.clone(), renamed(object, from, to)?)))
        .collect())
}

/// Pauses it, so that nobody else changes anything, and looks again; then each object changes its manager, if it is still
/// the one that was looked at.
async fn hand_one_over(server: &ApiServer, name: &ClusterName, to: Keeper) -> anyhow::Result<usize> {
    let paused = set_paused(server, name, true).await?;
    let given = give(server, name, to).await;
    if !paused {
        set_paused(server, name, false).await?;
    }
    given
}

async fn give(server: &ApiServer, name: &ClusterName, to: Keeper) -> anyhow::Result<usize> {
    let objects = server.read().await?;
    let managed = managed(&objects, name, to)?;
    for (object, managers) in &managed {
        let of = |place: &str| text(object, place).unwrap_or_default();
        let edit = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": of("/metadata/resourceVersion")},
            {"op": "replace", "path": "/metadata/managedFields", "value": managers},
        ]);
        let patch: Patch<DynamicObject> = Patch::Json(serde_json::from_value(edit)?);
        let (kind, object) = (of("/kind"), of("/metadata/name"));
        let api = server.api_of(&name.namespace, of("/apiVersion"), kind).await?;
        let patched = api.patch(object, &PatchParams::default(), &patch).await;
        patched.with_context(|| {
            format!("{kind} {object} was changed meanwhile: try again, what was handed over stays so")
        })?;
    }
    Ok(managed.len())
}

/// Pauses or resumes a Cluster; returns true if it was paused before.
async fn set_paused(server: &ApiServer, name: &ClusterName, paused: bool) -> anyhow::Result<bool> {
    let api_version = crate::desired::current::CORE;
    let api = server.api_of(&name.namespace, api_version, "Cluster").await?;
    let before = api.get(&name.name).await?;
    let was = before.data.pointer("/spec/paused") == Some(&Value::Bool(true));
    if was != paused {
        let patch = json!({
            "metadata": {"resourceVersion": before.metadata.resource_version},
            "spec": {"paused": paused},
        });
        let patched = api
            .patch(&name.name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        ensure!(patched.is_ok(), "Cluster {name} was changed meanwhile: try again");
    }
    Ok(was)
}
