//! `cargo demo --topology`: a management cluster with a class, two Clusters of it and a provider that pretends; a hub that
//! keeps their topologies, two members that they are; and an edit of the class, previewed and rolled out in waves, which stop
//! at a Cluster that fails. Then a rebase beside Cluster API's own manager.
//! It acts as a user and prints what the API servers show. With `--check` it ends then, or says what was not as it should be.
//!
//! * `stage.rs`: what runs. `seen.rs`: what the API servers show. `stopped.rs`: the wave that stops. `beside.rs`: the rebase.

mod beside;
mod seen;
mod stage;
mod stopped;

use std::{collections::BTreeSet, io::Write, time::Duration};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use clusterclass_program::command::{self, Cli};
use hub::topology::desired::change::Changes;
use serde_json::{Value, json};
use shared::{columns::columns, process::Shutdown};
use tokio::sync::Mutex;

use self::{
    seen::{Seen, profiles},
    stage::Stage,
};
use super::directory::{Claimed, DemoDirectory};
use cluster::clusterset::eventually::eventually;

/// The initial objects.
const ESTATE: &str = include_str!("../../../fixtures/cluster-api/estate.yaml");
/// The Clusters, which are the members of these names.
const CLUSTERS: [&str; 2] = ["eu", "us"];
/// The image that the edit of the class gives to machines.
const IMAGE: &str = "debian-13";
/// Time for a pretended machine to come up.
const MACHINE_TAKES: Duration = Duration::from_secs(1);

/// Plays it until a signal comes, or, as a check, to its end.
pub(super) async fn run(check: bool, place: DemoDirectory, shutdown: &Shutdown) -> anyhow::Result<()> {
    let directory = check
        .then(|| tempfile::Builder::new().prefix("tributary-demo-").tempdir())
        .transpose()?;
    let place = directory
        .as_ref()
        .map_or(place, |directory| DemoDirectory::new(directory.path().to_owned()));
    let claimed = Claimed::claim(place)?;
    println!("Starting a management cluster, two members, a hub that keeps topologies ...");
    let playing = async {
        let mut stage = Stage::start(&claimed.place, &CLUSTERS).await?;
        let provider = stage.provider();
        let played = tokio::select! {
            played = play(&stage) => played,
            ended = provider.run(MACHINE_TAKES) => ended.context("the provider"),
        };
        if played.is_ok() && !check {
            println!(
                "\nTry it: KUBECONFIG={} kubectl edit clusterclass edge\nCtrl-C stops everything.",
                claimed.place.kubeconfig().display()
            );
            tokio::select! {
                () = shutdown.drain().cancelled() => {}
                ended = provider.run(MACHINE_TAKES) => ended.context("the provider")?,
                fell = stage.fallen() => bail!(fell),
            }
        }
        stage.end().await.and(played)
    };
    let played = shutdown.abort().run_until_cancelled(playing).await;
    let played = played.unwrap_or_else(|| Err(anyhow::anyhow!("stopped by a signal")));
    match (played, directory) {
        (Err(error), Some(directory)) => {
            let kept = directory.keep();
            Err(error.context(format!("the check failed; logs are in {}", kept.display())))
        }
        (played, _) => played,
    }
}

async fn play(stage: &Stage) -> anyhow::Result<()> {
    println!("ClusterClass edge, its templates, and Clusters eu and us are applied.\n");
    stage.apply(ESTATE).await?;
    let made = settled(stage, "the Clusters are made").await?;
    print!("{}", made.table());
    let told = eventually("the profiles tell the topologies", async || {
        let told = profiles(&stage.client).await?;
        let tells = |member: &str| {
            let mut rows = told.iter();
            rows.any(|row| row[0] == member && row[1] == "edge" && row[2] == "v1.34.1" && row[4] == "True")
        };
        Ok(CLUSTERS
            .iter()
            .all(|member| tells(member))
            .then(|| columns(&told)))
    });
    println!("\n{}", told.await?.join("\n"));
    previewed(stage).await?;
    println!("\nThe edit is applied. Machines are replaced in one Cluster at a time:");
    let class = stage.get("ClusterClass", "edge").await?;
    stage.apply_object(edited(&class, IMAGE)?).await?;
    rolled_out(stage, &made).await?;
    // A Cluster that is still on its way takes another edit along.
    stage.counted_as_settled(CLUSTERS.len()).await?;
    stopped::stopped(stage).await?;
    beside::rebased().await
}

/// The class with another image of machines.
fn edited(class: &Value, image: &str) -> anyhow::Result<Value> {
    let mut class = class.clone();
    let value = class.pointer_mut("/spec/patches/1/definitions/0/jsonPatches/0/value");
    *value.context("the patch of the image")? = json!(image);
    Ok(class)
}

/// Shows the effects of the edit, by the command that a user would type.
async fn previewed(stage: &Stage) -> anyhow::Result<()> {
    let mut file = tempfile::Builder::new()
        .prefix("edge-edited-")
        .suffix(".yaml")
        .tempfile()?;
    let class = stage.get("ClusterClass", "edge").await?;
    file.write_all(edited(&class, IMAGE)?.to_string().as_bytes())?;
    let kubeconfig = stage.kubeconfig().display().to_string();
    let words = ["clusterclass", "diff", "--kubeconfig", &kubeconfig, "-f"];
    println!("\nThe class gets another image of machines. What would that do?");
    println!("$ clusterclass diff --kubeconfig kubeconfig -f edge-edited.yaml");
    let words = words
        .iter()
        .map(std::ffi::OsString::from)
        .chain([file.path().into()]);
    let cli = Cli::try_parse_from(words)?;
    // It makes a runtime of its own, as a program does.
    let (said, changes) = tokio::task::spawn_blocking(|| command::run(cli)).await??;
    print!("{said}");
    ensure!(
        changes == Changes::Something,
        "an edit of the class changes nothing"
    );
    ensure!(
        said.contains("4 rotated") && said.contains("at most 10 replaced"),
        "the preview says something else than is to be"
    );
    Ok(())
}

/// All Clusters say that they are as they should be.
async fn settled(stage: &Stage, what: &str) -> anyhow::Result<Seen> {
    eventually(what, async || {
        let seen = Seen::look(&stage.client).await?;
        let ready = CLUSTERS.iter().all(|cluster| seen.is_ready(cluster));
        ensure!(ready, "it is\n{}", seen.table());
        Ok(Some(seen))
    })
    .await
}

/// Observations of a rollout so far.
#[derive(Default)]
struct Rollout {
    said: Vec<String>,
    moved: BTreeSet<String>,
    held: BTreeSet<String>,
}

impl Rollout {
    /// Says what is news.
    fn see(&mut self, seen: &Seen) -> anyhow::Result<()> {
        for line in seen.lines() {
            if !self.said.contains(&line) {
                println!("{line}");
                self.said.push(line);
            }
        }
        let moving = seen.moving();
        self.held.extend(seen.held());
        self.moved.extend(moving.iter().cloned());
        ensure!(
            moving.len() <= 1,
            "machines of {} are replaced at once",
            moving.join(" and ")
        );
        Ok(())
    }
}

/// One after the other: never machines of two Clusters at once, and the second one says meanwhile that it waits.
async fn rolled_out(stage: &Stage, before: &Seen) -> anyhow::Result<()> {
    let rollout = Mutex::new(Rollout::default());
    let rolled = eventually("the edit is rolled out", async || {
        let seen = Seen::look(&stage.client).await?;
        if let Err(error) = rollout.lock().await.see(&seen) {
            return Ok(Some(Err(error)));
        }
        let done = CLUSTERS
            .iter()
            .all(|cluster| seen.is_ready(cluster) && seen.images(cluster).iter().all(|image| image == IMAGE));
        Ok(done.then_some(Ok(seen)))
    });
    let after = rolled.await??;
    let Rollout { moved, held, .. } = rollout.into_inner();
    ensure!(
        moved.len() == CLUSTERS.len(),
        "machines were seen to be replaced of {} Clusters only",
        moved.len()
    );
    ensure!(!held.is_empty(), "no Cluster was seen to wait for the other");
    for cluster in CLUSTERS {
        let (was, is) = (before.templates(cluster), after.templates(cluster));
        ensure!(
            was.len() == is.len() && was.is_disjoint(&is),
            "{cluster} had {} templates of machines, and has {}, which are to be others",
            was.len(),
            is.len()
        );
    }
    println!("\n{}", after.table());
    println!(
        "Done: both Clusters have the image {IMAGE}, one after the other; templates that nothing refers to are gone."
    );
    Ok(())
}
