//! Owns: how a member's health is seen and told (ADR 0050): control planes whose API servers, etcd and Leases fail, and
//! nodes that are not ready.
//! Never: judges by another word than the one an operator reads.

mod real;
mod simulated;

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use cluster::clusterset::{LocalClusterset, questions};
use libtest_mimic::Trial;
use proto::v1::{MemberState, ProfileCondition};
use tributary_e2e::suite::{SCENARIO_WAIT, sim_test, test_with_own_clusters};

const CONTROL_PLANE: &str = "ControlPlaneHealthy";
const NODES: &str = "AllNodesHealthy";
/// Interval of asking the hub.
const POLL: Duration = Duration::from_millis(200);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test(
            "sim::health::without_identity_leases_the_probes_say_it",
            simulated::without_identity_leases_the_probes_say_it,
        ),
        sim_test(
            "sim::health::a_node_that_is_not_ready_is_told_after_the_tolerance",
            simulated::a_node_that_is_not_ready_is_told_after_the_tolerance,
        ),
        sim_test(
            "sim::health::an_api_server_that_renews_no_more_is_missed",
            simulated::an_api_server_that_renews_no_more_is_missed,
        ),
        test_with_own_clusters(
            "real::health::a_frozen_etcd_is_told_and_forgotten",
            SCENARIO_WAIT,
            real::a_frozen_etcd_is_told_and_forgotten,
        ),
        test_with_own_clusters(
            "real::health::one_of_two_api_servers_is_killed_and_restarted",
            SCENARIO_WAIT,
            real::one_of_two_api_servers_is_killed_and_restarted,
        ),
    ]
}

async fn member(clusterset: &LocalClusterset, name: &str) -> anyhow::Result<MemberState> {
    let state = questions::state(clusterset).await?;
    let mut members = state.members.into_iter();
    let member = members.find(|member| member.cluster == name);
    member.with_context(|| format!("{name} is no member"))
}

/// Waits until a condition of a member says so, and tells how long that took.
async fn until(
    clusterset: &LocalClusterset,
    (name, condition_type): (&str, &str),
    within: Duration,
    says: impl Fn(&ProfileCondition) -> bool,
) -> anyhow::Result<(Duration, ProfileCondition)> {
    let began = Instant::now();
    loop {
        // It may not have joined yet.
        let health = member(clusterset, name).await.map(|member| member.health);
        let found = health.iter().flatten().find(|one| one.r#type == condition_type);
        if let Some(found) = found.filter(|found| says(found)) {
            return Ok((began.elapsed(), found.clone()));
        }
        if began.elapsed() > within {
            bail!("not within {within:?}: {condition_type} is {found:?}");
        }
        tokio::time::sleep(POLL).await;
    }
}
