//! Owns: a management cluster whose topologies the hub's own engine keeps, look by look.
//! Never: has upstream's manager.

use anyhow::{bail, ensure};
use hub::{
    clock::Clock,
    log,
    topology::own::{
        ApiServer, Waves,
        engine::{Count, Engine, Looked},
        journal::Journal,
    },
};
use shared::model::{Clusterset, Epoch, UnixMillis};
use tempfile::TempDir;

use super::world::ManagementCluster;
use cluster::real::cluster_api::ClusterApi;

/// Looks until nothing is left to do, at most.
const LOOKS_MAX: usize = 50;
/// All at once: who waits for whom is another test's.
const WAVES: Waves = Waves {
    at_once: 1_000,
    patience_millis: 3_600_000,
};

/// The cluster, and who keeps its topologies.
pub(super) struct Ours {
    engine: Engine<ApiServer>,
    clock: Clock,
    writes: usize,
    world: ManagementCluster,
    // Drop removes the log, after who writes it.
    _data: TempDir,
}

impl Ours {
    /// A world in which nothing happens yet.
    pub(super) async fn start(upstream: &ClusterApi, namespaces: Vec<String>) -> anyhow::Result<Self> {
        Self::over(ManagementCluster::without_manager(upstream, namespaces).await?)
    }

    /// One that begins to keep what there is.
    pub(super) fn over(world: ManagementCluster) -> anyhow::Result<Self> {
        let data = TempDir::new()?;
        let clusterset = Clusterset::new("example.org", "topologies")?;
        let epoch = Epoch::default().next(UnixMillis(1), 1);
        let journal = Journal::open(log::open(data.path(), &clusterset, epoch)?)?;
        Ok(Self {
            engine: Engine::new(ApiServer::new(world.client()), journal, WAVES),
            clock: Clock::start(),
            writes: 0,
            world,
            _data: data,
        })
    }

    pub(super) fn world(&self) -> &ManagementCluster {
        &self.world
    }

    /// Number of objects written or deleted so far.
    pub(super) fn writes(&self) -> usize {
        self.writes
    }

    /// Looks, and lets providers report, until nothing is left to do. A last look writes nothing.
    pub(super) async fn settle(&mut self) -> anyhow::Result<()> {
        let clock = self.clock;
        self.settle_by(|| clock.wall()).await
    }

    /// The same at this time of the wall clock.
    pub(super) async fn settle_at(&mut self, now: UnixMillis) -> anyhow::Result<()> {
        self.settle_by(|| now).await
    }

    async fn settle_by(&mut self, now: impl Fn() -> UnixMillis) -> anyhow::Result<()> {
        let mut last = Count::default();
        for _ in 0..LOOKS_MAX {
            let count = match self.engine.look(now()).await? {
                Looked::Done(count) => count,
                Looked::FellBack(why) => bail!("it sees another controller: {why}"),
            };
            self.writes += count.writes;
            last = count;
            ensure!(
                count.failing == 0,
                "{} Clusters fail: {}",
                count.failing,
                self.world.conditions().await?.join("; ")
            );
            let news = self.world.provide().await?;
            if !news && count.working + count.held == 0 {
                return Ok(());
            }
        }
        bail!(
            "it never comes to an end: at the last look {} Clusters are on their way, with {} writes, and {} held; not \
             observed: {}; {}",
            last.working,
            last.writes,
            last.held,
            self.world.unobserved().await?.join(", "),
            self.world.conditions().await?.join("; ")
        )
    }
}
