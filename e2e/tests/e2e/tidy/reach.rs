//! Owns: the law of reach: which dependencies a crate must not have, directly or over others, as Cargo resolves it.
//! Never: reads a source.

use std::{collections::BTreeSet, process::Command};

use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use tributary_e2e::suite::plain_test;

/// Runtimes, sockets and stores.
const IO: &[&str] = &["tokio", "hyper", "rustls", "sled", "socket2", "rustix"];
/// gRPC, and the client of Kubernetes.
const CLIENTS: &[&str] = &["tonic", "kube", "kube-client", "kube-runtime"];
/// The types of Kubernetes.
const KUBERNETES: &[&str] = &["kube-core", "k8s-openapi"];
/// Logs and metrics.
const REPORTS: &[&str] = &["tracing", "prometheus-client"];

/// Our crates, and the dependencies that none of them may reach.
const FENCES: &[(&[&str], &[&[&str]])] = &[
    (
        &["model", "fold", "wire", "agent-core"],
        &[IO, CLIENTS, KUBERNETES, REPORTS],
    ),
    (&["replication", "clusterclass"], &[IO, CLIENTS]),
    (&["hub-core"], &[CLIENTS, KUBERNETES]),
    (&["pace", "api", "agent-engine", "swarm"], &[CLIENTS]),
];

pub(super) fn trials() -> Vec<Trial> {
    vec![
        plain_test("tidy::crates_reach_no_more_than_they_may", crates_reach),
        plain_test("tidy::the_reach_of_a_crate_is_seen", check_sees),
    ]
}

fn crates_reach() -> anyhow::Result<()> {
    let mut found = Vec::new();
    for (crates, fences) in FENCES {
        for name in *crates {
            let reached = reached(name)?;
            let beyond = fences.iter().copied().flatten();
            let beyond = beyond.filter(|dependency| reached.contains(**dependency));
            found.extend(beyond.map(|dependency| format!("tributary-{name} reaches {dependency}")));
        }
    }
    ensure!(
        found.is_empty(),
        "dependencies beyond a crate's fence (`cargo tree -p CRATE -e normal` shows the way):\n{}",
        found.join("\n")
    );
    Ok(())
}

/// All that a crate links, with the features that it asks for itself.
fn reached(name: &str) -> anyhow::Result<BTreeSet<String>> {
    let package = format!("tributary-{name}");
    let listed = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--package", &package])
        .args(["--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .context("cannot run cargo")?;
    let said = String::from_utf8_lossy(&listed.stderr);
    ensure!(
        listed.status.success(),
        "cargo cannot list what {package} links: {said}"
    );
    let lines = String::from_utf8(listed.stdout)?;
    let names = lines.lines().filter_map(|line| line.split(' ').next());
    Ok(names.map(str::to_owned).collect())
}

fn check_sees() -> anyhow::Result<()> {
    let agent = reached("agent")?;
    for dependency in [
        "tonic",
        "kube-client",
        "kube-runtime",
        "tokio",
        "rustls",
        "tracing",
    ] {
        ensure!(agent.contains(dependency), "{dependency} is not seen: {agent:?}");
    }
    ensure!(reached("log")?.contains("sled"), "sled is not seen");
    Ok(())
}
