//! Owns: shape real: two real clusters, the programs between them, and how long a changed EndpointSlice takes from
//! the one API server to the other, beside a bare relay in the same run.
//! Never: is what fails when the clusters are too slow: late writes count, and the relay shows the floor.
//!
//! * `way`: changes at a rate, and their arrivals. `relay`: the floor. `compare`: the one beside the other.
//! * `cost`: processor time and requests. `counted`: whose requests count.
//! * `burst`: many exports at once. `floor`: the same writes, by somebody who knows them. `objects`: what is put into the clusters.

mod burst;
mod compare;
mod cost;
mod counted;
mod floor;
mod objects;
mod relay;
mod way;

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use kube::Client;
use serde_json::json;

use super::{args::Arguments, hub::Setup, judged::judge_clusters, report::Section};
use burst::{BURST, burst};
use cluster::{
    clusterset::{Backend, LocalClusterset},
    real::{Fleet, Options},
};
use compare::compare;
use cost::{Requests, Spent, describe_requests};
use counted::{of_the_agents, of_the_relay};
use floor::BURST_FLOOR;
use objects::create;
use way::{Carrier, Way};

/// Clusters in which slices change, and in which they arrive.
const CLUSTERS: [&str; 2] = ["east", "west"];
/// The namespace that Tributary carries, and the one that the relay carries.
const CARRIED: &str = "carried";
const FLOOR: &str = "floor";

/// Measures at every rate.
pub(super) async fn measure(
    setup: &Setup,
    arguments: &Arguments,
    sections: &mut Vec<Section>,
) -> anyhow::Result<()> {
    eprintln!("starting two real clusters, a hub and two agents");
    let options = Options {
        sync_to_disk: true,
        ..Options::default()
    };
    let fleet = Arc::new(Fleet::start(&CLUSTERS, options).await?);
    let backend = Backend::Real(fleet.clone());
    let mut clusterset = LocalClusterset::start(&setup.data("real")?, &backend, &CLUSTERS).await?;
    let [east, west] = CLUSTERS.map(|name| clusterset.cluster(name).map(|cluster| cluster.client.clone()));
    let (east, west) = (east?, west?);
    let requests = Requests::of(&fleet, [&east, &west]);
    make_namespaces([&east, &west]).await?;
    let both = [(CLUSTERS[0], &east), (CLUSTERS[1], &west)];
    let mut section = burst(&east, &west, &requests).await?;
    let judged = judge_clusters(&mut section, &both, BURST).await;
    sections.push(section);
    judged?;
    let mut carried = Way::open(CARRIED, Carrier::Tributary, &east, &west).await?;
    let relay = Carrier::Relay([
        relay_in(&fleet, 0, &east).await?,
        relay_in(&fleet, 1, &west).await?,
    ]);
    let mut floor = Way::open(FLOOR, relay, &east, &west).await?;
    for &rate in &arguments.real_rates {
        let mut section = Section::begin(format!("real clusters, {rate} updates/s"));
        let lasting = Duration::from_secs(arguments.seconds);

        let (marks, before) = (requests.mark().await?, Spent::of(&mut clusterset, &fleet)?);
        let bare = floor.wave(&east, rate, lasting).await?;
        let after_bare = Spent::of(&mut clusterset, &fleet)?;
        let asked_bare = requests.since(&marks, of_the_relay).await?;

        let (marks, before_ours) = (requests.mark().await?, Spent::of(&mut clusterset, &fleet)?);
        let ours = carried.wave(&east, rate, lasting).await?;
        let after_ours = Spent::of(&mut clusterset, &fleet)?;
        let asked_ours = requests.since(&marks, of_the_agents).await?;

        compare(&mut section, &bare, &ours);
        section.beside_the_disk(&setup.directory)?;
        describe_requests(&asked_bare, "relay", bare.asked_for, &mut section);
        describe_requests(&asked_ours, "Tributary", ours.asked_for, &mut section);
        after_bare.describe(&before, "relay", bare.asked_for, &mut section);
        after_ours.describe(&before_ours, "Tributary", ours.asked_for, &mut section);
        section.note("all processes share all cores; one etcd serves both clusters");
        let judged = judge_clusters(&mut section, &both, CARRIED).await;
        sections.push(section);
        judged?;
    }
    clusterset.end().await
}

/// The relay's client in one of the clusters.
async fn relay_in(fleet: &Fleet, index: usize, administrator: &Client) -> anyhow::Result<Client> {
    let cluster = fleet.clusters().get(index).context("both clusters run")?;
    relay::client(cluster, administrator).await
}

async fn make_namespaces(clients: [&Client; 2]) -> anyhow::Result<()> {
    for client in clients {
        for name in [CARRIED, FLOOR, BURST, BURST_FLOOR] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            create(client, None, namespace).await?;
        }
    }
    Ok(())
}
