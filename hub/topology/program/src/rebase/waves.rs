//! Owns: carrying a rebase out: some Clusters at once, each of which must be healthy before others follow.
//! Never: stores anything. The class that a Cluster has says how far a rebase is.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, bail};
use clusterclass::model::Key;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{
    edit::{self, class, patch},
    health::{Health, health},
    server::Clusters,
};

/// The times of a rebase.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// From one look to the next.
    pub(super) look: Duration,
    /// A Cluster counts as healthy once it was so for so long: its conditions follow each other.
    pub(super) settle: Duration,
    /// One that fails for so long counts as failing: a webhook may be away for a moment.
    pub(super) patience: Duration,
    /// Longest time for the Clusters of one wave.
    pub(super) wait: Duration,
}

/// A rebase that is carried out.
pub(super) struct Rebase<'a> {
    pub(super) server: &'a Clusters,
    pub(super) to: &'a edit::ClassName,
    pub(super) pace: Pace,
    /// Cancelled by Ctrl-C: what is written is written to its end, and nothing else is begun.
    pub(super) ended: CancellationToken,
    /// Receives a line for each step.
    pub(super) tell: &'a mut (dyn FnMut(String) + Send),
}

/// A Cluster that is waited for.
#[derive(Default)]
struct Waiting {
    healthy_since: Option<Instant>,
    failing_since: Option<Instant>,
    why: String,
}

impl Rebase<'_> {
    /// Waits for `begun`, which have the class already, and then rebases the others, so many at once.
    ///
    /// # Errors
    ///
    /// A Cluster fails, or cannot be edited, or Ctrl-C: nothing else is begun then.
    pub(super) async fn carry_out(&mut self, begun: &[Key], waves: &[Vec<Key>]) -> anyhow::Result<()> {
        let all = begun.len() + waves.iter().map(Vec::len).sum::<usize>();
        let mut done = begun.len();
        let progress = |done: usize| format!("{done} of {all} Clusters have the class now");
        if !begun.is_empty() {
            (self.tell)(format!(
                "{} have the class already: they must be healthy first",
                begun.len()
            ));
            self.healthy(begun).await.with_context(|| progress(done))?;
        }
        for (at, wave) in waves.iter().enumerate() {
            (self.tell)(format!("wave {} of {}: {}", at + 1, waves.len(), shown(wave)));
            for cluster in wave {
                if self.ended.is_cancelled() {
                    bail!("ended by Ctrl-C; {}: the same command goes on", progress(done));
                }
                self.edit(cluster).await.with_context(|| progress(done))?;
                done += 1;
            }
            self.healthy(wave).await.with_context(|| progress(done))?;
        }
        Ok(())
    }

    async fn edit(&mut self, cluster: &Key) -> anyhow::Result<()> {
        let (namespace, name) = cluster;
        let found = self.server.get(cluster).await?;
        let found = found.with_context(|| format!("Cluster {namespace}/{name} is gone"))?;
        let to = self.to.of(namespace);
        if class(&found).as_ref() == Some(&to) {
            return Ok(());
        }
        self.server.edit(cluster, patch(&found, &to), false).await
    }

    /// Waits until all of them are healthy.
    async fn healthy(&mut self, clusters: &[Key]) -> anyhow::Result<()> {
        let began = Instant::now();
        let mut waiting: BTreeMap<&Key, Waiting> =
            clusters.iter().map(|one| (one, Waiting::default())).collect();
        loop {
            let now = Instant::now();
            for cluster in clusters {
                let Some(known) = waiting.get_mut(cluster) else {
                    continue;
                };
                let seen = look(self.server, cluster, &self.to.of(&cluster.0)).await;
                if known.is_settled(&seen, now, self.pace) {
                    (self.tell)(format!("Cluster {}/{} is healthy", cluster.0, cluster.1));
                    waiting.remove(cluster);
                } else if let Some(since) = known.failing_since
                    && now - since >= self.pace.patience
                {
                    return Err(failing(cluster, &known.why));
                } else if now - began >= self.pace.wait {
                    let seconds = self.pace.wait.as_secs();
                    return Err(failing(
                        cluster,
                        &format!("not healthy within {seconds} s: {}", known.why),
                    ));
                }
            }
            if waiting.is_empty() {
                return Ok(());
            }
            tokio::select! {
                () = self.ended.cancelled() => {
                    bail!("ended by Ctrl-C while {} were on their way: the same command goes on", waiting.len());
                }
                () = sleep_until(now + self.pace.look) => {}
            }
        }
    }
}

impl Waiting {
    /// Takes in what was seen; true once the Cluster was healthy for long enough.
    fn is_settled(&mut self, seen: &Health, now: Instant, pace: Pace) -> bool {
        match seen {
            Health::Healthy => {
                self.failing_since = None;
                now - *self.healthy_since.get_or_insert(now) >= pace.settle
            }
            Health::OnItsWay(why) => {
                (self.healthy_since, self.failing_since) = (None, None);
                self.why.clone_from(why);
                false
            }
            Health::Fails(why) => {
                self.healthy_since = None;
                self.failing_since.get_or_insert(now);
                self.why.clone_from(why);
                false
            }
        }
    }
}

/// Reads the state of a Cluster; one that cannot be read is on its way.
async fn look(server: &Clusters, cluster: &Key, to: &Key) -> Health {
    match server.get(cluster).await {
        Err(error) => Health::OnItsWay(format!("{error:#}")),
        Ok(None) => Health::Fails("it is gone".to_owned()),
        Ok(Some(found)) if class(&found).as_ref() != Some(to) => {
            let why = "another writer gave it its former class again: change the class at the source of the Cluster";
            Health::Fails(why.to_owned())
        }
        Ok(Some(found)) => health(&found),
    }
}

fn failing((namespace, name): &Key, why: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "Cluster {namespace}/{name} fails: {why}; the Clusters after it are left as they are: mend it and run the same command \
         again, or give it its former class"
    )
}

/// Clusters in a line.
pub(super) fn shown(clusters: &[Key]) -> String {
    let names = clusters
        .iter()
        .map(|(namespace, name)| format!("{namespace}/{name}"));
    names.collect::<Vec<_>>().join(", ")
}
