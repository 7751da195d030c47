//! Owns: shape real: two real clusters, the programs between them, and how long a changed EndpointSlice takes from
//! the one API server to the other, beside a bare relay in the same run.
//! Never: is what fails when the clusters are too slow: late writes count, and the relay shows the floor.
//!
//! * `way`: changes at a rate, and their arrivals. `relay`: the floor. `cost`: processor time and requests.
//! * `burst`: many exports at once. `floor`: the same writes, by somebody who knows them. `objects`: what is put into the clusters.

mod burst;
mod cost;
mod floor;
mod objects;
mod relay;
mod way;

use std::{sync::Arc, time::Duration};

use kube::Client;
use serde_json::json;

use super::{args::Arguments, figure::Aim, hub::Setup, report::Section};
use crate::{
    clusterset::{Backend, LocalClusterset},
    real::{Fleet, HARNESS_USER, Options, Request},
};
use burst::{BURST, burst};
use cost::{Requests, Spent, describe_requests};
use floor::BURST_FLOOR;
use objects::create;
use way::{Carrier, Wave, Way};

/// Where slices change, and where they are to arrive.
const CLUSTERS: [&str; 2] = ["east", "west"];
/// The namespace that Tributary carries, and the one that the relay carries.
const CARRIED: &str = "carried";
const FLOOR: &str = "floor";
/// Times the floor that Tributary may take.
const RATIO_AIMS: [(&str, f64, f64); 2] = [("p50", 0.5, 1.5), ("p99", 0.99, 2.0)];
/// At least this share of the relay's changes must have arrived for the rate to count as one that it sustains.
const SUSTAINED: f64 = 0.99;

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
    sections.push(burst(&east, &west, &requests).await?);
    let mut carried = Way::open(CARRIED, Carrier::Tributary, &east, &west).await?;
    let mut floor = Way::open(FLOOR, Carrier::Relay, &east, &west).await?;
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
        sections.push(section);
    }
    clusterset.end().await
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

/// The generator writes under the same account, but neither copies nor in the second cluster.
fn of_the_relay(cluster: &str, request: &Request) -> bool {
    let copies = cluster != CLUSTERS[0] || request.name.starts_with(relay::COPY_PREFIX);
    request.namespace == FLOOR && copies
}

/// Every request of an agent, of whatever kind: Leases and checks of health as well.
fn of_the_agents(_: &str, request: &Request) -> bool {
    request.user != HARNESS_USER
        && request
            .user
            .starts_with("system:serviceaccount:tributary-system:")
}

/// Ours beside the floor.
fn compare(section: &mut Section, bare: &Wave, ours: &Wave) {
    let arrived = |wave: &Wave| wave.latency.len() as f64 / f64::from(wave.asked_for);
    for (who, wave) in [("relay", bare), ("Tributary", ours)] {
        let millis = |quantile| wave.latency.value_at_quantile(quantile) as f64 / 1e3;
        for (name, quantile, _) in RATIO_AIMS {
            section.figure(format!("{who}: due to decoded {name}"), millis(quantile), "ms");
        }
        section.figure(format!("{who}: max"), wave.latency.max() as f64 / 1e3, "ms");
        section.figure(format!("{who}: asked for"), f64::from(wave.asked_for), "updates");
        section.figure(format!("{who}: arrived"), arrived(wave), "of 1");
    }
    for (name, quantile, aim) in RATIO_AIMS {
        let of = |wave: &Wave| wave.latency.value_at_quantile(quantile) as f64;
        section.aimed(
            format!("ratio {name}, Tributary to relay"),
            of(ours) / of(bare).max(1.0),
            "",
            Aim::Below(aim),
        );
    }
    if arrived(bare) < SUSTAINED {
        section
            .note("the relay does not sustain this rate: changes replaced others before they were carried");
    }
}
