//! The one test binary that crosses crates. Every test is registered here: the harness is not Rust's own, so an
//! attribute `#[test]` in these files would compile to nothing.

mod apply;
mod apply_real;
mod bad_words;
mod cert_manager;
mod charts;
mod client;
mod conformance;
mod crds;
mod dns_server;
mod doctors;
mod documents;
mod durability;
mod engine;
mod enrolled_clusters;
mod failures;
mod fuzz;
mod gitops;
mod grpcurl;
mod health;
mod hub_lease;
mod inventory;
mod join;
mod kubectl;
mod manifests;
mod many;
mod netsim;
mod observed_clusters;
mod owned_topologies;
mod permissions;
mod player;
mod profiles;
mod real_clusters;
mod registered;
mod renewal;
mod runbooks;
mod scenarios;
mod setup;
mod sim_cluster;
mod swarm;
mod tidy;
mod topology;
mod topology_mirror;
mod topology_webhook;
mod verify;
mod workloads;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = cluster::clusterset::child::run_if_child() {
        return code;
    }
    // Before any test, for a Kubernetes client that is first installs one by itself.
    if let Err(error) = shared::tls::install_crypto_provider() {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    // The longest first: permits are given in the order in which tests ask for them, and what begins late ends last.
    let mut trials = topology::trials();
    trials.extend(owned_topologies::trials());
    trials.extend(enrolled_clusters::trials());
    trials.extend(health::trials());
    trials.extend(many::trials());
    trials.extend(observed_clusters::trials());
    trials.extend(topology_webhook::trials());
    trials.extend(topology_mirror::trials());
    trials.extend(scenarios::trials());
    trials.extend(setup::trials());
    trials.extend(registered::trials());
    trials.extend(real_clusters::trials());
    trials.extend(sim_cluster::trials());
    trials.extend(conformance::trials());
    trials.extend(apply::trials());
    trials.extend(apply_real::trials());
    trials.extend(crds::trials());
    trials.extend(charts::trials());
    trials.extend(manifests::trials());
    trials.extend(permissions::trials());
    trials.extend(failures::trials());
    trials.extend(fuzz::trials());
    trials.extend(dns_server::trials());
    trials.extend(gitops::trials());
    trials.extend(cert_manager::trials());
    trials.extend(hub_lease::trials());
    trials.extend(verify::trials());
    trials.extend(profiles::trials());
    trials.extend(inventory::trials());
    trials.extend(durability::trials());
    trials.extend(engine::trials());
    trials.extend(client::trials());
    trials.extend(grpcurl::trials());
    trials.extend(join::trials());
    trials.extend(renewal::trials());
    trials.extend(runbooks::trials());
    trials.extend(bad_words::trials());
    trials.extend(kubectl::trials());
    trials.extend(documents::trials());
    trials.extend(doctors::trials());
    trials.extend(netsim::trials());
    trials.extend(swarm::trials());
    trials.extend(tidy::trials());
    trials.extend(workloads::trials());
    let names: Vec<String> = trials.iter().map(|trial| trial.name().to_owned()).collect();
    trials.push(registered::release_only(names));
    tributary_e2e::suite::run(trials)
}
