//! Owns: what a wave of changes cost: the processor time of every process that took part, and the requests that the
//! API servers were asked.
//! Never: leaves a process out because it is not ours.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use kube::Client;

use super::{
    super::{probe::Usage, report::Section},
    CLUSTERS,
};
use cluster::{
    clusterset::LocalClusterset,
    real::{AuditLog, Counts, Fleet, Mark, Request},
};

/// The agents have come to rest when they asked nothing for so long.
const REST: Duration = Duration::from_secs(1);
/// Longest wait for that.
const REST_WAIT: Duration = Duration::from_secs(30);
/// Requests an update below which a kind is not worth a line.
const WORTH_A_LINE: f64 = 0.01;

/// Processor seconds of every process so far, by what it is.
pub(super) struct Spent(BTreeMap<String, f64>);

impl Spent {
    /// Asks the kernel.
    pub(super) fn of(clusterset: &mut LocalClusterset, fleet: &Fleet) -> anyhow::Result<Self> {
        let mut programs = vec![("hub".to_owned(), clusterset.hub()?.id())];
        for name in CLUSTERS {
            programs.push((format!("agent of {name}"), clusterset.agent(name)?.id()));
        }
        let generator = "generator, with the relay";
        programs.push((generator.to_owned(), Some(std::process::id())));
        let clusters = fleet.processes().into_iter();
        programs.extend(clusters.map(|(name, id)| (name, Some(id))));
        let spent = programs.into_iter().map(|(name, id)| {
            let id = id.with_context(|| format!("the {name} has ended"))?;
            Ok((name, Usage::of(id)?.cpu_seconds))
        });
        Ok(Self(spent.collect::<anyhow::Result<_>>()?))
    }

    /// Adds a line for each process: milliseconds of a core for each of the updates since `before`.
    pub(super) fn describe(&self, before: &Self, who: &str, updates: u32, section: &mut Section) {
        let mut sum = 0.0;
        for (name, after) in &self.0 {
            let spent = after - before.0.get(name).copied().unwrap_or_default();
            sum += spent;
            let each = spent * 1e3 / f64::from(updates);
            section.figure(format!("{who}: {name}"), each, "core ms/update");
        }
        section.figure(
            format!("{who}: all processes"),
            sum * 1e3 / f64::from(updates),
            "core ms/update",
        );
    }
}

/// The audit logs of all clusters.
pub(super) struct Requests(Vec<(&'static str, AuditLog, Client)>);

impl Requests {
    /// Of a fleet whose clusters go by the names in `CLUSTERS`.
    pub(super) fn of(fleet: &Arc<Fleet>, clients: [&Client; 2]) -> Self {
        let logs = CLUSTERS.iter().zip(fleet.clusters()).zip(clients);
        Self(
            logs.map(|((name, cluster), client)| (*name, cluster.audit_log(), client.clone()))
                .collect(),
        )
    }

    /// A place in each log.
    pub(super) async fn mark(&self) -> anyhow::Result<Vec<Mark>> {
        let mut marks = Vec::new();
        for (_, log, client) in &self.0 {
            marks.push(log.settle(client).await?);
        }
        Ok(marks)
    }

    /// Requests of agents since `marks`, once there are no more.
    pub(super) async fn settled(&self, marks: &[Mark]) -> anyhow::Result<Vec<(&'static str, Counts)>> {
        let deadline = Instant::now() + REST_WAIT;
        let mut before = self.of_the_tested(marks)?;
        loop {
            tokio::time::sleep(REST).await;
            self.mark().await?;
            let now = self.of_the_tested(marks)?;
            let total =
                |counts: &[(_, Counts)]| counts.iter().map(|(_, counts)| counts.writes()).sum::<u64>();
            if total(&now) == total(&before) {
                return Ok(now);
            }
            if Instant::now() > deadline {
                bail!(
                    "after {} s the agents still write: they do not come to rest",
                    REST_WAIT.as_secs()
                );
            }
            before = now;
        }
    }

    fn of_the_tested(&self, marks: &[Mark]) -> anyhow::Result<Vec<(&'static str, Counts)>> {
        let counted = self.0.iter().zip(marks).map(|((name, log, _), mark)| {
            let requests = log.since(*mark)?;
            let asked = requests
                .into_iter()
                .filter(|request| !request.is_lease())
                .collect::<Vec<_>>();
            Ok((*name, Counts::of_the_tested(&asked)))
        });
        counted.collect()
    }

    /// Requests since `marks`, as far as `wanted`.
    pub(super) async fn since(
        &self,
        marks: &[Mark],
        wanted: impl Fn(&Request) -> bool,
    ) -> anyhow::Result<Vec<(&'static str, Counts)>> {
        self.mark().await?;
        let counted = self.0.iter().zip(marks).map(|((name, log, _), mark)| {
            let requests = log.since(*mark)?;
            Ok((*name, Counts::of(&requests, &wanted)))
        });
        counted.collect()
    }
}

/// Adds what was asked for each of the updates, by cluster, verb and kind.
pub(super) fn describe_requests(
    asked: &[(&'static str, Counts)],
    who: &str,
    updates: u32,
    section: &mut Section,
) {
    let each = |count: u64| count as f64 / f64::from(updates);
    let all = asked.iter().map(|(_, counts)| counts.total()).sum();
    section.figure(format!("{who}: requests, all"), each(all), "/update");
    for (cluster, counts) in asked {
        for (verb, resource, count) in counts.iter().filter(|(.., count)| each(*count) >= WORTH_A_LINE) {
            section.figure(
                format!("{who}: {verb} {resource}, {cluster}"),
                each(count),
                "/update",
            );
        }
    }
}
