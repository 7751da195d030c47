//! Owns: a clusterset whose exports change by chance, and what has to hold of it whatever crashes.
//! Never: crashes anything.

use std::{path::Path, time::Duration};

use anyhow::ensure;
use hub::certs::Subject;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use shared::model::ClusterId;

use cluster::clusterset::{Backend, LocalClusterset, guard::Guard, shop::Shop};
use oracle::laws::{Guarded, Law};

/// The clusters, each with an agent.
pub(super) const CLUSTERS: [&str; 3] = ["east", "west", "north"];
/// Members without a cluster, which only report.
pub(super) const REPORTERS: [&str; 2] = ["load-1", "load-2"];
/// Services that come and go.
const SERVICES: [&str; 4] = ["cart", "basket", "lamp", "chair"];
/// Services that stay: nothing of them may ever go.
const STEADY: [&str; 3] = ["steady-east", "steady-west", "steady-north"];
/// Probability that a change withdraws an export, if it can.
const WITHDRAWN: f64 = 0.4;

/// The clusterset.
pub(super) struct ChangingClusterset {
    /// Hub, clusters and agents.
    pub clusterset: LocalClusterset,
    /// The random generator.
    pub random: StdRng,
    shop: Shop,
    guard: Guard,
}

impl ChangingClusterset {
    /// Starts everything below a directory, and waits until each cluster holds something of each other.
    pub(super) async fn set(dir: &Path, seed: u64) -> anyhow::Result<Self> {
        let clusterset = LocalClusterset::start(dir, &Backend::Simulated, &CLUSTERS).await?;
        for name in REPORTERS {
            clusterset.issue(name, &Subject::Member(ClusterId::new(name)?))?;
        }
        let mut shop = Shop::open(&clusterset).await?;
        for (index, (cluster, service)) in CLUSTERS.into_iter().zip(STEADY).enumerate() {
            shop.export(&clusterset, cluster, service, &[&format!("10.8.0.{}", index + 1)])
                .await?;
        }
        shop.arrived(&clusterset).await?;
        let guard = Guard::set(&clusterset, &shop.namespace).await?;
        Ok(Self {
            clusterset,
            random: StdRng::seed_from_u64(seed),
            shop,
            guard,
        })
    }

    /// One export comes, changes or goes, and so everybody has to hear of it.
    pub(super) async fn change(&mut self) -> anyhow::Result<()> {
        let random = &mut self.random;
        let cluster = CLUSTERS.choose(random).copied().unwrap_or("east");
        let service = SERVICES.choose(random).copied().unwrap_or("cart");
        if self.shop.exports(cluster, service) && random.random_bool(WITHDRAWN) {
            return self.shop.withdraw(&self.clusterset, cluster, service).await;
        }
        self.export(cluster, service).await
    }

    /// An export comes, or has another endpoint.
    pub(super) async fn grow(&mut self) -> anyhow::Result<()> {
        let random = &mut self.random;
        let cluster = CLUSTERS.choose(random).copied().unwrap_or("east");
        let service = SERVICES.choose(random).copied().unwrap_or("cart");
        self.export(cluster, service).await
    }

    /// Exports a Service with an endpoint that nothing had before.
    async fn export(&mut self, cluster: &str, service: &str) -> anyhow::Result<()> {
        let random = &mut self.random;
        let (net, host) = (random.random_range(0..250), random.random_range(1..250));
        let address = format!("10.9.{net}.{host}");
        self.shop
            .export(&self.clusterset, cluster, service, &[&address])
            .await
    }

    /// Several changes at once.
    pub(super) async fn changes(&mut self, count: usize) -> anyhow::Result<()> {
        for _ in 0..count {
            self.change().await?;
        }
        Ok(())
    }

    /// Waits until every cluster holds what the exports say; nothing that lives has gone meanwhile. Says how much was
    /// guarded by that.
    pub(super) async fn settled(&self) -> anyhow::Result<Guarded> {
        self.shop.arrived(&self.clusterset).await?;
        self.guard.nothing_lost_of(&STEADY)?;
        let mut guarded = Guarded::default();
        guarded.count(Law::Holds, self.shop.compared(&self.clusterset));
        guarded.count(Law::Stood, self.guard.guarded(&STEADY)?);
        Ok(guarded)
    }

    /// Lets a random part of a time pass: the moment of a crash is to be any.
    pub(super) async fn any_moment(&mut self, within: Duration) {
        let micros = u64::try_from(within.as_micros()).unwrap_or(u64::MAX);
        let micros = self.random.random_range(0..=micros);
        tokio::time::sleep(Duration::from_micros(micros)).await;
    }

    /// Ends everything in good order and verifies the log in the hub's directory from its first row.
    pub(super) async fn end(self) -> anyhow::Result<()> {
        let data = self.clusterset.data();
        self.clusterset.end().await?;
        verify(&data)
    }
}

/// Verifies a log that nobody uses.
pub(super) fn verify(data: &Path) -> anyhow::Result<()> {
    let report = hub::maintain::verify(data, &mut |_| {})?;
    let logs = report.logs.iter();
    let damages: Vec<String> = logs
        .flat_map(|log| &log.corruptions)
        .map(ToString::to_string)
        .collect();
    ensure!(
        report.is_good(),
        "the chain does not hold: {}",
        damages.join("; ")
    );
    Ok(())
}
