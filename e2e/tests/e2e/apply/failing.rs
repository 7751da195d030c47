//! Tests of the messages about writes that an API server does not do.

use std::time::Duration;

use agent::apply::ManualDriver;
use serde_json::{Value, json};
use sim::{ALWAYS, Fault, SimCluster};

use super::{cluster::*, driver::*};

/// Longer than a write fails before people are told, in milliseconds.
const TOLD_AFTER_MILLIS: u64 = 60_000;
const POLL: Duration = Duration::from_millis(5);

/// Works on everything at this time until it holds.
async fn work(
    driver: &mut ManualDriver,
    now: u64,
    what: &str,
    holds: impl Fn() -> bool,
) -> anyhow::Result<()> {
    let worked = async {
        while !holds() {
            driver.read_schema().await;
            for service in driver.waiting().clone() {
                driver.work(&service, now).await;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let worked = tokio::time::timeout(Duration::from_secs(20), worked).await;
    worked.map_err(|_| anyhow::anyhow!("waited in vain: {what}"))
}

fn condition(cluster: &SimCluster) -> Value {
    the_import(cluster)["status"]["conditions"][0].clone()
}

fn events(cluster: &SimCluster) -> usize {
    let events = cluster.list("Event");
    let told = |event: &&Value| event["reason"] == "CannotWrite" && event["regarding"]["name"] == "cart";
    events.iter().filter(told).count()
}

/// A real API server says by HTTP 500 that a range of addresses is full, that etcd has no room, or that a webhook is down.
pub(super) async fn what_fails_for_a_minute_is_told() -> anyhow::Result<()> {
    for kind in ["services", "endpointslices"] {
        let cluster = cluster()?;
        let (agent, mut driver) = Agent::start_by_hand(&cluster);
        cluster.faults().rate(Fault::NoSpace, ALWAYS, kind);
        agent.told(1, &all_listed(), wishes());
        let failed = || {
            let asked = cluster.requests().since(0);
            asked
                .iter()
                .filter(|entry| entry.resource == kind && entry.code == 500)
                .count()
        };
        work(&mut driver, 0, "writes that fail", || failed() > 2).await?;
        assert_eq!(events(&cluster), 0, "{kind}: it may pass");
        assert_eq!(agent.handle.reach_at(0).applied.parked, 0);
        work(&mut driver, TOLD_AFTER_MILLIS, "words", || {
            condition(&cluster)["status"] == "False"
        })
        .await?;
        let told = condition(&cluster);
        let message = told["message"].as_str().unwrap_or_default();
        assert!(message.contains("database space exceeded"), "{kind}: {told}");
        assert_eq!(told["reason"], "Pending");
        assert_eq!(events(&cluster), 1, "{kind}");
        assert_eq!(agent.handle.reach_at(0).applied.parked, 1, "the hub hears of it");
        let present = the_import(&cluster)["status"]["endpointSliceObjects"].clone();
        assert_eq!(present.is_null(), kind == "endpointslices", "{kind}: {present}");
        cluster.faults().clear();
        work(&mut driver, TOLD_AFTER_MILLIS + 1, "everything", || {
            ready(&cluster) && addresses(&cluster).len() == 2
        })
        .await?;
        assert_eq!(
            the_import(&cluster)["status"]["endpointSliceObjects"],
            json!("Present")
        );
        agent.stop().await?;
    }
    Ok(())
}
