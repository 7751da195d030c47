//! Owns: keeping the topologies of Clusters, where no other controller does: what is planned is recorded in a log of its own,
//! and then written.
//! Never: writes beside another controller or another hub, writes what was not recorded, or replaces machines of more Clusters of a class
//! at once than it may.
//!
//! * `hand_over.rs`: Clusters that go to another controller, or come from it.
//! * `rules`: what is decided, recorded and said; pure. `journal.rs`: the log of it.
//! * `lease.rs`: which hub does it. `engine.rs`: one look at everything. `asked.rs`: dry runs that were made; `requests.rs`: all others. `server.rs`: what
//!   is asked of an API server; `api_server.rs`: of a real one. `metrics.rs`: what is counted.

mod api_server;
mod asked;
pub mod engine;
pub mod hand_over;
pub mod journal;
mod lease;
mod metrics;
mod requests;
pub mod rules;
pub mod server;

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use kube::Client;
use shared::{
    model::{Clusterset, Epoch},
    process::{monotonic, random},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use self::{
    engine::{Count, Engine, LookError, Looked},
    journal::Journal,
    lease::WriterLease,
    rules::rival::rival,
    server::Server,
};
use event_log as log;
use hub_core::clock::Clock;

pub use self::{api_server::ApiServer, metrics::OwnMetrics, rules::waves::Waves};

/// From one look to the next while something is on its way, if nothing is seen to change before: attempts are repeated, and
/// time runs out.
const WORKING_INTERVAL: Duration = Duration::from_secs(5);
/// The same while nothing is on its way.
const RESTING_INTERVAL: Duration = Duration::from_secs(60);
/// After a change, so long others are waited for.
const DEBOUNCE: Duration = Duration::from_millis(500);
/// A look may take a fifth of the time at most: after it, this many times as long passes before the next one.
const PAUSE_OF_LOOKS: u32 = 4;
/// Directory of the topologies' log below the data of a clusterset.
const DIRECTORY: &str = "topology";
/// A rollout that takes longer fails, and holds the others of its class; milliseconds.
pub const PATIENCE_MILLIS: u64 = 30 * 60 * 1_000;

/// Refuses to begin where another controller keeps topologies. A server that does not answer is no reason: nothing is
/// written until it does.
///
/// # Errors
///
/// Another controller is there; how it is seen, and what to do.
pub async fn refuse_rival(client: &Client, clock: Clock) -> anyhow::Result<()> {
    let server = ApiServer::new(client.clone());
    let (Ok(signs), Ok(listed)) = (server.signs().await, server.read().await) else {
        return Ok(());
    };
    if let Some(why) = rival(&signs, &listed.objects, clock.wall()) {
        bail!(
            "--topology own: another controller keeps topologies here ({why}), and two would replace each other's machines \
             without end: use --topology observe or shadow, or switch its feature gate ClusterTopology off first"
        );
    }
    Ok(())
}

/// Opens the log of the topologies of a clusterset. It blocks.
///
/// # Errors
///
/// It cannot be made or read.
pub fn open(data: &Path, clusterset: &Clusterset, clock: Clock) -> anyhow::Result<OwnLog> {
    let directory = data.join(DIRECTORY);
    let epoch = Epoch::default().next(clock.wall(), random());
    let log = log::open(&directory, clusterset, epoch).context("the log of topologies cannot be opened")?;
    Ok(OwnLog(Journal::open(log)?))
}

/// The log of the topologies of a clusterset, read.
pub struct OwnLog(Journal);

/// Keeps the topologies of the hub's own Kubernetes cluster.
pub struct Owner {
    engine: Engine<ApiServer>,
    client: Client,
    changed: Arc<Notify>,
    clock: Clock,
    metrics: OwnMetrics,
    drain: CancellationToken,
    /// True if a message said that nothing can be read.
    failing: bool,
    last: Count,
}

impl Owner {
    /// A keeper that continues from its log. It looks after a change, and now and then.
    pub fn new(
        client: Client,
        log: OwnLog,
        waves: Waves,
        clock: Clock,
        metrics: OwnMetrics,
        drain: CancellationToken,
    ) -> Self {
        let server = ApiServer::watched(client.clone());
        Self {
            client,
            changed: server.changed(),
            engine: Engine::new(server, log.0, waves).ending_with(drain.clone()),
            clock,
            metrics,
            drain,
            failing: false,
            last: Count::default(),
        }
    }

    /// Runs until the drain begins.
    ///
    /// # Errors
    ///
    /// Nothing can be recorded any more.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let log = self.engine.log_name(self.clock.wall()).await?;
        let mut lease = WriterLease::new(self.client.clone(), &log, monotonic());
        let drain = self.drain.clone();
        while lease.won(&drain, &self.metrics).await {
            let (ended, lost) = (CancellationToken::new(), CancellationToken::new());
            self.engine.write_until(lost.clone());
            let keeping = async {
                let kept = self.keep(&lost).await;
                ended.cancel();
                kept
            };
            let (kept, ()) = tokio::join!(keeping, lease.keep(&ended, &lost));
            kept?;
            if self.engine.has_fallen_back() {
                // Another hub need not wait for one that writes nothing.
                lease.release().await;
                drain.cancelled().await;
                return Ok(());
            }
        }
        lease.release().await;
        Ok(())
    }

    /// Looks again and again, until the drain begins or another hub may write.
    async fn keep(&mut self, lost: &CancellationToken) -> anyhow::Result<()> {
        let drain = self.drain.clone();
        loop {
            let begun = Instant::now();
            // A drain ends it between two Clusters: what is begun of one is carried out and recorded.
            let next = match self.engine.look(self.clock.wall()).await {
                Ok(Looked::FellBack(why)) => {
                    error!(
                        %why,
                        "another controller keeps topologies: nothing is written any more; switch its feature gate \
                         ClusterTopology off and restart the hub, or use --topology observe"
                    );
                    self.metrics.fell_back();
                    return Ok(());
                }
                Ok(Looked::Done(count)) => self.looked(count),
                Err(LookError::Unread(error)) => self.unread(&error),
                Err(LookError::Unrecorded(error)) => return Err(error),
            };
            let rested = Instant::now() + begun.elapsed() * PAUSE_OF_LOOKS;
            let changed = async {
                self.changed.notified().await;
                sleep_until(rested.max(Instant::now() + DEBOUNCE)).await;
            };
            tokio::select! {
                () = drain.cancelled() => return Ok(()),
                () = lost.cancelled() => return Ok(()),
                () = sleep_until(next) => {}
                () = changed => {}
            }
        }
    }

    fn looked(&mut self, count: Count) -> Instant {
        let Count {
            settled,
            working,
            held,
            failing,
            resting,
            writes,
        } = count;
        let states = |count: Count| Count { writes: 0, ..count };
        if self.failing || states(count) != states(self.last) {
            info!(
                settled,
                working, held, failing, resting, writes, "topologies are kept"
            );
        }
        (self.failing, self.last) = (false, count);
        self.metrics.looked(&count);
        let goes_on = working + held + failing > 0;
        Instant::now()
            + if goes_on {
                WORKING_INTERVAL
            } else {
                RESTING_INTERVAL
            }
    }

    /// Says it once; what follows is the same trouble.
    fn unread(&mut self, error: &anyhow::Error) -> Instant {
        self.metrics.failed();
        if !self.failing {
            warn!("topologies are not kept: {error:#}");
        }
        self.failing = true;
        Instant::now() + WORKING_INTERVAL
    }
}

#[cfg(test)]
mod tests;
