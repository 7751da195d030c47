//! Owns: many services exported at one moment: until the last of them is imported, with its slice, and the requests
//! that both agents needed for it.
//! Never: counts what people ask, or the cluster's own components.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use kube::{Client, api::Api};
use tokio::task::JoinSet;

use super::{
    super::{figure::Aim, report::Section},
    cost::Requests,
    floor,
    objects::{create, export, service, slice},
    way::{Arrivals, watch},
};

/// The namespace of the exports that come at once, and how many they are.
pub(super) const BURST: &str = "burst";
const EXPORTS: u32 = 100;
const SECONDS_AIM: f64 = 1.5;
/// Of both agents together.
const REQUESTS_AIM: f64 = 800.0;

/// Measures it.
pub(super) async fn burst(east: &Client, west: &Client, requests: &Requests) -> anyhow::Result<Section> {
    let mut section = Section::begin(format!("real clusters, {EXPORTS} exports at once"));
    let arrivals = Arc::new(Arrivals::default());
    let mut watching = JoinSet::new();
    watching.spawn(watch(Api::namespaced(west.clone(), BURST), arrivals.clone()));
    let name = |index: u32| format!("cart-{index:03}");
    for index in 0..EXPORTS {
        create(east, Some(BURST), service(BURST, &name(index))).await?;
        create(east, Some(BURST), slice(BURST, &name(index), index)).await?;
    }
    let marks = requests.mark().await?;
    let began = Instant::now();
    let creating = (0..EXPORTS).map(|index| create(east, Some(BURST), export(BURST, &name(index))));
    futures::future::try_join_all(creating).await?;
    let created = began.elapsed();
    let seen = arrivals.all(&(0..EXPORTS).collect::<BTreeSet<_>>()).await?;
    let last = seen.values().max();
    let last = last.map_or(Duration::ZERO, |at| at.saturating_duration_since(began));
    section.figure("until all were created", created.as_secs_f64(), "s");
    section.aimed(
        "until the last was imported, with its slice",
        last.as_secs_f64(),
        "s",
        Aim::Below(SECONDS_AIM),
    );
    let asked = requests.settled(&marks).await?;
    let floor = floor::floor([east, west], BURST, EXPORTS).await?;
    section.figure("the same writes, known beforehand", floor.as_secs_f64(), "s");
    let ratio = last.as_secs_f64() / floor.as_secs_f64();
    section.figure("ratio, Tributary to the same writes", ratio, "");
    section.aimed(
        "requests of both agents",
        asked.iter().map(|(_, counts)| counts.total() as f64).sum(),
        "",
        Aim::Below(REQUESTS_AIM),
    );
    for (cluster, counts) in asked {
        for (verb, resource, count) in counts.iter() {
            let each = count as f64 / f64::from(EXPORTS);
            section.figure(format!("{cluster}: {verb} {resource}, an export"), each, "");
        }
    }
    Ok(section)
}
