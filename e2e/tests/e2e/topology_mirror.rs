//! Owns: what a hub that manages topologies sees of a management cluster through watches, and what that costs.
//! Never: runs Cluster API; the clusters are simulated, and time passes as soon as nobody has anything to do.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use cluster::pretend;
use hub::topology::mirror::Mirror;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use sim::{Crd, Entry, Fault, SimCluster, SimConfig};
use tokio::time::{sleep, timeout};
use tributary_e2e::suite::plain_test;

/// A class, its templates and two Clusters.
const ESTATE: &str = include_str!("../../fixtures/cluster-api/estate.yaml");
/// From one look of a resting hub to the next.
const LOOK: Duration = Duration::from_secs(60);
/// Time in which nobody changes anything.
const IDLE: Duration = Duration::from_secs(600);
/// Longest time until what is awaited is there.
const PATIENCE: Duration = Duration::from_secs(120);
/// Most requests in a minute of an idle management cluster that read topologies.
const IDLE_REQUESTS_A_MINUTE: f64 = 10.0;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        plain_test(
            "sim::topology_mirror::an_idle_management_cluster_is_watched_and_not_listed",
            || virtually(idle()),
        ),
        plain_test(
            "sim::topology_mirror::a_look_has_what_listing_has_and_every_write_before_it",
            || virtually(current()),
        ),
        plain_test(
            "sim::topology_mirror::of_a_kind_that_is_not_watched_nothing_is_known_after_a_minute",
            || virtually(broken()),
        ),
    ]
}

/// Plays it in virtual time.
fn virtually(play: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    runtime.block_on(play)
}

/// A management cluster with the kinds of Cluster API and of a provider that is none.
fn management() -> anyhow::Result<SimCluster> {
    let definitions = pretend::definitions()?.into_iter();
    let crds = definitions.map(|one| Crd::read(serde_json::to_value(one)?));
    let management = SimCluster::new(SimConfig {
        name: "management".to_owned(),
        crds: crds.collect::<anyhow::Result<_>>()?,
        ..SimConfig::default()
    })?;
    management.apply_yaml(ESTATE)?;
    Ok(management)
}

async fn idle() -> anyhow::Result<()> {
    let management = management()?;
    let (client, requests) = (management.client(), management.requests());
    topology_reader::read_for_writing(client.clone()).await?;
    let listing = requests.take().len();
    let mirror = Mirror::new(client);
    mirror.look().await?;
    requests.clear();
    for _ in 0..IDLE.as_secs() / LOOK.as_secs() {
        sleep(LOOK).await;
        mirror.look().await?;
    }
    judged(&requests.take(), listing)
}

fn judged(asked: &[Entry], listing: usize) -> anyhow::Result<()> {
    let count = |verb: &str| asked.iter().filter(|entry| entry.verb == verb).count();
    let a_minute = asked.len() as f64 / (IDLE.as_secs_f64() / 60.0);
    println!(
        "reading an idle management cluster takes {a_minute:.1} requests a minute ({} lists, {} watches and {} others in {} s); \
         a look that lists takes {listing}",
        count("list"),
        count("watch"),
        asked.len() - count("list") - count("watch"),
        IDLE.as_secs()
    );
    ensure!(count("list") == 0, "something is listed: {asked:?}");
    ensure!(count("watch") > 0, "nothing is watched");
    ensure!(a_minute < IDLE_REQUESTS_A_MINUTE, "{a_minute} requests a minute");
    Ok(())
}

fn names(objects: &[Value]) -> Vec<String> {
    let name = |object: &Value| {
        let of = |place: &str| object.pointer(place).cloned().unwrap_or_default().to_string();
        of("/kind") + &of("/metadata/namespace") + &of("/metadata/name") + &of("/metadata/resourceVersion")
    };
    let mut names: Vec<String> = objects.iter().map(name).collect();
    names.sort_unstable();
    names
}

async fn current() -> anyhow::Result<()> {
    let management = management()?;
    let mirror = Mirror::new(management.client());
    let whole = mirror.look().await?;
    let listed = topology_reader::read_for_writing(management.client()).await?;
    ensure!(
        names(&whole.objects) == names(&listed.objects),
        "{:?}",
        names(&whole.objects)
    );
    ensure!(whole.unread.is_empty(), "{:?}", whole.unread);
    // Permits of what was listed.
    let changed = mirror.changed();
    while timeout(Duration::from_secs(1), changed.notified()).await.is_ok() {}
    let template = "{apiVersion: pretend.example.org/v1beta2, kind: HostTemplate, metadata: {name: host, namespace: default}, spec: {template: {spec: {cores: 8}}}}";
    let written = management.apply_yaml(template)?.remove(0);
    mirror.wrote(&written);
    let whole = mirror.look().await?;
    let host = whole.objects.iter().find(|one| one["kind"] == "HostTemplate");
    let cores = &host.context("a template")?["spec"]["template"]["spec"]["cores"];
    ensure!(
        *cores == json!(8),
        "a look is older than the write before it: {cores}"
    );
    timeout(PATIENCE, changed.notified())
        .await
        .context("nobody is woken")?;
    let uid = written["metadata"]["uid"].as_str().context("an identity")?;
    management.delete("HostTemplate", "default", "host")?;
    let key = ("default".to_owned(), "host".to_owned());
    mirror.deleted(("pretend.example.org/v1beta2", "HostTemplate"), &key, uid);
    let whole = mirror.look().await?;
    ensure!(
        whole.objects.iter().all(|one| one["kind"] != "HostTemplate"),
        "it is gone"
    );
    Ok(())
}

async fn broken() -> anyhow::Result<()> {
    let management = management()?;
    let mirror = Mirror::new(management.client());
    let whole = mirror.look().await?;
    let before = names(&whole.objects);
    let faults = management.faults();
    for kind in ["machinedeployments", "hosttemplates"] {
        faults.rate(Fault::Unlisted, sim::ALWAYS, kind);
    }
    faults.drop_watches();
    sleep(Duration::from_secs(30)).await;
    let whole = mirror
        .look()
        .await
        .context("it is known what there was a moment ago")?;
    ensure!(names(&whole.objects) == before);
    sleep(Duration::from_secs(60)).await;
    match mirror.look().await {
        Ok(_) => bail!("deployments that nobody watches are taken for known"),
        Err(error) => ensure!(error.to_string().contains("MachineDeployment"), "{error:#}"),
    }
    faults.clear();
    faults.rate(Fault::Unlisted, sim::ALWAYS, "hosttemplates");
    sleep(Duration::from_secs(60)).await;
    let whole = mirror.look().await?;
    let unread: Vec<&str> = whole.unread.keys().map(|(_, kind)| kind.as_str()).collect();
    ensure!(unread == ["HostTemplate"], "{unread:?}");
    ensure!(
        whole.objects.iter().all(|one| one["kind"] != "HostTemplate"),
        "a part is taken for all"
    );
    faults.clear();
    sleep(Duration::from_secs(60)).await;
    let whole = mirror.look().await?;
    ensure!(names(&whole.objects) == before, "{:?}", whole.unread);
    Ok(())
}
