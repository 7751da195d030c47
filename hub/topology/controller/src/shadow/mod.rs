//! Owns: comparing, now and then, what Cluster API has made in the hub's own cluster with what would be planned for it, and
//! telling the differences.
//! Never: writes there, or ends before the drain.
//!
//! * `differing.rs`: in which Clusters, and what of it is news; pure. `metrics.rs`: what is counted.

mod differing;
mod metrics;

use std::time::Duration;

use anyhow::Context;
use kube::Client;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub use self::{differing::Differing, metrics::ShadowMetrics};
use super::{desired::offline::plans_of_server, live};

/// From one comparison to the next: all objects of topologies are read each time.
const INTERVAL: Duration = Duration::from_secs(300);

/// Compares for one hub.
pub struct Shadow {
    client: Client,
    metrics: ShadowMetrics,
    drain: CancellationToken,
    last: Differing,
    /// True if a message said that nothing can be compared.
    failing: bool,
}

impl Shadow {
    /// One that has compared nothing yet.
    pub fn new(client: Client, metrics: ShadowMetrics, drain: CancellationToken) -> Self {
        Self {
            client,
            metrics,
            drain,
            last: Differing::default(),
            failing: false,
        }
    }

    /// Runs until the drain begins.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let drain = self.drain.clone();
        let mut looks = interval(INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = drain.cancelled() => return Ok(()),
                _ = looks.tick() => {}
            }
            let compared = tokio::select! {
                () = drain.cancelled() => return Ok(()),
                compared = compare(&self.client) => compared,
            };
            match compared {
                Ok(now) => self.tell(now),
                Err(error) => self.failed(&error),
            }
        }
    }

    fn tell(&mut self, now: Differing) {
        for line in now.news(&self.last) {
            warn!("{line}");
        }
        let (agrees, differs) = now.counts();
        if self.failing || self.last == Differing::default() {
            info!(
                agrees,
                differs,
                findings = now.findings(),
                "topologies are compared with what would be planned"
            );
        }
        self.failing = false;
        self.metrics.compared((agrees, differs), now.findings());
        self.last = now;
    }

    /// Says it once; what follows is the same trouble.
    fn failed(&mut self, error: &anyhow::Error) {
        self.metrics.failed();
        if !self.failing {
            warn!("topologies are not compared with what would be planned: {error:#}");
        }
        self.failing = true;
    }
}

/// One look at everything.
///
/// # Errors
///
/// The kinds that cannot be read.
pub async fn compare(client: &Client) -> anyhow::Result<Differing> {
    let objects = live::read(client.clone(), &[]).await?;
    // Planning takes seconds for a thousand Clusters.
    let planned = tokio::task::spawn_blocking(|| plans_of_server(objects, &[])).await;
    let planned = planned
        .context("the comparison ended")?
        .map_err(anyhow::Error::msg)?;
    Ok(Differing::of(&planned))
}
