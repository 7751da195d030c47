//! Imports that a hub takes away too many of at once.

use std::sync::Arc;

use serde_json::{Value, json};
use shared::model::{ServiceImport, ServiceKey, sync::DesiredChange};
use sim::SimCluster;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{cluster::*, driver::*};

/// More than a hub may take away at once.
const IMPORTS: usize = 7;
/// Events about a hold, at most.
const EVENTS_MAX: usize = 5;

fn imports() -> Vec<DesiredChange> {
    let named = |number| {
        DesiredChange::Import(Arc::new(ServiceImport {
            service: ServiceKey::new("shop", &format!("s{number}")).expect("a key"),
            ..import(&[port("http", 80)], &["east"])
        }))
    };
    (0..IMPORTS).map(named).collect()
}

fn with_reason(cluster: &SimCluster, reason: &str) -> usize {
    let imports = cluster.list("ServiceImport");
    let says = |import: &&Value| import["status"]["conditions"][0]["reason"] == reason;
    imports.iter().filter(says).count()
}

fn events(cluster: &SimCluster) -> usize {
    let events = cluster.list("Event");
    let of_hold = |event: &&Value| event["reason"] == "WithdrawalHeld";
    events.iter().filter(of_hold).count()
}

fn ips(cluster: &SimCluster) -> Vec<Value> {
    let imports = cluster.list("ServiceImport");
    imports
        .iter()
        .map(|import| import["spec"]["ips"].clone())
        .collect()
}

pub(super) async fn most_imports_at_once_are_held_until_somebody_confirms() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = Agent::start(&cluster);
    let (confirm, confirmed) = watch::channel(0);
    let drain = CancellationToken::new();
    let holding = tokio::spawn(agent.handle.clone().end_holds(confirmed, drain.clone()));
    agent.told(1, &all_listed(), imports());
    until("imports", || with_reason(&cluster, "Ready") == IMPORTS).await?;
    let before = ips(&cluster);

    agent.told(2, &all_listed(), Vec::new());
    until("a hold", || {
        with_reason(&cluster, "WithdrawalHeld") == IMPORTS && events(&cluster) == EVENTS_MAX
    })
    .await?;
    looked_at_everything(&cluster, &agent, 2).await?;
    assert_eq!(ips(&cluster)[..IMPORTS], before[..], "nothing of them went");

    // The hub has them again.
    agent.told(3, &all_listed(), imports());
    until("imports as before", || with_reason(&cluster, "Ready") == IMPORTS).await?;
    assert_eq!(ips(&cluster)[..IMPORTS], before[..]);

    agent.told(4, &all_listed(), Vec::new());
    // The import by which the end of a look was seen may be among them.
    until("another hold", || {
        with_reason(&cluster, "WithdrawalHeld") >= IMPORTS
    })
    .await?;
    confirm.send_modify(|count| *count += 1);
    until("nothing", || cluster.list("ServiceImport").is_empty()).await?;
    until("no derived Service", || {
        let services = cluster.list("Service");
        !services
            .iter()
            .any(|service| service["metadata"]["namespace"] == json!("shop"))
    })
    .await?;
    drain.cancel();
    holding.await??;
    agent.stop().await
}

/// An ordinary day: fewer than half, or fewer than five.
pub(super) async fn a_few_imports_go_at_once() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = Agent::start(&cluster);
    agent.told(1, &all_listed(), imports());
    until("imports", || with_reason(&cluster, "Ready") == IMPORTS).await?;
    agent.told(2, &all_listed(), imports().split_off(3));
    until("four imports", || {
        cluster.list("ServiceImport").len() == IMPORTS - 3
    })
    .await?;
    assert_eq!(with_reason(&cluster, "WithdrawalHeld"), 0);
    agent.stop().await
}
