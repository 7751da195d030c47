//! Any process is killed at any point: the outcome is what the exports say, as if nobody had been killed.
//!
//! TRIBUTARY_E2E_ROUNDS sets how many rounds there are (default 6), TRIBUTARY_E2E_SEED repeats them.

use std::env;

use anyhow::Context;
use cluster::clusterset::{Backend, LocalClusterset, eventually::eventually};
use kube::{Api, api::ListParams};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use shared::api::ServiceImport;

use super::{guard::Guard, hub::listed, shop::Shop};

const CLUSTERS: [&str; 3] = ["east", "west", "north"];
/// Services that come and go.
const SERVICES: [&str; 4] = ["cart", "basket", "lamp", "chair"];
/// Number of kills, unless the environment says otherwise.
const ROUNDS: u64 = 6;
/// Services that are exported at once, so that an agent is killed between two of them.
const MANY: usize = 40;

/// A number from the environment.
fn number(variable: &str) -> anyhow::Result<Option<u64>> {
    match env::var(variable) {
        Ok(text) => Ok(Some(
            text.parse().with_context(|| format!("{variable} is no number"))?,
        )),
        Err(_) => Ok(None),
    }
}

/// The seed of this run, printed so that it can be repeated.
fn seed() -> anyhow::Result<u64> {
    let seed = number("TRIBUTARY_E2E_SEED")?.unwrap_or_else(rand::random);
    println!("TRIBUTARY_E2E_SEED={seed}");
    Ok(seed)
}

/// Hub, agents or both are killed while exports change.
pub(super) async fn any_process_at_any_point(backend: Backend) -> anyhow::Result<()> {
    let mut random = StdRng::seed_from_u64(seed()?);
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &backend, &CLUSTERS).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "east", "steady", &["10.1.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    let guard = Guard::set(&clusterset, &shop.namespace).await?;
    for _ in 0..number("TRIBUTARY_E2E_ROUNDS")?.unwrap_or(ROUNDS) {
        let victims = victims(&mut random);
        change(&clusterset, &mut shop, &mut random).await?;
        for &victim in &victims {
            match victim {
                "hub" => clusterset.kill_hub().await?,
                agent => clusterset.kill_agent(agent).await?,
            }
            change(&clusterset, &mut shop, &mut random).await?;
        }
        for &victim in &victims {
            match victim {
                "hub" => clusterset.start_hub().await?,
                agent => clusterset.start_agent(agent).await?,
            }
            change(&clusterset, &mut shop, &mut random).await?;
        }
    }
    listed(&clusterset, &CLUSTERS).await?;
    shop.arrived(&clusterset).await?;
    guard.nothing_lost_of(&["steady"])?;
    shop.close(&clusterset).await?;
    clusterset.end().await
}

/// The hub, an agent, or both.
fn victims(random: &mut StdRng) -> Vec<&'static str> {
    let agent = CLUSTERS.choose(random).copied().unwrap_or("east");
    match random.random_range(0..3) {
        0 => vec!["hub"],
        1 => vec![agent],
        _ => vec![agent, "hub"],
    }
}

/// One export comes, changes or goes.
async fn change(clusterset: &LocalClusterset, shop: &mut Shop, random: &mut StdRng) -> anyhow::Result<()> {
    let cluster = CLUSTERS.choose(random).copied().unwrap_or("east");
    let service = SERVICES.choose(random).copied().unwrap_or("cart");
    if shop.exports(cluster, service) && random.random_bool(0.4) {
        return shop.withdraw(clusterset, cluster, service).await;
    }
    let address = format!(
        "10.9.{}.{}",
        random.random_range(0..250),
        random.random_range(1..250)
    );
    shop.export(clusterset, cluster, service, &[&address]).await
}

/// An agent is killed when it has written a part of what it is to write.
pub(super) async fn an_agent_in_the_middle_of_applying() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &CLUSTERS).await?;
    let mut shop = Shop::open(&clusterset).await?;
    clusterset.kill_agent("west").await?;
    for index in 0..MANY {
        shop.export(&clusterset, "east", &format!("many-{index}"), &["10.1.0.1"])
            .await?;
    }
    shop.arrived_in(&clusterset, "north").await?;
    let imports: Api<ServiceImport> =
        Api::namespaced(clusterset.cluster("west")?.client.clone(), &shop.namespace);
    let mut written = 0;
    for _ in 0..3 {
        clusterset.start_agent("west").await?;
        written = eventually("west's agent has begun to write", async || {
            let now = imports.list(&ListParams::default()).await?.items.len();
            Ok((now > written || now == MANY).then_some(now))
        })
        .await?;
        clusterset.kill_agent("west").await?;
    }
    clusterset.start_agent("west").await?;
    shop.arrived(&clusterset).await?;
    shop.close(&clusterset).await?;
    clusterset.end().await
}
