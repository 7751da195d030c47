//! The command `leave`: the cluster's own administrator takes it out of the clusterset. Tells the hub, removes what
//! agents wrote here, and lists the rest. While it works it holds the Lease of the agent that leads, so that no agent
//! makes anything again.
//!
//! * `args`: the flags. `decide`: what becomes of each object, pure. `report`: what people read, pure.
//! * `cluster`: finds and removes. `hub`: tells. `lead`: holds the Lease.

pub mod args;
mod cluster;
pub mod decide;
mod hub;
mod lead;
pub mod report;

use std::time::Duration;

use anyhow::{Context, ensure};
use kube::Client;
use shared::{
    api_client::{ApiMetrics, ServedVersions, api_client, in_served_version},
    process::{LogArgs, Threads, block_on, own_namespace},
    tls::install_crypto_provider,
};

use crate::run;
use args::LeaveArgs;
use cluster::{Cluster, Item};
use decide::{Found, Kind, Wish, fate, is_due};
use hub::Way;
use lead::Lead;
use report::Hub;

/// Number of looks at the cluster before a remaining object counts as stuck.
const LOOKS_MAX: usize = 5;
/// Delay before the next look: an object may take a moment to go.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Runs the command.
pub fn run(log: &LogArgs, args: &LeaveArgs) -> anyhow::Result<()> {
    log.init()?;
    install_crypto_provider()?;
    block_on(Threads::One, async {
        let config = run::kubernetes(args.kubeconfig.as_deref()).await?;
        let client = api_client(config, ApiMetrics::default())?;
        let client = in_served_version(client, ServedVersions::default());
        print!("{}", leave(&client, args).await?);
        Ok(())
    })
}

/// Leaves, or says what that would mean: what people are to read. An error says what has happened until then.
pub async fn leave(client: &Client, args: &LeaveArgs) -> anyhow::Result<String> {
    let namespace = args.namespace.clone().unwrap_or_else(own_namespace);
    let wish = Wish {
        keep: args.keep.iter().copied().collect(),
        forget_id: args.forget_id,
    };
    let way = args.tls().map(|files| Way::new(&args.hubs, files)).transpose()?;
    let cluster = Cluster::new(client.clone(), namespace.clone());
    if !args.confirm {
        let hub = say(way.as_ref(), false).await?;
        let found = heads(&look(&cluster).await?);
        let leader = lead::leader(client, &namespace).await?;
        return Ok(report::planned(&found, &wish, &hub, leader.as_deref()));
    }
    let mut lead = Lead::taken(client, &namespace, Duration::from_secs(args.wait)).await?;
    let left = async {
        let hub = say(way.as_ref(), true).await?;
        let (before, after) = cleaned(&cluster, &wish, &mut lead).await?;
        anyhow::Ok((hub, before, after))
    };
    let (hub, before, after) = match left.await {
        Ok(left) => left,
        Err(error) => {
            lead.released().await;
            return Err(error);
        }
    };
    let stuck: Vec<String> = report::stuck(&after, &wish)
        .into_iter()
        .map(report::named)
        .collect();
    ensure!(
        stuck.is_empty(),
        "not everything is gone: {}; see to it, and run the command again",
        stuck.join("; ")
    );
    Ok(report::done(&before, &after, &wish, &hub))
}

async fn say(way: Option<&Way>, confirm: bool) -> anyhow::Result<Hub> {
    match way {
        Some(way) => way.say(confirm).await,
        None => Ok(Hub::NotAsked),
    }
}

async fn look(cluster: &Cluster) -> anyhow::Result<Vec<Item>> {
    cluster.look().await.context(
        "not everything in this cluster could be looked at; run the command again, with the rights of the cluster's \
         administrator",
    )
}

fn heads(items: &[Item]) -> Vec<Found> {
    items.iter().map(|item| item.found.clone()).collect()
}

/// Removes what is to go; what there was, and what is left. The Lease of who leads goes last.
async fn cleaned(
    cluster: &Cluster,
    wish: &Wish,
    lead: &mut Lead,
) -> anyhow::Result<(Vec<Found>, Vec<Found>)> {
    let first = look(cluster).await?;
    let before = heads(&first);
    let mut items = first;
    let due = |item: &&Item| item.found.kind != Kind::Lead && is_due(&item.found, wish);
    for _ in 0..LOOKS_MAX {
        let now: Vec<&Item> = items.iter().filter(due).collect();
        if now.is_empty() {
            break;
        }
        for item in now {
            lead.still_held()?;
            removed(cluster, item, wish).await?;
        }
        items = look(cluster).await?;
        if items.iter().any(|item| due(&item)) {
            tokio::time::sleep(LOOK_AGAIN).await;
            items = look(cluster).await?;
        }
    }
    lead.renewed_no_more().await;
    let items = look(cluster).await?;
    for item in items.iter().filter(|item| item.found.kind == Kind::Lead) {
        removed(cluster, item, wish).await?;
    }
    Ok((before, heads(&look(cluster).await?)))
}

async fn removed(cluster: &Cluster, item: &Item, wish: &Wish) -> anyhow::Result<()> {
    let done = cluster.carry_out(item, fate(&item.found, wish)).await;
    done.with_context(|| {
        format!(
            "cannot remove {}; run the command again, what is gone stays gone. It needs the rights of the cluster's \
             administrator, and that the agent is uninstalled, whose admission policies refuse this to everybody else \
             (helm uninstall tributary-agent)",
            report::named(&item.found)
        )
    })
}
