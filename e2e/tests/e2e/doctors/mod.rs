//! Doctors against real hubs, on simulated and on real clusters: no fault where there is none, each planted one named; a hub
//! whose clock is apart; and what `tributary gather` writes, without a key in it.
//!
//! * `asked`: what a doctor is told, and what it found. `agents_real`, `hubs_real`: planted in real clusters.

mod agents_real;
mod asked;
mod hubs_real;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use cluster::{
    clusterset::{
        Backend, LocalClusterset, Program, Role,
        eventually::eventually,
        questions::{listed, state},
        shop::Shop,
    },
    rights::{Account, Table, roles},
};
use hub::{
    clock::Clock,
    hub::{Hub, HubMetrics},
    log::{MemoryDisk, MemoryLog},
    run::serve_grpc,
    writer::Options,
};
use libtest_mimic::Trial;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use shared::{
    doctor::{
        Report,
        bundle::{BUNDLE_BYTES_MAX, FILE_BYTES_MAX},
        look,
    },
    model::{Epoch, UnixMillis},
    process::{Shutdown, Supervisor},
    tls::{Credentials, LiveCredentials, TlsFiles, TlsMetrics, accept, listen, tcp_connections},
};
use tokio::task::JoinHandle;
use tributary_e2e::suite::{real_test_with_denials, sim_test};

use asked::{Patient, faults};

use crate::join::{joinable, made};

/// Time for `gather`.
const GATHERED_WITHIN: Duration = Duration::from_secs(60);
/// A token that a cluster says of itself, for want of a better place.
const TOKEN: &str = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJwbGFudGVkIn0.c2lnbmF0dXJl";
/// A Corefile that answers the clusterset's zone, and one that does not.
const COREFILE: &str = ".:53 {\n    kubernetes cluster.local clusterset.local in-addr.arpa ip6.arpa {\n        \
                        pods insecure\n        multicluster clusterset.local\n    }\n}\n";
const COREFILE_WITHOUT: &str =
    ".:53 {\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n        pods insecure\n    }\n}\n";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test(
            "sim::doctors::a_hub_whose_clock_is_apart_is_named",
            a_hub_whose_clock_is_apart_is_named,
        ),
        sim_test(
            "sim::doctors::a_healthy_member_has_nothing_and_faults_are_named",
            a_healthy_member_has_nothing_and_faults_are_named,
        ),
        sim_test(
            "sim::doctors::what_a_hub_gathers_has_no_key_in_it",
            what_a_hub_gathers_has_no_key_in_it,
        ),
        // They look with accounts that may not do everything, and say so.
        real_test_with_denials(
            "real::doctors::a_member_has_nothing_and_faults_are_named",
            agents_real::a_member_has_nothing_and_faults_are_named,
        ),
        real_test_with_denials(
            "real::doctors::a_hub_has_nothing_and_faults_are_named",
            hubs_real::a_hub_has_nothing_and_faults_are_named,
        ),
    ]
}

/// Findings of `tributary-agent doctor` in east, with its kubeconfig and its certificate.
async fn examined(clusterset: &LocalClusterset, hub: SocketAddr) -> anyhow::Result<Report> {
    let mut patient = Patient::of(clusterset, "east")?;
    patient.hub = hub.to_string();
    patient.examined(clusterset).await
}

/// Serves a hub in this process, as `serve` does, whose clock shows another time.
async fn served(clusterset: &LocalClusterset, wall: UnixMillis) -> anyhow::Result<Served> {
    let file = |name: &str| clusterset.certificate(name);
    let files = TlsFiles {
        cert: file("hub.crt"),
        key: file("hub.key"),
        ca: file("ca.crt"),
    };
    let credentials = LiveCredentials::new(Credentials::from_pem(&files.read()?)?);
    let name = clusterset.authority.clusterset().clone();
    let log = MemoryLog::open(&MemoryDisk::default(), &name, Epoch::default().next(wall, 7))?;
    let options = Options {
        hub: "hub".into(),
        hub_version: env!("CARGO_PKG_VERSION").into(),
        adopt_epoch: false,
        bounds: Default::default(),
    };
    let metrics = HubMetrics::register(&mut Registry::default());
    let hub = Hub::start(Box::new(log), options, Clock::simulated(wall), metrics)?;
    let listener = listen("127.0.0.1:0".parse()?)?;
    let address = listener.local_addr()?;
    let incoming = accept(tcp_connections(listener), credentials, TlsMetrics::default());
    let shutdown = Shutdown::default();
    let drain = shutdown.drain().clone();
    let (routes, doors) = (hub.routes(&drain), hub.doors.clone());
    let mut supervisor = Supervisor::new(shutdown.clone());
    supervisor.spawn("the gRPC port", serve_grpc(routes, doors, incoming, drain));
    supervisor.spawn("the event log's writer", hub.run(shutdown.clone()));
    Ok(Served {
        address,
        shutdown,
        running: tokio::spawn(supervisor.run()),
    })
}

/// A hub that runs in this process.
struct Served {
    /// Its address.
    address: SocketAddr,
    shutdown: Shutdown,
    running: JoinHandle<anyhow::Result<()>>,
}

impl Served {
    /// Lets it drain.
    async fn stop(self) -> anyhow::Result<()> {
        self.shutdown.begin();
        self.running.await?
    }
}

/// It is a fault from ten seconds on, in either direction, with the direction in it.
async fn a_hub_whose_clock_is_apart_is_named() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let backend = Backend::Simulated;
    let clusterset = LocalClusterset::without_hub(dir.path(), &backend, &["east"], "default").await?;
    for (apart, said) in [
        (0_i64, None),
        (7_000, None),
        (-7_000, None),
        (3_600_000, Some("behind the hub's")),
        (-3_600_000, Some("ahead of the hub's")),
    ] {
        let wall = UnixMillis(look::now().0.saturating_add_signed(apart));
        let hub = served(&clusterset, wall).await?;
        let report = examined(&clusterset, hub.address).await?;
        hub.stop().await?;
        let clock = report.checks.iter().find(|check| check.name == "hub-clock");
        let clock = clock.with_context(|| format!("nothing of the clock: {}", report.text()))?;
        let (what, _) = clock.verdict.words();
        match said {
            None => ensure!(!clock.is_fault() && what.contains("together"), "{apart}: {what}"),
            Some(said) => {
                ensure!(faults(&report).contains(&"hub-clock"), "{apart}: {what}");
                ensure!(what.contains(said), "{apart}: {what}");
                ensure!(report.exit_code() == 1, "{}", report.exit_code());
            }
        }
    }
    Ok(())
}

/// The Corefile of CoreDNS in a simulated cluster.
fn write_corefile(clusterset: &LocalClusterset, text: &str) -> anyhow::Result<()> {
    let cluster = clusterset.cluster("east")?.sim().context("a simulated cluster")?;
    cluster.apply(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "coredns", "namespace": "kube-system"}, "data": {"Corefile": text}}))?;
    Ok(())
}

/// The roles of the agent's chart, without one right perhaps.
fn grant(clusterset: &LocalClusterset, without: Option<(&str, &str)>) -> anyhow::Result<()> {
    let cluster = clusterset.cluster("east")?.sim().context("a simulated cluster")?;
    let mut granted = roles::of(Account::Agent)?;
    if let Some((verb, resource)) = without {
        let table = Table::read()?;
        let mut rights = table.rights(Account::Agent).map(|(right, _)| right);
        let right = rights.find(|right| right.verb == verb && right.resource == resource);
        granted = roles::without(&right.context("a right of the agent's")?, &granted)?;
    }
    let granted = granted.iter().map(serde_json::to_value);
    cluster.grant(&granted.collect::<Result<Vec<Value>, _>>()?);
    Ok(())
}

async fn a_healthy_member_has_nothing_and_faults_are_named() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &["east", "west"]).await?;
    grant(&clusterset, None)?;
    write_corefile(&clusterset, COREFILE)?;
    listed(&clusterset, &["east", "west"]).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "west", "cart", &["10.2.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    let hub = clusterset.hub_address;
    let found = async |clusterset: &LocalClusterset, wanted: &[&str]| {
        let report = examined(clusterset, hub).await?;
        ensure!(faults(&report) == wanted, "{wanted:?}: {}", report.text());
        let code = u8::from(!wanted.is_empty());
        ensure!(
            report.exit_code() == code,
            "{}: {}",
            report.exit_code(),
            report.text()
        );
        anyhow::Ok(report)
    };
    found(&clusterset, &[]).await?;

    grant(&clusterset, Some(("delete", "endpointslices")))?;
    let report = found(&clusterset, &["rights"]).await?;
    let said = report.text();
    ensure!(said.contains("delete endpointslices.discovery.k8s.io"), "{said}");
    grant(&clusterset, None)?;
    write_corefile(&clusterset, COREFILE_WITHOUT)?;
    found(&clusterset, &["coredns-corefile"]).await?;
    write_corefile(&clusterset, COREFILE)?;
    clusterset.stop_hub().await?;
    found(&clusterset, &["hub-port"]).await?;

    // All three at once: none hides another.
    grant(&clusterset, Some(("delete", "endpointslices")))?;
    write_corefile(&clusterset, COREFILE_WITHOUT)?;
    found(&clusterset, &["hub-port", "rights", "coredns-corefile"]).await?;
    clusterset.end().await
}

/// Every line of a secret that is long enough to be one.
fn lines_of(secret: &str) -> impl Iterator<Item = String> {
    let lines = secret.lines().map(str::trim);
    let long = lines.filter(|line| line.len() >= 16 && !line.starts_with("-----"));
    long.map(ToOwned::to_owned)
}

/// Has east's cluster say something of itself, and waits until the hub knows it.
async fn say(clusterset: &LocalClusterset, properties: &[(&str, &str)]) -> anyhow::Result<()> {
    let cluster = clusterset.cluster("east")?.sim().context("a simulated cluster")?;
    for (name, value) in properties {
        cluster.apply(
            json!({"apiVersion": "about.k8s.io/v1beta1", "kind": "ClusterProperty",
            "metadata": {"name": name}, "spec": {"value": value}}),
        )?;
    }
    eventually("the hub recorded what the cluster says", async || {
        let profiles = state(clusterset).await?.profiles;
        let shown = profiles.iter().flat_map(|profile| &profile.properties);
        let shown: BTreeSet<&str> = shown.map(|property| property.name.as_str()).collect();
        Ok(properties
            .iter()
            .all(|(name, _)| shown.contains(name))
            .then_some(()))
    })
    .await
}

/// Runs `tributary gather` as the operator, whose key the environment names; why it failed, if it did, and how long it
/// took.
async fn gather(
    clusterset: &LocalClusterset,
    out: &Path,
    environment: &[(&str, &str)],
) -> anyhow::Result<(String, Duration)> {
    let path = |file: &str| clusterset.certificate(file);
    let variable = |name: &str, value: &str| OsString::from(format!("{name}={value}"));
    let mut wrapper: Vec<OsString> = vec!["env".into()];
    let key = path("operator.key").display().to_string();
    wrapper.push(variable("TRIBUTARY_TLS_KEY", &key));
    wrapper.extend(environment.iter().map(|(name, value)| variable(name, value)));
    let hub = format!("https://{}", clusterset.hub_address);
    let mut arguments: Vec<OsString> = ["gather", "--service", "shop/cart", "--hub", &hub, "--out"]
        .map(OsString::from)
        .into();
    arguments.push(out.into());
    arguments.extend(["--tls-ca".into(), path("ca.crt").into()]);
    arguments.extend(["--tls-cert".into(), path("operator.crt").into()]);
    let began = Instant::now();
    let program = Program::start_under(&wrapper, Role::Client, arguments, &clusterset.log("gather"))?;
    let (status, tail) = program.ended().await?;
    let failed = if status.success() {
        String::new()
    } else {
        format!("{status}: {tail}")
    };
    Ok((failed, began.elapsed()))
}

/// The files of a bundle, by name, each within its bound.
fn read(out: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(out)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.push((name, fs::read_to_string(entry.path())?));
    }
    files.sort();
    let total: usize = files.iter().map(|(_, text)| text.len()).sum();
    ensure!(total <= BUNDLE_BYTES_MAX, "{total} bytes");
    for (name, text) in &files {
        ensure!(text.len() <= FILE_BYTES_MAX, "{name}: {} bytes", text.len());
    }
    Ok(files)
}

fn names(files: &[(String, String)]) -> BTreeSet<&str> {
    files.iter().map(|(name, _)| name.as_str()).collect()
}

/// Every secret of this clusterset: the lines of all keys, what a token gave, and the planted one.
fn secrets(clusterset: &LocalClusterset, join: &str) -> anyhow::Result<Vec<String>> {
    let certificates = clusterset.certificate("");
    let mut secrets = vec![TOKEN.to_owned(), join.to_owned()];
    let files = fs::read_dir(certificates)?.map(|entry| Ok(entry?.path()));
    let files: Vec<PathBuf> = files.collect::<std::io::Result<_>>()?;
    let keys = files
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "key"));
    for key in keys {
        secrets.extend(lines_of(&fs::read_to_string(key)?));
    }
    ensure!(secrets.len() >= 8, "{} secrets", secrets.len());
    Ok(secrets)
}

/// Gathers from a hub that is away.
async fn gathered_of_nobody(
    clusterset: &LocalClusterset,
    out: &Path,
    environment: &[(&str, &str)],
) -> anyhow::Result<Vec<(String, String)>> {
    let (failed, took) = gather(clusterset, out, environment).await?;
    ensure!(
        failed.is_empty() && took < GATHERED_WITHIN,
        "{failed} after {took:?}"
    );
    let files = read(out)?;
    let wanted = ["flags.txt", "hub.txt", "unreachable.txt"];
    ensure!(names(&files) == wanted.into(), "{:?}", names(&files));
    Ok(files)
}

/// Neither of keys in files, nor of what is typed or stands in the environment, nor of what members say.
async fn what_a_hub_gathers_has_no_key_in_it() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = joinable(dir.path(), &["east"], &[]).await?;
    clusterset.start_agent("east").await?;
    listed(&clusterset, &["east"]).await?;
    let (join, _) = made(&clusterset, &["--id-pattern", "later-*"]).await?;
    let key = fs::read_to_string(clusterset.certificate("east.key"))?;
    let operators = fs::read_to_string(clusterset.certificate("operator.key"))?;
    let part = lines_of(&operators).next().context("a key has lines")?;
    let planted = [
        ("whole-key.example.org", &*key),
        ("token.example.org", TOKEN),
        ("part.example.org", &part),
    ];
    say(&clusterset, &planted).await?;
    let secrets = secrets(&clusterset, &join)?;
    let without_secrets = |files: &[(String, String)]| {
        for (name, text) in files {
            let found = secrets.iter().find(|secret| text.contains(secret.as_str()));
            ensure!(found.is_none(), "{name} holds {found:?}");
            ensure!(!text.contains("PRIVATE KEY-----"), "{name} holds a key");
        }
        Ok(())
    };

    let out = dir.path().join("gathered");
    let environment = [("TRIBUTARY_JOIN", &*join), ("REGISTRY_TOKEN", TOKEN)];
    let (failed, took) = gather(&clusterset, &out, &environment).await?;
    ensure!(
        failed.is_empty() && took < GATHERED_WITHIN,
        "{failed} after {took:?}"
    );
    let mode = fs::metadata(&out)?.permissions().mode();
    ensure!(mode & 0o777 == 0o700, "{mode:o}");
    let files = read(&out)?;
    let wanted = [
        "events.txt",
        "explain.txt",
        "flags.txt",
        "hub.txt",
        "members.txt",
        "policy.txt",
        "state.txt",
    ];
    ensure!(names(&files) == wanted.into(), "{:?}", names(&files));
    without_secrets(&files)?;
    let of = |wanted: &str| {
        let found = files.iter().find(|(name, _)| name == wanted);
        found.map(|(_, text)| text.as_str()).unwrap_or_default()
    };
    for (name, _) in planted {
        ensure!(of("state.txt").contains(name), "{name} is not in the state");
    }
    let redacted = of("state.txt").matches(shared::doctor::redact::REDACTED).count();
    ensure!(redacted >= planted.len(), "{redacted} were taken out");
    ensure!(of("members.txt").contains("east") && of("events.txt").contains("east"));

    // Nothing is written over; and of a hub that is away there is what can be said.
    let (failed, _) = gather(&clusterset, &out, &environment).await?;
    ensure!(
        failed.contains("is there already") && read(&out)? == files,
        "{failed}"
    );
    clusterset.stop_hub().await?;
    let away = dir.path().join("away");
    without_secrets(&gathered_of_nobody(&clusterset, &away, &environment).await?)?;
    clusterset.end().await
}
