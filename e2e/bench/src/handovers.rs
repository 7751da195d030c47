//! Owns: shape handovers: two agents of one real cluster of which the leader ends in good order or is killed, again and
//! again, while another cluster's export changes: how long until the change is there, and what was written besides.
//! Never: judges when; it waits as long as a condition may take, and shows what it took.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use hdrhistogram::Histogram;
use kube::Client;

use super::{
    args::Arguments,
    figure::Aim,
    hub::Setup,
    report::{Section, latencies},
};
use cluster::{
    clusterset::{Backend, LocalClusterset, Program, questions, shop::Shop},
    real::{AuditLog, Fleet, Options, Request},
};

/// Clusters whose agents take turns, and whose export changes.
const CLUSTERS: [&str; 2] = [IMPORTER, "west"];
const IMPORTER: &str = "east";
/// Changes before anybody hands over, from which is known what one costs.
const CHANGES_BEFORE: u32 = 10;
/// Agents' accounts begin so.
const ACCOUNTS: &str = "system:serviceaccount:tributary-system:";
/// Aim for the slowest hand-over (ADR 0042).
const CLEAN_SECONDS_AIM: f64 = 2.0;
const KILLED_SECONDS_AIM: f64 = 9.0;

/// The end of a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Clean,
    Killed,
}

impl End {
    /// They take turns, so that whatever else changes meanwhile concerns both.
    fn of(round: u32) -> Self {
        if round.is_multiple_of(2) {
            Self::Clean
        } else {
            Self::Killed
        }
    }
}

/// Two clusters, and the agent that leads in the one that imports.
struct Stage {
    clusterset: LocalClusterset,
    shop: Shop,
    client: Client,
    audit: AuditLog,
    leader: Program,
    changes: u32,
}

impl Stage {
    async fn begin(setup: &Setup) -> anyhow::Result<Self> {
        eprintln!("starting two real clusters, a hub and agents");
        let fleet = Arc::new(Fleet::start(&CLUSTERS, Options::default()).await?);
        let audit = fleet.clusters().first().context("two run")?.audit_log();
        let backend = Backend::Real(fleet);
        let mut clusterset = LocalClusterset::start(&setup.data("handovers")?, &backend, &CLUSTERS).await?;
        questions::listed(&clusterset, &CLUSTERS).await?;
        let leader = clusterset.take_running_agent(IMPORTER)?;
        let client = clusterset.cluster(IMPORTER)?.client.clone();
        let shop = Shop::open(&clusterset).await?;
        let mut stage = Self {
            clusterset,
            shop,
            client,
            audit,
            leader,
            changes: 0,
        };
        stage.change().await?;
        Ok(stage)
    }

    /// Changes the endpoint that west exports; how long until east has it.
    async fn change(&mut self) -> anyhow::Result<Duration> {
        let began = Instant::now();
        self.changes += 1;
        let address = format!("10.2.{}.{}", self.changes / 250, self.changes % 250 + 1);
        self.shop
            .export(&self.clusterset, "west", "cart", &[&address])
            .await?;
        self.shop.arrived_in(&self.clusterset, IMPORTER).await?;
        Ok(began.elapsed())
    }

    /// Writes of east's agents during `what`, Leases left out.
    async fn written<T>(
        &mut self,
        what: impl AsyncFnOnce(&mut Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<(T, u64)> {
        let mark = self.audit.settle(&self.client).await?;
        let done = what(self).await?;
        self.audit.settle(&self.client).await?;
        let requests = self.audit.since(mark)?;
        Ok((
            done,
            requests.iter().filter(|request| counts(request)).count() as u64,
        ))
    }

    /// The leader ends, and the change that is made then arrives by the one that stood by.
    async fn hand_over(&mut self, round: u32) -> anyhow::Result<(Duration, u64)> {
        let standby = self
            .clusterset
            .start_standby(IMPORTER, &format!("pod-{round}"))
            .await?;
        self.written(async |stage: &mut Self| {
            let before = std::mem::replace(&mut stage.leader, standby);
            match End::of(round) {
                End::Clean => before.stop().await?,
                End::Killed => before.kill().await?,
            }
            stage.change().await
        })
        .await
    }
}

/// Returns true if it is a change that an agent made, other than of a Lease.
fn counts(request: &Request) -> bool {
    request.user.starts_with(ACCOUNTS) && request.is_write() && !request.is_lease() && request.code < 300
}

/// Measures so many.
pub(super) async fn measure(setup: &Setup, arguments: &Arguments) -> anyhow::Result<Section> {
    let rounds = arguments.handovers;
    let mut section = Section::begin(format!(
        "handovers, {rounds} between two agents of a real cluster"
    ));
    let mut stage = Stage::begin(setup).await?;
    let mut usual = latencies()?;
    let (_, writes) = stage
        .written(async |stage: &mut Stage| {
            for _ in 0..CHANGES_BEFORE {
                usual.saturating_record(micros(stage.change().await?));
            }
            Ok(())
        })
        .await?;
    ensure!(
        writes.is_multiple_of(CHANGES_BEFORE.into()),
        "{writes} writes for {CHANGES_BEFORE} changes: what one costs is not known"
    );
    let each = writes / u64::from(CHANGES_BEFORE);
    let (mut clean, mut killed, mut needless) = (latencies()?, latencies()?, 0);
    for round in 0..rounds {
        let (took, written) = stage.hand_over(round).await?;
        match End::of(round) {
            End::Clean => clean.saturating_record(micros(took)),
            End::Killed => killed.saturating_record(micros(took)),
        }
        needless += written.abs_diff(each);
        if (round + 1).is_multiple_of(10) {
            eprintln!("{} of {rounds} hand-overs", round + 1);
        }
    }
    section.figure(
        "a change arrives, nobody hands over, slowest",
        seconds(&usual, 1.0),
        "s",
    );
    section.figure("writes of a change in the importing cluster", each as f64, "");
    describe(&mut section, "after a clean end", &clean, CLEAN_SECONDS_AIM);
    describe(&mut section, "after a kill", &killed, KILLED_SECONDS_AIM);
    section.aimed(
        "writes without need, all together",
        needless as f64,
        "",
        Aim::Below(1.0),
    );
    section.note("two real API servers, all processes share all cores; looked at every 50 ms");
    stage.leader.stop().await?;
    stage.clusterset.end().await?;
    Ok(section)
}

fn describe(section: &mut Section, when: &str, took: &Histogram<u64>, aim: f64) {
    section.figure(format!("a change arrives {when}, p50"), seconds(took, 0.5), "s");
    section.aimed(
        format!("a change arrives {when}, slowest"),
        seconds(took, 1.0),
        "s",
        Aim::Below(aim),
    );
}

fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

fn seconds(took: &Histogram<u64>, quantile: f64) -> f64 {
    took.value_at_quantile(quantile) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaders_end_in_both_ways_by_turns() {
        assert_eq!(
            [0, 1, 2, 3].map(End::of),
            [End::Clean, End::Killed, End::Clean, End::Killed]
        );
    }

    #[test]
    fn only_what_an_agent_changes_counts_and_no_lease() {
        let agent = "system:serviceaccount:tributary-system:tributary-agent";
        let of = |user: &str, verb: &str| Request::sample(user, verb, "endpointslices", "shop", "cart");
        assert!(counts(&of(agent, "patch")));
        assert!(!counts(&of(agent, "list")));
        assert!(!counts(&of("somebody", "patch")));
        let mut lease = of(agent, "update");
        lease.api_group = "coordination.k8s.io".into();
        assert!(!counts(&lease));
    }
}
